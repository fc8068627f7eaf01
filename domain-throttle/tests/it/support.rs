use std::{
    future::Future,
    io::{self, Write},
    num::NonZeroU32,
    pin::Pin,
    process,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread,
    time::Duration,
};

use domain_throttle::{Endpoint, Limits, Permit, ThrottleError};

pub(crate) fn at(url: &str) -> Endpoint {
    url.parse().expect("a test's URL names a server")
}

pub(crate) fn limits(max_concurrent: u32, max_per_window: u32, window: Duration) -> Limits {
    let count = |limit| NonZeroU32::new(limit).expect("no test asks for zero");
    Limits { max_concurrent: count(max_concurrent), max_per_window: count(max_per_window), window }
}

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) fn endpoints(urls: &[&str]) -> Vec<Endpoint> {
    urls.iter().map(|url| at(url)).collect()
}

pub(crate) type Waiting<'a> =
    Pin<Box<dyn Future<Output = Result<Permit, ThrottleError>> + Send + 'a>>;

/// A waker that counts how often it was used.
#[derive(Debug, Default)]
pub(crate) struct Calls(AtomicUsize);

impl Calls {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Calls {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Polls once; the permit if there is one.
pub(crate) fn poll(waiting: &mut Waiting<'_>, calls: &Arc<Calls>) -> Option<Permit> {
    let waker = Waker::from(calls.clone());
    match waiting.as_mut().poll(&mut Context::from_waker(&waker)) {
        Poll::Ready(Ok(permit)) => Some(permit),
        Poll::Ready(Err(error)) => panic!("the wait failed: {error}"),
        Poll::Pending => None,
    }
}

/// Lets all other tasks do what they can do now.
pub(crate) async fn settle() {
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
}

/// On a paused clock a month passes at once when nobody can go on: a test that would hang ends here.
pub(crate) fn bounded() {
    tokio::spawn(async {
        tokio::time::sleep(secs(30 * 86_400)).await;
        let test = thread::current().name().unwrap_or_default().to_owned();
        // Not `eprintln`, whose output the harness keeps for the end of the test.
        let _ = writeln!(io::stderr(), "{test}: nobody can go on, a wake-up was lost");
        process::abort();
    });
}
