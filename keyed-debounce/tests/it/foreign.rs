//! D20: runs of other backends.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::FutureExt;
use keyed_debounce::{Outcome, Run, RunHook};
use tokio::sync::Notify;

/// A hold with a lease that can be lost, and a store that notes what it is told.
struct Lease {
    settled: Arc<Mutex<Vec<Outcome>>>,
    lost: Arc<Notify>,
}

#[async_trait]
impl RunHook for Lease {
    fn settle(self: Box<Self>, outcome: Outcome) {
        self.settled.lock().unwrap().push(outcome);
    }

    async fn lost(&self) {
        self.lost.notified().await;
    }
}

fn run() -> (Run<String>, Arc<Mutex<Vec<Outcome>>>, Arc<Notify>) {
    let (settled, lost) = (Arc::default(), Arc::new(Notify::new()));
    let hook = Lease { settled: Arc::clone(&settled), lost: Arc::clone(&lost) };
    (Run::new("key".to_owned(), 3, Box::new(hook)), settled, lost)
}

/// D20: a run is built over a hook and settles it once: with its outcome, or as failed when it is
/// dropped or its thread panics (D10).
#[test]
fn a_run_settles_its_hook_once() {
    let (first, settled, _) = run();
    assert_eq!((first.key().as_str(), first.attempt()), ("key", 3));
    first.finish(Outcome::Done);
    assert_eq!(*settled.lock().unwrap(), [Outcome::Done]);

    let (second, settled, _) = run();
    drop(second);
    assert_eq!(*settled.lock().unwrap(), [Outcome::Retry]);

    let (third, settled, _) = run();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _run = third;
        panic!("the work explodes");
    }));
    assert!(panicked.is_err());
    assert_eq!(*settled.lock().unwrap(), [Outcome::Retry]);
}

/// D20: the holder is told that the hold is gone; what a backend does not know is never said.
#[tokio::test]
async fn a_lost_lease_is_told() {
    let (run, _, lost) = run();
    assert!(run.lost().now_or_never().is_none());
    assert!(run.scheduled_again().now_or_never().is_none());
    lost.notify_one();
    run.lost().await;
    run.finish(Outcome::Retry);
}
