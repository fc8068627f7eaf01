//! What bit other keyed schedulers. Each test is named after what went wrong there, with the
//! public thread it was reported in; what is tested elsewhere in more depth is named there.

use std::{
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use keyed_debounce::{
    Backoff, Debounce, Drain, Exponential, KeyState, KeyedDebouncer, Outcome, Run, Scheduled,
    SchedulerError,
};
use tokio::time::{Instant, sleep, timeout};

use crate::sim::{Sim, at, bounded, ms, secs};

const NOW: Debounce = Debounce::immediate();

/// D2 (kubernetes#126027, #112325): a delayed and an immediate add of one key ran twice.
#[test]
fn delayed_and_immediate_adds_are_one_record() {
    for delays in [[100, 0], [0, 100], [100, 100]] {
        let mut sim = Sim::new();
        for delay in delays {
            sim.request("a", delay, delay);
        }
        assert_eq!(sim.schedule.len(), 1);
        let run = sim.at(100).start("a");
        assert!(sim.take().is_none());
        sim.finish(run, Outcome::Done);
        assert!(sim.at(1000).take().is_none());
    }
}

/// D8 (kubernetes#132805): retries that events caused counted as failures, and the backoff exploded.
#[test]
fn runs_that_events_caused_are_no_failures() {
    let mut sim = Sim::new();
    let mut now = 0;
    for _ in 0..100 {
        sim.at(now).request("a", 10, 10);
        now += 10;
        let run = sim.at(now).start("a");
        assert_eq!(run.attempt, 1);
        sim.finish(run, Outcome::Retry);
        assert_eq!(sim.state("a"), Some(KeyState::Backoff { due_in: secs(20), failures: 1 }));
    }
}

/// D13 (kubernetes#83895): timers piled up, one for each turn of the loop. Here a thousand changes
/// of the head leave one timer: the keeper wakes up once for each, and once at the due.
#[tokio::test(start_paused = true)]
async fn timers_do_not_pile_up() {
    bounded();
    let queue = KeyedDebouncer::new();
    let polls = Arc::new(AtomicUsize::new(0));
    let waiter = tokio::spawn({
        let (queue, polls) = (queue.clone(), Arc::clone(&polls));
        async move {
            let mut next = Box::pin(queue.next());
            std::future::poll_fn(|cx| {
                polls.fetch_add(1, Ordering::SeqCst);
                next.as_mut().poll(cx)
            })
            .await
            .map(|run| *run.key())
        }
    });
    tokio::task::yield_now().await;
    for key in 0..1000 {
        queue.schedule(key, Debounce::after(secs(10_000 - key))).unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(polls.load(Ordering::SeqCst), 1001);
    assert_eq!(waiter.await.unwrap().unwrap(), 999);
    assert_eq!(polls.load(Ordering::SeqCst), 1002);
}

/// D18 (kubernetes#105031): popped slots kept references, 2 GB of them. See also `memory.rs`.
#[test]
fn popped_slots_keep_no_references() {
    struct Counted(u32, Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::SeqCst);
        }
    }
    impl std::hash::Hash for Counted {
        fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
            self.0.hash(state);
        }
    }
    impl PartialEq for Counted {
        fn eq(&self, other: &Self) -> bool {
            self.0 == other.0
        }
    }
    impl Eq for Counted {}

    let dropped = Arc::new(AtomicUsize::new(0));
    let queue = KeyedDebouncer::new();
    for _ in 0..2 {
        for key in 0..1000 {
            queue.schedule(Counted(key, Arc::clone(&dropped)), NOW).unwrap();
        }
    }
    assert_eq!(dropped.load(Ordering::SeqCst), 1000, "the joined ones, at once");
    for key in 0..500 {
        assert!(queue.cancel(&Counted(key, Arc::default())));
    }
    assert_eq!(dropped.load(Ordering::SeqCst), 1500);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        for taken in 1..=500 {
            queue.next().await.unwrap().finish(Outcome::Done);
            assert_eq!(dropped.load(Ordering::SeqCst), 1500 + taken);
        }
    });
}

/// D5, D15 (kubernetes#141079, #119554): a stray Done ran a key twice; shutdown raced. A ticket is
/// used up by `finish`, and one of another schedule is not known here.
#[test]
fn a_stray_done_is_not_possible() {
    let mut ours = Sim::new();
    let mut other = Sim::new();
    ours.request("a", 0, 0);
    other.request("b", 0, 0);
    let run = ours.start("a");
    // The same slot, the same moment; only the run number tells.
    let unrelated = other.start("b");
    other.finish(unrelated, Outcome::Done);
    other.request("b", 0, 0);
    let foreign = other.start("b");
    ours.finish(foreign, Outcome::Done);
    assert_eq!(ours.state("a"), Some(KeyState::Running { requested_again: false }));
    ours.finish(run, Outcome::Done);
    assert_eq!(ours.state("a"), None);
}

/// D15 (controller-runtime#3239): Get blocked for ever after a shutdown, whatever the order of wait
/// and close.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_for_ever_after_a_shutdown() {
    for _ in 0..300 {
        let queue = KeyedDebouncer::<u32>::new();
        let waiters: Vec<_> = (0..4)
            .map(|_| {
                let queue = queue.clone();
                tokio::spawn(async move { queue.next().await })
            })
            .collect();
        queue.close();
        for waiter in waiters {
            let end = timeout(secs(30), waiter).await.expect("it waits for ever").unwrap();
            assert!(matches!(end, Err(SchedulerError::Closed)));
        }
    }
}

/// D18 (controller-runtime#3538): the hand-off under the lock deadlocked. A runner may use the queue
/// in every way while it holds a run, and in the instant it gets it.
#[tokio::test(start_paused = true)]
async fn a_runner_may_use_the_queue() {
    bounded();
    let queue = KeyedDebouncer::new();
    queue.schedule(1, NOW).unwrap();
    let inner = queue.clone();
    let handler = move |run: Run<u32>| {
        let queue = inner.clone();
        async move {
            assert_eq!(queue.counts().running, 1);
            if *run.key() < 5 {
                queue.schedule(run.key() + 1, NOW).unwrap();
                queue.schedule(*run.key(), NOW).unwrap();
                queue.cancel(run.key());
            } else {
                queue.close();
            }
            run.finish(Outcome::Done);
        }
    };
    timeout(secs(9), queue.run(handler)).await.unwrap();
    assert!(queue.is_empty());
}

/// D11 (controller-runtime#3496): strict priority starved the others. There is none: a stream of
/// immediate keys does not hold up one that was asked for with a delay.
#[test]
fn urgent_keys_do_not_starve_a_slow_one() {
    let mut sim = Sim::new();
    sim.request("slow", 100, 100);
    let mut starts = 0;
    for now in 0..200 {
        sim.at(now).request("x", 0, 0);
        sim.request("y", 0, 0);
        let run = sim.take().unwrap();
        starts += 1;
        if *run.key == "slow" {
            // Those who became due before it go first, nobody else.
            assert!(now <= 102, "{now}");
            return;
        }
        sim.finish(run, Outcome::Done);
    }
    panic!("starved by {starts} runs");
}

/// D14 (kube#1772, tokio#5536): a delay over 2.18 years panicked; so did a process older than that.
#[tokio::test(start_paused = true)]
async fn delays_and_processes_older_than_two_years_are_fine() {
    bounded();
    let queue = KeyedDebouncer::new();
    tokio::time::advance(Duration::from_millis(1 << 37)).await;
    queue.schedule("a", Debounce::after(Duration::from_millis(1 << 37))).unwrap();
    let start = Instant::now();
    queue.next().await.unwrap().finish(Outcome::RetryAfter(Duration::from_millis(1 << 37)));
    queue.next().await.unwrap().finish(Outcome::Done);
    assert_eq!(start.elapsed(), Duration::from_millis(2 << 37));
}

/// D3 (tokio#849, #868, #2473, #8274): resetting or removing an entry that had expired but was not
/// taken yet: a wrong delay, a panic, a missed wake-up.
#[test]
fn expired_but_not_taken_is_a_state_of_its_own() {
    let mut sim = Sim::new();
    for key in ["a", "b", "c"] {
        sim.request(key, 10, 10);
    }
    sim.at(5000);
    assert_eq!(sim.request("a", 500, 5000), Scheduled::Joined);
    assert!(sim.cancel("b"));
    assert_eq!(sim.request("b", 10, 10), Scheduled::New);
    assert_eq!(sim.schedule.next_wake(), Some(at(10)), "no wake-up is missed");
    assert_eq!(sim.take_all(), ["a", "c"]);
    assert_eq!(sim.at(5010).take_all(), ["b"]);
}

/// D5 (kube#925): the completion path waited on the queue that it drains. Finishing never waits: one
/// task holds all runs and ends them.
#[tokio::test(start_paused = true)]
async fn completion_waits_for_nobody() {
    bounded();
    let queue = KeyedDebouncer::new();
    for key in 0..10_000 {
        queue.schedule(key, NOW).unwrap();
    }
    let mut runs = Vec::new();
    for _ in 0..10_000 {
        runs.push(queue.next().await.unwrap());
    }
    for run in runs {
        queue.schedule(*run.key(), NOW).unwrap();
        run.finish(Outcome::Retry);
    }
    assert_eq!(queue.counts().ready, 10_000);
}

/// D2, D6 (kube#318, #1247): the first debounce kept the first event and dropped the last; a steady
/// stream starved it.
#[test]
fn the_last_event_counts_and_a_stream_does_not_starve() {
    let mut sim = Sim::new();
    sim.request("a", 500, 2000);
    sim.at(400).request("a", 500, 2000);
    let run = sim.starts_exactly_at(900, "a");
    sim.request("a", 500, 2000);
    sim.finish(run, Outcome::Done);
    for now in (900..3000).step_by(100) {
        if sim.at(now).schedule.next_wake() <= Some(at(now)) {
            break;
        }
        sim.request("a", 500, 2000);
    }
    let _run = sim.starts_exactly_at(2900, "a");
}

/// D6 (bullmq#3151, #3427): events during an active job were dropped, for years, whatever way the
/// job ended.
#[test]
fn an_event_during_a_run_is_never_dropped() {
    for outcome in [
        Outcome::Done,
        Outcome::Retry,
        Outcome::RetryAfter(secs(9)),
        Outcome::RetryAfter(Duration::MAX),
        Outcome::Defer(secs(9)),
        Outcome::Defer(Duration::MAX),
    ] {
        let mut sim = Sim::new();
        sim.request("a", 0, 0);
        let run = sim.start("a");
        sim.request("a", 500, 500);
        sim.finish(run, outcome);
        assert_eq!(sim.starts_exactly_at(500, "a").attempt, 1);
    }
}

/// D2, D3 (lodash#2089, #1964): max wait left state behind; `max_wait == wait` was wrong; a late timer
/// fired twice. The table is in `deadlines.rs`.
#[test]
fn max_wait_leaves_nothing_behind() {
    let mut sim = Sim::new();
    for burst in 0..5 {
        let start = burst * 10_000;
        sim.at(start).request("a", 500, 500);
        sim.at(start + 499).request("a", 500, 500);
        let run = sim.starts_exactly_at(start + 500, "a");
        assert!(sim.at(start + 3000).take().is_none());
        sim.finish(run, Outcome::Done);
        assert_eq!(sim.schedule.next_wake(), None);
    }
}

/// D17 (tokio-retry#1, exponential-backoff#12, mulligan#31, backon#231): 2^n overflowed to a zero
/// delay, and jitter after the cap exceeded it. The properties are in `backoff.rs`.
#[test]
fn backoff_neither_overflows_nor_exceeds_its_cap() {
    let cap = secs(120);
    let backoff = Exponential::new(secs(20), 2, cap).with_jitter_percent(50);
    for failures in [1, 32, 63, 64, 65, 128, u32::MAX - 1, u32::MAX] {
        for random in [0, 1 << 40, u64::MAX] {
            let delay = backoff.delay(failures.try_into().unwrap(), random);
            assert!(delay >= secs(10) && delay <= cap, "{failures}: {delay:?}");
        }
    }
}

/// D5 (flux2#4120, pgroles#209): all due keys started at once after a restart, and the process ran
/// out of memory. Runs in parallel are bounded, and requests can be spread.
#[tokio::test(start_paused = true)]
async fn a_restart_does_not_start_everything_at_once() {
    bounded();
    let queue = KeyedDebouncer::builder().max_parallel(NonZeroUsize::new(4).unwrap()).build();
    for key in 0..1000 {
        queue.schedule(key, NOW).unwrap();
    }
    let most = Arc::new(AtomicUsize::new(0));
    let handler = {
        let (queue, most) = (queue.clone(), Arc::clone(&most));
        move |run: Run<i32>| {
            let (queue, most) = (queue.clone(), Arc::clone(&most));
            async move {
                most.fetch_max(queue.counts().running, Ordering::SeqCst);
                sleep(ms(1)).await;
                run.finish(Outcome::Done);
            }
        }
    };
    let (_, left) = tokio::join!(queue.run(handler), queue.drain(Drain::Ready, secs(60)));
    assert_eq!((most.load(Ordering::SeqCst), left.total()), (4, 0));
}
