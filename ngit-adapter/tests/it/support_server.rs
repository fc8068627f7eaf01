//! A git server on loopback for tests, which counts what it is asked.

#![allow(dead_code, reason = "each test uses a part of this")]

use std::{net::SocketAddr, path::PathBuf, thread::JoinHandle};

use ngit_adapter::{
    git::{Git, GitError},
    relay::{RequestLog, SmartHttp},
};
use tokio::sync::oneshot;

/// A git server that serves all repositories of a folder until it is dropped.
///
/// It runs on a thread of its own, so it answers whatever the test's own runtime does.
#[derive(Debug)]
pub(crate) struct TestServer {
    address: SocketAddr,
    log: RequestLog,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl TestServer {
    /// Serves the folder on a free port of this loopback address, such as `127.0.0.2`.
    pub(crate) fn start(ip: &str, folder: impl Into<PathBuf>) -> Self {
        let log = RequestLog::default();
        let git = SmartHttp::folder(installed_git(), folder);
        Self::start_with(ip, git.with_log(log.clone()).into_router(), log)
    }

    /// Serves anything else.
    pub(crate) fn start_with(ip: &str, router: axum::Router, log: RequestLog) -> Self {
        let listener = std::net::TcpListener::bind((ip, 0)).expect("loopback has a free port");
        listener.set_nonblocking(true).expect("a socket can be made non-blocking");
        let address = listener.local_addr().expect("a bound socket has an address");
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime can be made");
            runtime.block_on(async move {
                let listener =
                    tokio::net::TcpListener::from_std(listener).expect("the socket is fine");
                tokio::select! {
                    served = axum::serve(listener, router) => served.expect("serving goes on"),
                    _ = stopped => {}
                }
            });
        });
        Self { address, log, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the repository at this path below the folder.
    pub(crate) fn url(&self, repository: &str) -> String {
        format!("http://{}/{repository}", self.address)
    }

    /// What the server was asked.
    pub(crate) fn log(&self) -> &RequestLog {
        &self.log
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let joined = thread.join();
            // A second panic while one is on would hide the first.
            if !std::thread::panicking() {
                joined.expect("the server did not panic");
            }
        }
    }
}

/// The git of this machine, from code that is not async.
pub(crate) fn installed_git() -> Git {
    on_own_thread(Git::find())
}

/// A program that stands in for git. It has to answer `version`.
pub(crate) fn git_at(program: PathBuf) -> Git {
    on_own_thread(Git::at(program))
}

/// Runs it to its end, also within a test that has a runtime of its own.
fn on_own_thread(find: impl Future<Output = Result<Git, GitError>> + Send) -> Git {
    std::thread::scope(|scope| {
        let run = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be made").block_on(find)
        };
        scope.spawn(run).join().expect("looking for git does not panic").expect("git is usable")
    })
}
