//! Every order in which a few callers can go through the wake-up path.
//!
//! All that callers share is changed under one lock, and waking comes after it. So what threads can
//! do to each other is to take their steps in another order, and to look later at a wake-up: both
//! are tried here, all of them, by polling futures by hand.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use keyed_debounce::{Counts, Debounce, KeyedDebouncer, Outcome, Run, SchedulerError};
use tokio::time::advance;

use crate::sim::ms;

/// One step of a caller.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Polls the `next()` of this waiter, which begins with that.
    Poll(usize),
    /// Polls it as a runtime would: if it was woken.
    Look(usize),
    /// Drops the `next()` of this waiter.
    Drop(usize),
    /// Requests the key, due so many milliseconds later.
    Schedule(u32, u64),
    Cancel(u32),
    /// Ends the oldest run that is on, if there is one.
    Finish(Outcome),
    /// As much time goes by.
    Elapse(u64),
    Close,
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

type Next = Pin<Box<dyn Future<Output = Result<Run<u32>, SchedulerError>>>>;

#[derive(Default)]
struct Waiter {
    next: Option<Next>,
    woken: Arc<Flag>,
    was_closed: bool,
}

struct World {
    queue: KeyedDebouncer<u32>,
    waiters: Vec<Waiter>,
    runs: Vec<Run<u32>>,
    closed: bool,
}

impl World {
    fn new() -> Self {
        let waiters = (0..3).map(|_| Waiter::default()).collect();
        Self { queue: KeyedDebouncer::new(), waiters, runs: Vec::new(), closed: false }
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Poll(waiter) => {
                let queue = self.queue.clone();
                let next = async move { queue.next().await };
                self.waiters[waiter].next.get_or_insert_with(|| Box::pin(next));
                self.poll(waiter);
            }
            Step::Look(waiter) => self.look(waiter),
            Step::Drop(waiter) => self.waiters[waiter].next = None,
            Step::Schedule(key, delay) => {
                let answer = self.queue.schedule(key, Debounce::after(ms(delay)));
                assert_eq!(answer.is_err(), self.closed);
            }
            Step::Cancel(key) => {
                self.queue.cancel(&key);
            }
            Step::Finish(outcome) => {
                if !self.runs.is_empty() {
                    self.runs.remove(0).finish(outcome);
                }
            }
            Step::Elapse(by) => advance(ms(by)).await,
            Step::Close => {
                self.queue.close();
                self.closed = true;
            }
        }
    }

    fn look(&mut self, waiter: usize) {
        if self.waiters[waiter].woken.0.swap(false, Ordering::SeqCst) {
            self.poll(waiter);
        }
    }

    fn poll(&mut self, waiter: usize) {
        let Waiter { next, woken, was_closed } = &mut self.waiters[waiter];
        let Some(future) = next else { return };
        let waker = Waker::from(Arc::clone(woken));
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => {}
            Poll::Ready(answer) => {
                *next = None;
                match answer {
                    Ok(run) => {
                        let twice = self.runs.iter().any(|other| other.key() == run.key());
                        assert!(!twice, "D5: {} runs twice", run.key());
                        self.runs.push(run);
                    }
                    Err(_) => *was_closed = true,
                }
            }
        }
    }

    /// A runtime polls who was woken, until nobody is.
    fn settle(&mut self) {
        for _ in 0..100 {
            if !self.waiters.iter().any(|waiter| waiter.woken.0.load(Ordering::SeqCst)) {
                return;
            }
            (0..self.waiters.len()).for_each(|waiter| self.look(waiter));
        }
        panic!("D13: they wake each other for ever");
    }

    /// Nobody who waits may be left without what there is.
    fn check(&self) {
        let Counts { ready, .. } = self.queue.counts();
        let waiting = self.waiters.iter().filter(|waiter| waiter.next.is_some()).count();
        assert!(waiting == 0 || ready == 0, "a wake-up was lost: {ready} keys, {waiting} waiters");
        assert!(waiting == 0 || !self.closed, "a waiter was not told that it is over");
        assert!(self.closed || self.waiters.iter().all(|waiter| !waiter.was_closed));
    }
}

/// Takes the steps of all callers in each possible order. Returns how many orders there were.
fn in_every_order(callers: &[&[Step]]) -> usize {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.unwrap();
    let mut orders = 0;
    let mut stack = vec![(vec![0; callers.len()], Vec::new())];
    while let Some((taken, steps)) = stack.pop() {
        let mut is_whole = true;
        for (caller, script) in callers.iter().enumerate() {
            if let Some(&step) = script.get(taken[caller]) {
                is_whole = false;
                let mut taken = taken.clone();
                taken[caller] += 1;
                let mut steps = steps.clone();
                steps.push(step);
                stack.push((taken, steps));
            }
        }
        if is_whole {
            orders += 1;
            runtime.block_on(one_order(&steps));
        }
    }
    orders
}

async fn one_order(steps: &[Step]) {
    let report = Report(steps);
    let mut world = World::new();
    for &step in steps {
        world.step(step).await;
    }
    world.settle();
    world.check();
    // Then what was due later: the timer is with somebody who still waits.
    for _ in 0..3 {
        advance(ms(100)).await;
        world.settle();
        world.check();
    }
    drop(report);
}

/// Says which order it was, when a check fails.
struct Report<'a>(&'a [Step]);

impl Drop for Report<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("in this order: {:?}", self.0);
        }
    }
}

/// D4, D13, D19: two who wait, one of whom gives up, beside requests now and later.
#[test]
fn no_order_of_requests_and_drops_loses_a_wake_up() {
    let orders = in_every_order(&[
        &[Step::Poll(0), Step::Look(0)],
        &[Step::Poll(1), Step::Look(1), Step::Drop(1)],
        &[Step::Schedule(1, 0), Step::Schedule(2, 50)],
        &[Step::Schedule(3, 10), Step::Elapse(10)],
    ]);
    assert_eq!(orders, 7560);
}

/// D5, D6, D10, D19: runs that end, with a request in between, beside a cancel.
#[test]
fn no_order_of_finishes_and_cancels_loses_a_wake_up() {
    let orders = in_every_order(&[
        &[Step::Poll(0), Step::Look(0), Step::Finish(Outcome::Done)],
        &[Step::Poll(1), Step::Look(1), Step::Finish(Outcome::RetryAfter(ms(5)))],
        &[Step::Schedule(1, 0), Step::Schedule(1, 0)],
        &[Step::Cancel(1)],
    ]);
    assert_eq!(orders, 5040);
}

/// D15, D19: somebody closes while others come, wait, give up and request.
#[test]
fn no_order_of_closing_leaves_a_waiter() {
    let orders = in_every_order(&[
        &[Step::Poll(0), Step::Look(0)],
        &[Step::Poll(1), Step::Drop(1)],
        &[Step::Close, Step::Poll(2)],
        &[Step::Elapse(5), Step::Finish(Outcome::Retry)],
    ]);
    assert_eq!(orders, 2520);
}

/// D13, D19: the head of the queue moves earlier and goes away while the keeper of the timer leaves.
#[test]
fn no_order_of_earlier_heads_loses_the_timer() {
    let orders = in_every_order(&[
        &[Step::Poll(0), Step::Drop(0)],
        &[Step::Poll(1), Step::Look(1)],
        &[Step::Schedule(1, 50), Step::Schedule(1, 5), Step::Cancel(1)],
        &[Step::Schedule(2, 20), Step::Elapse(20)],
    ]);
    assert_eq!(orders, 7560);
}
