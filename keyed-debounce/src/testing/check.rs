use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use proptest::{
    strategy::{Strategy, ValueTree},
    test_runner::{Config, TestRunner},
};

use crate::{
    Debounce, Outcome, Run, ScheduleError, Scheduler, SchedulerError,
    testing::{Backend, Op, Violation, ops, stories::stories, trial::Trial},
};

/// How many random sequences [`check`] tries.
const SEQUENCES: u32 = 64;

/// Tries whether a scheduler keeps the rules: the plain cases of each, then wake-ups and shutdown, then
/// random sequences of operations, always the same ones, each made as short as possible if it fails.
///
/// What cannot be seen from outside is not checked: memory (D18), leases (D20), how many wake-ups there
/// are without need (D13); nor is what [`Backend::fresh`] leaves unset (D12, D16, rounds).
///
/// # Errors
///
/// The first [`Violation`] that was found.
///
/// # Cancel safety
///
/// A dropped check is over; the schedulers that it made are dropped with it.
#[expect(
    clippy::missing_panics_doc,
    reason = "the strategy rejects nothing, so it always gives a value"
)]
pub async fn check<B: Backend>(backend: &B) -> Result<(), Violation> {
    for story in stories() {
        let mut trial = Trial::new(backend).await;
        if let Err(what) = trial.run(&story.ops).await {
            let steps = trial.steps;
            return Err(Violation { rules: story.rules, check: story.name, what, steps });
        }
    }
    check_wake_ups(backend).await?;
    check_close(backend).await?;
    let config = Config { failure_persistence: None, ..Config::default() };
    let algorithm = config.rng_algorithm;
    let rng = proptest::test_runner::TestRng::deterministic_rng(algorithm);
    let mut runner = TestRunner::new_with_rng(config, rng);
    for _ in 0..SEQUENCES {
        let tree = ops(0..80).new_tree(&mut runner);
        let mut tree = tree.expect("the strategy rejects nothing");
        if let Err(found) = check_ops(backend, &tree.current()).await {
            return Err(shortest(backend, &mut tree, found).await);
        }
    }
    Ok(())
}

/// Tries one sequence of operations, from [`ops`](crate::testing::ops) or written by hand, against
/// the [`Model`](crate::testing::Model), and lets the scheduler run out afterwards.
///
/// # Errors
///
/// A [`Violation`] if the scheduler did anything else than the model.
///
/// # Cancel safety
///
/// As for [`check`].
pub async fn check_ops<B: Backend>(backend: &B, ops: &[Op]) -> Result<(), Violation> {
    let mut trial = Trial::new(backend).await;
    let result = trial.run(ops).await;
    result.map_err(|what| Violation {
        rules: "D1 to D11, D14, D19",
        check: "a sequence of operations",
        what: format!("{what} (after {:?})", trial.elapsed()),
        steps: trial.steps,
    })
}

/// Makes a failing sequence as short as proptest can.
async fn shortest<B: Backend>(
    backend: &B,
    tree: &mut impl ValueTree<Value = Vec<Op>>,
    mut found: Violation,
) -> Violation {
    let mut more = tree.simplify();
    while more {
        more = match check_ops(backend, &tree.current()).await {
            Err(shorter) => {
                found = shorter;
                tree.simplify()
            }
            Ok(()) => tree.complicate(),
        };
    }
    found
}

struct WakeCounter(AtomicUsize);

impl Wake for WakeCounter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A call of `next` that is polled when it is woken, and only then.
struct Sleeper<'a, K> {
    next: Pin<Box<dyn Future<Output = Result<Run<K>, SchedulerError>> + Send + 'a>>,
    wakes: Arc<WakeCounter>,
    seen: usize,
}

impl<'a, K: 'a> Sleeper<'a, K> {
    /// Falls asleep.
    fn new(scheduler: &'a impl Scheduler<K>) -> Self {
        let wakes = Arc::new(WakeCounter(AtomicUsize::new(1)));
        Self { next: Box::pin(scheduler.next()), wakes, seen: 0 }
    }

    fn poll_if_woken(&mut self) -> Poll<Result<Run<K>, SchedulerError>> {
        let wakes = self.wakes.0.load(Ordering::SeqCst);
        if wakes == self.seen {
            return Poll::Pending;
        }
        self.seen = wakes;
        let waker = Waker::from(Arc::clone(&self.wakes));
        self.next.as_mut().poll(&mut Context::from_waker(&waker))
    }

    async fn answer<B: Backend>(&mut self, backend: &B) -> Poll<Result<Run<K>, SchedulerError>> {
        for _ in 0..4 {
            if let Poll::Ready(answer) = self.poll_if_woken() {
                return Poll::Ready(answer);
            }
            backend.settle().await;
        }
        Poll::Pending
    }
}

/// Those who wait are woken by a request, by time, by the end of a run, and by one another.
async fn check_wake_ups<B: Backend>(backend: &B) -> Result<(), Violation> {
    let broken = |what: &str| Violation {
        rules: "D4, D13, D19",
        check: "who waits for a run is woken",
        what: what.to_owned(),
        steps: Vec::new(),
    };
    let delay = Duration::from_secs(10);
    let scheduler = backend.fresh().await;
    let schedule = async |key: u32, debounce| {
        let answer = scheduler.schedule(backend.key(key), debounce).await;
        answer.map_err(|refused| broken(&format!("a request was refused: {refused}")))
    };
    let mut first = Sleeper::new(&scheduler);
    let mut second = Sleeper::new(&scheduler);
    for sleeper in [&mut first, &mut second] {
        if sleeper.answer(backend).await.is_ready() {
            return Err(broken("`next` returned, but no key was requested"));
        }
    }
    schedule(0, Debounce::after(delay)).await?;
    schedule(1, Debounce::after(delay * 2)).await?;
    schedule(2, Debounce::immediate()).await?;
    backend.advance(backend.tolerance()).await;
    let (mut runs, mut asleep) = (Vec::new(), vec![first, second]);
    expect_one(backend, &mut asleep, &mut runs)
        .await
        .map_err(|()| broken("a request that is due woke nobody"))?;
    backend.advance(delay + backend.tolerance()).await;
    expect_one(backend, &mut asleep, &mut runs)
        .await
        .map_err(|()| broken("a key became due and nobody was woken"))?;
    asleep.push(Sleeper::new(&scheduler));
    asleep.push(Sleeper::new(&scheduler));
    for sleeper in &mut asleep {
        if sleeper.answer(backend).await.is_ready() {
            return Err(broken("a key was handed out before it was due"));
        }
    }
    // The one that is most likely to keep the timer goes.
    drop(asleep.remove(0));
    backend.advance(delay + backend.tolerance()).await;
    expect_one(backend, &mut asleep, &mut runs)
        .await
        .map_err(|()| broken("one who waited was dropped, and the other was not woken"))?;
    asleep.push(Sleeper::new(&scheduler));
    for sleeper in &mut asleep {
        let _still_asleep = sleeper.answer(backend).await;
    }
    schedule(0, Debounce::immediate()).await?;
    schedule(1, Debounce::immediate()).await?;
    schedule(2, Debounce::immediate()).await?;
    runs.into_iter().for_each(|run| run.finish(Outcome::Done));
    let mut runs = Vec::new();
    backend.advance(backend.tolerance()).await;
    expect_one(backend, &mut asleep, &mut runs)
        .await
        .map_err(|()| broken("a run ended, its key is due again, and nobody was woken"))
}

/// One of the sleepers gets a run.
async fn expect_one<B: Backend>(
    backend: &B,
    asleep: &mut Vec<Sleeper<'_, B::Key>>,
    runs: &mut Vec<Run<B::Key>>,
) -> Result<(), ()> {
    for _ in 0..4 {
        for number in 0..asleep.len() {
            if let Poll::Ready(Ok(run)) = asleep[number].poll_if_woken() {
                runs.push(run);
                drop(asleep.remove(number));
                return Ok(());
            }
        }
        backend.settle().await;
    }
    Err(())
}

async fn check_close<B: Backend>(backend: &B) -> Result<(), Violation> {
    let broken = |what: &str| Violation {
        rules: "D15",
        check: "close wakes and refuses everybody, twice is fine",
        what: what.to_owned(),
        steps: Vec::new(),
    };
    let scheduler = backend.fresh().await;
    let refused = |key| scheduler.schedule(backend.key(key), Debounce::immediate());
    if refused(0).await.is_err() {
        return Err(broken("a request was refused before the close"));
    }
    let mut taken = pin!(scheduler.next());
    backend.advance(backend.tolerance()).await;
    let mut run = None;
    for _ in 0..4 {
        match poll_fn(|cx| Poll::Ready(taken.as_mut().poll(cx))).await {
            Poll::Ready(Ok(taken)) => {
                run = Some(taken);
                break;
            }
            Poll::Ready(Err(failed)) => return Err(broken(&format!("`next` failed: {failed}"))),
            Poll::Pending => backend.settle().await,
        }
    }
    let Some(run) = run else { return Err(broken("a key that is due was not handed out")) };
    let mut asleep = [Sleeper::new(&scheduler), Sleeper::new(&scheduler)];
    for sleeper in &mut asleep {
        let _still_asleep = sleeper.answer(backend).await;
    }
    scheduler.close().await;
    scheduler.close().await;
    for sleeper in &mut asleep {
        match sleeper.answer(backend).await {
            Poll::Ready(Err(SchedulerError::Closed)) => {}
            Poll::Ready(_) => return Err(broken("`next` did not say that it is closed")),
            Poll::Pending => return Err(broken("one who waited was not woken")),
        }
    }
    if !matches!(refused(1).await, Err(ScheduleError::Closed(key)) if key == backend.key(1)) {
        return Err(broken("a request after the close was not refused as closed"));
    }
    if !matches!(scheduler.next().await, Err(SchedulerError::Closed)) {
        return Err(broken("`next` after the close did not say that it is closed"));
    }
    run.finish(Outcome::Done);
    backend.settle().await;
    Ok(())
}
