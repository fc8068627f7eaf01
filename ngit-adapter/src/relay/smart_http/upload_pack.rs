use std::{future::Future, io, path::Path, pin::Pin, process::Stdio, time::Duration};

use axum::body::Bytes;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::AsyncReadExt,
    process::{Child, ChildStdin, ChildStdout},
};
use tokio_util::task::AbortOnDropHandle;

use super::feed::FeedError;
use crate::git::Git;

/// A running `git upload-pack`. When it is dropped, all processes of it are ended.
pub(super) struct UploadPack {
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    feed: Option<Feed>,
    in_time: AbortOnDropHandle<bool>,
}

type Feed = Pin<Box<dyn Future<Output = Result<(), FeedError>> + Send>>;

/// Why there is no next chunk.
#[derive(Debug, thiserror::Error)]
pub(super) enum Chunk {
    #[error("the request could not be passed on to git")]
    Feed(#[source] FeedError),
    #[error("git could not be read")]
    Read(#[source] io::Error),
    #[error("the request took too long")]
    Deadline,
}

const CHUNK_BYTES: usize = 64 << 10;

impl UploadPack {
    pub(super) fn spawn(
        git: &Git,
        repository: &Path,
        protocol: Option<&str>,
        advertise: bool,
        deadline: Duration,
    ) -> io::Result<Self> {
        let mut command = git.command("upload-pack");
        if let Some(protocol) = protocol {
            command.env("GIT_PROTOCOL", protocol);
        }
        command.args(["--strict", "--stateless-rpc"]);
        if advertise {
            command.arg("--http-backend-info-refs");
        }
        command.arg("--").arg(repository);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut group = Group(command.spawn()?);
        let stdin = group.0.stdin.take().filter(|_| !advertise);
        let stdout = group.0.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        // Its own task, so that the deadline holds also while the client reads nothing.
        let in_time = AbortOnDropHandle::new(tokio::spawn(async move {
            tokio::time::timeout(deadline, group.0.wait()).await.is_ok()
        }));
        Ok(Self { stdin, stdout, feed: None, in_time })
    }

    pub(super) fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    /// What writes to git's standard input. It runs while chunks are asked for.
    pub(super) fn feed_with(
        &mut self,
        feed: impl Future<Output = Result<(), FeedError>> + Send + 'static,
    ) {
        self.feed = Some(Box::pin(feed));
    }

    /// The next bytes of the answer; none at its end.
    pub(super) async fn next_chunk(&mut self) -> Result<Option<Bytes>, Chunk> {
        let mut buffer = Vec::with_capacity(CHUNK_BYTES);
        loop {
            tokio::select! {
                fed = async { self.feed.as_mut().expect("checked by the guard").await },
                    if self.feed.is_some() =>
                {
                    self.feed = None;
                    fed.map_err(Chunk::Feed)?;
                }
                read = self.stdout.read_buf(&mut buffer) => match read.map_err(Chunk::Read)? {
                    0 => break,
                    _ => return Ok(Some(Bytes::from(buffer))),
                },
            }
        }
        match (&mut self.in_time).await {
            Ok(true) => Ok(None),
            _ => Err(Chunk::Deadline),
        }
    }
}

/// A child that leads a process group. Dropping it ends the whole group.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        // There is no id any more once the child was waited for: nobody else's group can be hit.
        let id = self.0.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(leader) = id {
            // It may have ended by itself in between: then there is nothing to end.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}
