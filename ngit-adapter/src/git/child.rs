//! A child process that ends with whoever waits for it, and stays inside limits.

use std::{io, process::ExitStatus, time::Duration};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process_group, prlimit};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
};

/// A running child that leads a process group of its own. Dropping it kills the whole group.
#[derive(Debug)]
#[must_use = "dropping it kills the child"]
pub(crate) struct ChildGroup {
    child: Child,
    // `None` once the child was waited for: its number may then belong to another process.
    group: Option<Pid>,
}

/// What a child may use up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChildLimits {
    pub(crate) memory_bytes: u64,
    pub(crate) cpu: Duration,
    pub(crate) file_bytes: u64,
}

/// How much of what a child says on its standard error is kept: the end of it.
const KEPT_STDERR: usize = 8 * 1024;

impl ChildGroup {
    /// Starts `command` under `limits`. They hold before the child has read anything from us.
    pub(crate) fn spawn(command: &mut Command, limits: &ChildLimits) -> io::Result<Self> {
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let running = Self { child, group };
        limits.apply(running.group)?;
        Ok(running)
    }

    pub(crate) fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    pub(crate) fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    pub(crate) fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Waits for the end of the child.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        self.group = None;
        Ok(status)
    }
}

impl Drop for ChildGroup {
    fn drop(&mut self) {
        if let Some(group) = self.group.take() {
            // It fails only if the group is gone, which is what is wanted.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl ChildLimits {
    fn apply(&self, child: Option<Pid>) -> io::Result<()> {
        let child = child.ok_or_else(|| io::Error::other("the child has no process id"))?;
        let cpu = self.cpu.as_secs().max(1);
        limit(child, Resource::As, self.memory_bytes, self.memory_bytes)?;
        // At the first limit the child gets SIGXCPU, one second later SIGKILL.
        limit(child, Resource::Cpu, cpu, cpu.saturating_add(1))?;
        limit(child, Resource::Fsize, self.file_bytes, self.file_bytes)?;
        limit(child, Resource::Core, 0, 0)
    }
}

/// Sets a limit, but never above what this process itself may have: that would be refused.
fn limit(child: Pid, resource: Resource, soft: u64, hard: u64) -> io::Result<()> {
    let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let new = Rlimit { current: Some(soft.min(most)), maximum: Some(hard.min(most)) };
    prlimit(Some(child), resource, new)?;
    Ok(())
}

/// Reads to the end and keeps only the last few KiB, so that a flood costs no memory.
pub(crate) async fn drain(mut from: impl AsyncRead + Unpin) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut chunk = vec![0; 4 * 1024];
    while let Ok(read @ 1..) = from.read(&mut chunk).await {
        kept.extend_from_slice(&chunk[..read]);
        if kept.len() > 2 * KEPT_STDERR {
            kept.drain(..kept.len() - KEPT_STDERR);
        }
    }
    kept
}
