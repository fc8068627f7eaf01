use std::time::Duration;

use crate::{Debounce, Outcome, testing::Op};

/// Fixed sequences: the plain cases of each rule, so that what is broken is called by its name before
/// random sequences find it in a tangle.
pub(super) struct Story {
    pub(super) rules: &'static str,
    pub(super) name: &'static str,
    pub(super) ops: Vec<Op>,
}

const TAKE: Op = Op::Take;
const DONE: Op = Op::Finish(0, Outcome::Done);
const RETRY: Op = Op::Finish(0, Outcome::Retry);

fn advance(ms: u64) -> Op {
    Op::Advance(Duration::from_millis(ms))
}

fn schedule(key: u32, quiet_ms: u64, max_wait_ms: u64) -> Op {
    let (quiet, max_wait) = (Duration::from_millis(quiet_ms), Duration::from_millis(max_wait_ms));
    Op::Schedule(key, Debounce::new(quiet, max_wait))
}

/// Key 0 is running.
fn runs() -> Vec<Op> {
    vec![schedule(0, 0, 0), TAKE]
}

fn after(start: Vec<Op>, rest: impl IntoIterator<Item = Op>) -> Vec<Op> {
    start.into_iter().chain(rest).collect()
}

fn repeated(times: usize, ops: &[Op]) -> Vec<Op> {
    ops.iter().copied().cycle().take(times * ops.len()).collect()
}

pub(super) fn stories() -> Vec<Story> {
    let mut stories = deadlines();
    stories.extend(runs_and_requests());
    stories.extend(outcomes());
    stories.extend(order_and_time());
    stories
}

fn deadlines() -> Vec<Story> {
    let story = |rules, name, ops| Story { rules, name, ops };
    vec![
        story(
            "D1",
            "a key runs when it was quiet, not before",
            vec![schedule(0, 500, 5000), TAKE, advance(499), TAKE, advance(1), TAKE, DONE],
        ),
        story(
            "D1",
            "max_wait below quiet is when it runs",
            vec![schedule(0, 500, 200), advance(199), TAKE, advance(1), TAKE, DONE],
        ),
        story(
            "D2",
            "each request of a burst puts the run off",
            after(
                repeated(5, &[schedule(0, 500, 5000), advance(400), TAKE]),
                [advance(99), TAKE, advance(1), TAKE, DONE],
            ),
        ),
        story(
            "D2, D4",
            "a steady stream cannot put the run off for ever",
            repeated(30, &[schedule(0, 500, 2000), advance(400), TAKE, DONE]),
        ),
        story(
            "D3",
            "a less urgent request delays nothing",
            vec![
                schedule(0, 500, 5000),
                advance(100),
                schedule(0, 180_000, 180_000),
                advance(399),
                TAKE,
                advance(1),
                TAKE,
                DONE,
            ],
        ),
        story(
            "D2",
            "a more urgent request brings the run forward",
            vec![schedule(0, 180_000, 180_000), schedule(0, 500, 5000), advance(500), TAKE, DONE],
        ),
        story(
            "D3",
            "a key that is due stays due, in its place",
            vec![
                schedule(0, 100, 100),
                schedule(1, 150, 150),
                advance(200),
                schedule(0, 100, 100),
                TAKE,
                TAKE,
                DONE,
                DONE,
            ],
        ),
    ]
}

fn runs_and_requests() -> Vec<Story> {
    let story = |rules, name, ops| Story { rules, name, ops };
    vec![
        story(
            "D5",
            "two runs of a key never overlap",
            after(runs(), [schedule(0, 0, 0), TAKE, advance(5000), TAKE, DONE, TAKE, DONE]),
        ),
        story(
            "D6",
            "a request during a run is not lost",
            after(runs(), [schedule(0, 500, 5000), advance(100), DONE, advance(400), TAKE, DONE]),
        ),
        story(
            "D6",
            "a request during a run that fails is not put off",
            after(runs(), [schedule(0, 500, 5000), RETRY, advance(500), TAKE, DONE]),
        ),
        story(
            "D6",
            "a request whose due has passed during the run is ready as it ends",
            after(runs(), [schedule(0, 500, 5000), advance(60_000), RETRY, TAKE, DONE]),
        ),
        story(
            "D9",
            "what is done is forgotten",
            after(runs(), [DONE, advance(3_600_000), TAKE, schedule(0, 0, 0), TAKE, DONE]),
        ),
        story(
            "D19",
            "cancel forgets what waits",
            vec![schedule(0, 500, 500), Op::Cancel(0), Op::Cancel(0), advance(500), TAKE],
        ),
        story(
            "D19",
            "cancel during a run forgets its outcome",
            after(runs(), [schedule(0, 0, 0), Op::Cancel(0), RETRY, advance(20_000), TAKE]),
        ),
        story(
            "D19",
            "a request after a cancel during a run counts",
            after(runs(), [Op::Cancel(0), schedule(0, 500, 500), DONE, advance(500), TAKE, DONE]),
        ),
        story(
            "D19",
            "a dropped `next` loses nothing",
            vec![schedule(0, 500, 500), TAKE, TAKE, advance(500), TAKE, DONE],
        ),
    ]
}

fn outcomes() -> Vec<Story> {
    let story = |rules, name, ops| Story { rules, name, ops };
    let fails_for = |ms: u64| [RETRY, advance(ms - 1), TAKE, advance(1), TAKE];
    let outcome = |outcome| Op::Finish(0, outcome);
    let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
    vec![
        story(
            "D7, D17",
            "failures in a row back off",
            after(
                runs(),
                [20_000, 40_000, 80_000, 120_000, 120_000].into_iter().flat_map(fails_for),
            ),
        ),
        story(
            "D7",
            "RetryAfter is a failure with a delay of its own",
            after(
                runs(),
                [outcome(Outcome::RetryAfter(second)), advance(999), TAKE, advance(1), TAKE, RETRY],
            ),
        ),
        story(
            "D7",
            "Defer is no failure",
            after(
                runs(),
                [
                    RETRY,
                    advance(20_000),
                    TAKE,
                    outcome(Outcome::Defer(minute)),
                    advance(60_000),
                    TAKE,
                ],
            ),
        ),
        story(
            "D8",
            "a request brings a key in backoff forward and resets its failures",
            after(runs(), [RETRY, schedule(0, 500, 5000), advance(500), TAKE, DONE]),
        ),
        story(
            "D8",
            "a request never puts a key in backoff off",
            after(
                runs(),
                [RETRY, advance(1000), schedule(0, 180_000, 180_000), advance(19_000), TAKE, DONE],
            ),
        ),
        story(
            "D10",
            "a run that is dropped is retried",
            after(runs(), [Op::Drop(0), TAKE, advance(20_000), TAKE, DONE]),
        ),
    ]
}

fn order_and_time() -> Vec<Story> {
    let story = |rules, name, ops| Story { rules, name, ops };
    vec![
        story(
            "D11",
            "due keys leave in order of due, then of first request",
            vec![
                schedule(0, 30, 30),
                schedule(1, 10, 10),
                schedule(2, 30, 5000),
                schedule(3, 20, 20),
                schedule(0, 30, 30),
                advance(100),
                TAKE,
                TAKE,
                TAKE,
                TAKE,
            ],
        ),
        story(
            "D11",
            "a key that is always due starves nobody",
            vec![
                schedule(0, 0, 0),
                TAKE,
                advance(1),
                schedule(0, 0, 0),
                schedule(1, 0, 0),
                advance(1),
                DONE,
                TAKE,
                TAKE,
            ],
        ),
        story(
            "D14",
            "delays without end and clocks that jump for years",
            vec![
                Op::Schedule(0, Debounce::after(Duration::MAX)),
                Op::Schedule(1, Debounce::new(Duration::MAX, Duration::from_millis(10))),
                Op::Schedule(2, Debounce::new(Duration::from_millis(20), Duration::MAX)),
                advance(1 << 37),
                TAKE,
                TAKE,
                TAKE,
                Op::Finish(0, Outcome::RetryAfter(Duration::MAX)),
                Op::Finish(0, Outcome::Defer(Duration::MAX)),
                Op::Schedule(0, Debounce::immediate()),
                TAKE,
            ],
        ),
    ]
}
