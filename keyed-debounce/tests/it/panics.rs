//! Panics of others: in handlers, in `Hash`, `Eq` and `Drop` of the key, in observers and backoffs.

use std::{
    future::Future,
    hash::{Hash, Hasher},
    num::NonZeroU32,
    panic::{AssertUnwindSafe, catch_unwind, panic_any},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Wake, Waker},
    time::Duration,
};

use keyed_debounce::{Debounce, Drain, Event, KeyState, KeyedDebouncer, Outcome, Scheduled};
use tokio::time::timeout;

use crate::sim::{bounded, ms, secs};

const NOW: Debounce = Debounce::immediate();

fn panics(call: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(call)).is_err()
}

/// D5, D10: a handler that panics, before or after its first await, fails its own key alone.
#[tokio::test(start_paused = true)]
async fn a_panic_in_a_handler_is_a_retry_of_that_key_alone() {
    bounded();
    let queue = KeyedDebouncer::new();
    for key in ["good", "panics at once", "panics later", "better"] {
        queue.schedule(key, NOW).unwrap();
    }
    let done = Arc::new(AtomicUsize::new(0));
    let runner = tokio::spawn({
        let (queue, done) = (queue.clone(), Arc::clone(&done));
        async move {
            let handler = move |run: keyed_debounce::Run<&'static str>| {
                assert_ne!(*run.key(), "panics at once");
                let done = Arc::clone(&done);
                async move {
                    tokio::task::yield_now().await;
                    assert_ne!(*run.key(), "panics later");
                    done.fetch_add(1, Ordering::SeqCst);
                    run.finish(Outcome::Done);
                }
            };
            queue.run(handler).await;
        }
    });
    tokio::time::sleep(secs(1)).await;
    assert_eq!(done.load(Ordering::SeqCst), 2);
    for key in ["panics at once", "panics later"] {
        let state = KeyState::Backoff { due_in: secs(19), failures: 1 };
        assert_eq!(queue.state(&key), Some(state));
    }
    queue.drain(Drain::Running, secs(1)).await;
    runner.await.unwrap();
}

/// A key whose `Hash` or `Eq` panics when it is told to.
#[derive(Clone, Debug)]
struct Explosive {
    name: u32,
    in_hash: Arc<AtomicBool>,
    in_eq: Arc<AtomicBool>,
}

impl Explosive {
    fn new(name: u32) -> Self {
        Self { name, in_hash: Arc::default(), in_eq: Arc::default() }
    }
}

impl Hash for Explosive {
    fn hash<H: Hasher>(&self, state: &mut H) {
        assert!(!self.in_hash.load(Ordering::SeqCst), "hash explodes");
        // All in one chain, so that `Eq` is called.
        0_u8.hash(state);
    }
}

impl PartialEq for Explosive {
    fn eq(&self, other: &Self) -> bool {
        let told = self.in_eq.load(Ordering::SeqCst) || other.in_eq.load(Ordering::SeqCst);
        assert!(!told, "eq explodes");
        self.name == other.name
    }
}

impl Eq for Explosive {}

/// D18: a panic in `Hash` or `Eq` reaches the caller, changes nothing and wedges nobody.
#[tokio::test(start_paused = true)]
async fn a_panic_in_hash_or_eq_changes_nothing() {
    bounded();
    let queue = KeyedDebouncer::new();
    let keys: Vec<_> = (0..4).map(Explosive::new).collect();
    queue.schedule(keys[0].clone(), NOW).unwrap();
    queue.schedule(keys[1].clone(), Debounce::after(ms(100))).unwrap();
    let run = queue.next().await.unwrap();
    for bomb in [&keys[3].in_hash, &keys[3].in_eq] {
        bomb.store(true, Ordering::SeqCst);
        assert!(panics(|| drop(queue.schedule(keys[3].clone(), NOW))));
        assert!(panics(|| _ = queue.cancel(&keys[3])));
        assert!(panics(|| _ = queue.state(&keys[3])));
        bomb.store(false, Ordering::SeqCst);
        assert_eq!(queue.counts().total(), 2);
    }
    assert_eq!(queue.schedule(keys[0].clone(), NOW).unwrap(), Scheduled::AfterRun);
    assert_eq!(queue.schedule(keys[3].clone(), NOW).unwrap(), Scheduled::New);
    run.finish(Outcome::Done);
    let mut left = Vec::new();
    while let Ok(run) = timeout(secs(1), queue.next()).await {
        let run = run.unwrap();
        left.push(run.key().name);
        // Nothing of the key is called when a run ends, so it cannot fail.
        run.key().in_hash.store(true, Ordering::SeqCst);
        run.key().in_eq.store(true, Ordering::SeqCst);
        run.finish(Outcome::Done);
    }
    assert_eq!(left, [0, 3, 1]);
    assert!(queue.is_empty());
}

/// D5: a panicking observer is caught at each event, also when a run ends because its thread
/// panics, where a second panic would end the process.
#[tokio::test(start_paused = true)]
async fn a_panic_in_an_observer_is_its_own() {
    bounded();
    let seen = Arc::new(AtomicUsize::new(0));
    let queue = KeyedDebouncer::builder()
        .observer(|_: &Event<'_, &'static str>| panic!("observer explodes"))
        .observer(|_: &Event<'_, &'static str>| panic_any(DropBomb))
        .observer({
            let seen = Arc::clone(&seen);
            move |_: &Event<'_, &'static str>| {
                seen.fetch_add(1, Ordering::SeqCst);
            }
        })
        .build();
    queue.schedule("a", NOW).unwrap();
    let run = queue.next().await.unwrap();
    assert!(panics(move || {
        let _run = run;
        panic!("the work explodes");
    }));
    assert_eq!(queue.counts().backoff, 1);
    assert!(queue.cancel(&"a"));
    queue.close();
    // Scheduled, started, finished, cancelled, closed.
    assert_eq!(seen.load(Ordering::SeqCst), 5);
}

struct DropBomb;

impl Drop for DropBomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("what was thrown explodes");
        }
    }
}

/// D10, D17: a backoff that panics counts as the default one, also while a thread panics.
#[tokio::test(start_paused = true)]
async fn a_panic_in_a_backoff_falls_back_to_the_default() {
    bounded();
    let queue = KeyedDebouncer::builder()
        .backoff(|_: NonZeroU32, _: u64| -> Duration { panic_any(DropBomb) })
        .build();
    queue.schedule("a", NOW).unwrap();
    let run = queue.next().await.unwrap();
    assert!(panics(move || {
        let _run = run;
        panic!("the work explodes");
    }));
    let backoff = KeyState::Backoff { due_in: secs(20), failures: 1 };
    assert_eq!(queue.state(&"a"), Some(backoff));
    queue.schedule("a", NOW).unwrap();
    queue.next().await.unwrap().finish(Outcome::Retry);
    assert_eq!(queue.state(&"a"), Some(backoff), "what was thrown explodes when it is dropped");
}

/// A waker that panics, as one of a broken executor may.
struct ExplosiveWaker;

impl Wake for ExplosiveWaker {
    fn wake(self: Arc<Self>) {
        panic!("the waker explodes");
    }
}

/// D10, D15: a panic in a waker is its own, also when a run ends because its thread panics: the run
/// is settled, and whoever else waits is woken.
#[tokio::test(start_paused = true)]
async fn a_panic_in_a_waker_is_its_own() {
    bounded();
    let queue = KeyedDebouncer::builder()
        .backoff(|_: NonZeroU32, _: u64| -> Duration { Duration::ZERO })
        .build();
    queue.schedule("a", NOW).unwrap();
    let run = queue.next().await.unwrap();
    let waker = Waker::from(Arc::new(ExplosiveWaker));
    let mut cx = Context::from_waker(&waker);
    let mut explodes = Box::pin(queue.next());
    let mut again = Box::pin(run.scheduled_again());
    assert!(explodes.as_mut().poll(&mut cx).is_pending());
    assert!(again.as_mut().poll(&mut cx).is_pending());
    let other = tokio::spawn({
        let queue = queue.clone();
        async move { queue.next().await.map(|run| run.attempt()) }
    });
    tokio::task::yield_now().await;
    queue.schedule("a", NOW).unwrap();
    assert!(again.as_mut().poll(&mut cx).is_ready());
    drop(again);
    assert!(panics(move || {
        let _run = run;
        panic!("the work explodes");
    }));
    assert_eq!(queue.state(&"a"), Some(KeyState::Ready));
    assert!(explodes.as_mut().poll(&mut cx).is_ready());
    let mut explodes = Box::pin(queue.next());
    queue.cancel(&"a");
    assert!(explodes.as_mut().poll(&mut cx).is_pending());
    queue.close();
    let told = timeout(secs(1), other).await.expect("it is told, too").unwrap();
    assert!(told.is_err());
}

/// A queue of keys that look at their queue when they are dropped.
struct Reentrant {
    queue: KeyedDebouncer<DropCalls>,
    calls: Arc<AtomicUsize>,
}

#[derive(Clone)]
struct DropCalls(u32, std::sync::Weak<Reentrant>);

impl Drop for DropCalls {
    fn drop(&mut self) {
        if let Some(owner) = self.1.upgrade() {
            owner.calls.fetch_add(1, Ordering::SeqCst);
            let _counts = owner.queue.counts();
        }
    }
}

impl Hash for DropCalls {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl PartialEq for DropCalls {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for DropCalls {}

/// D18: keys are dropped outside the lock: a key whose `Drop` calls the queue does not deadlock,
/// whether it joined, was cancelled, was done or was remembered for its interval.
#[tokio::test(start_paused = true)]
async fn a_key_may_call_the_queue_when_it_is_dropped() {
    bounded();
    let owner = Arc::new(Reentrant {
        queue: KeyedDebouncer::builder().min_interval(secs(1)).build(),
        calls: Arc::default(),
    });
    let key = || DropCalls(1, Arc::downgrade(&owner));
    let calls = || owner.calls.swap(0, Ordering::SeqCst);
    owner.queue.schedule(key(), NOW).unwrap();
    assert_eq!(calls(), 0);
    owner.queue.schedule(key(), NOW).unwrap();
    assert_eq!(calls(), 1, "joined");
    owner.queue.next().await.unwrap().finish(Outcome::Done);
    assert_eq!(calls(), 0, "remembered");
    tokio::time::advance(secs(1)).await;
    owner.queue.cancel(&DropCalls(9, std::sync::Weak::new()));
    assert_eq!(calls(), 1, "forgotten");
    owner.queue.schedule(key(), NOW).unwrap();
    owner.queue.cancel(&DropCalls(1, std::sync::Weak::new()));
    assert_eq!(calls(), 1, "cancelled");
}
