//! L10: what servers say is heard, and nobody can switch a host off for others.

use std::time::Duration;

use domain_throttle::{
    Denied, DomainState, DomainThrottle, Endpoint, Feedback, Moment, Refusal, Throttle, ThrottleExt,
};
use proptest::prelude::*;
use tokio::time::Instant;

use crate::support::{at, bounded, limits, secs};

const DAY: Duration = secs(86_400);

fn after(time: Duration) -> Moment {
    Moment::ZERO.saturating_add(time)
}

fn core() -> DomainState<()> {
    DomainState::new(limits(5, 30, secs(60)))
}

fn report(core: &mut DomainState<()>, now: Moment, at: &Endpoint, key: &str, feedback: Feedback) {
    let grant = core.try_take(now, at, key).unwrap_or_else(|no| panic!("{key} at {now:?}: {no:?}"));
    core.settle(now, grant, at, feedback);
}

fn paused(until: Duration) -> Result<(), Refusal> {
    Err(Refusal::Paused { until: after(until) })
}

/// L10: a domain that asked one key to stay away is paused for what it asked, for one window at
/// most; the key for all of it.
#[test]
fn the_first_retry_after_holds_others_for_one_window_at_most() {
    let server = at("https://h.example");
    for (asked, domain) in [(10, 10), (60, 60), (3_600, 60)] {
        let mut core = core();
        report(&mut core, Moment::ZERO, &server, "a", Feedback::RetryAfter(secs(asked)));
        assert_eq!(core.check(Moment::ZERO, &server, "b"), paused(secs(domain)));
        assert_eq!(core.check(after(secs(domain)), &server, "b"), Ok(()));
        assert_eq!(core.check(Moment::ZERO, &server, "a"), paused(secs(asked)));
        let just_before = Moment::from_nanos(after(secs(asked)).as_nanos() - 1);
        assert_eq!(core.check(just_before, &server, "a"), paused(secs(asked)));
        assert_eq!(core.check(after(secs(asked)), &server, "a"), Ok(()));
    }
}

/// L10: after answers to two different keys the whole domain is left alone for as long as asked, a
/// day at most.
#[test]
fn two_keys_that_are_told_to_stay_away_pause_the_domain_for_as_long_as_asked() {
    let server = at("https://h.example");
    for (asked, pause) in [(secs(3_600), secs(3_600)), (3 * DAY, DAY), (Duration::MAX, DAY)] {
        let mut core = core();
        report(&mut core, Moment::ZERO, &server, "a", Feedback::RetryAfter(secs(60)));
        let now = secs(60);
        report(&mut core, after(now), &server, "b", Feedback::RetryAfter(asked));
        assert_eq!(core.check(after(now), &server, "c"), paused(now + pause));
        assert_eq!(core.check(after(now + pause), &server, "c"), Ok(()));
    }
}

/// L10: one key that is told again and again is still one key.
#[test]
fn one_key_that_is_told_twice_pauses_others_for_one_window_at_most() {
    let server = at("https://h.example");
    let mut core = core();
    report(&mut core, Moment::ZERO, &server, "a", Feedback::RetryAfter(secs(10)));
    report(&mut core, after(secs(10)), &server, "a", Feedback::RetryAfter(secs(3_600)));
    assert_eq!(core.check(after(secs(10)), &server, "b"), paused(secs(70)));
    assert_eq!(core.check(after(secs(10)), &server, "a"), paused(secs(3_610)));
}

/// L10: answers that were on their way when the pause began count as well.
#[test]
fn five_answers_at_once_are_five_answers() {
    let server = at("https://h.example");
    let mut core = core();
    let grants: Vec<_> = (0..5)
        .map(|n| core.try_take(Moment::ZERO, &server, &n.to_string()).expect("open"))
        .collect();
    for grant in grants {
        core.settle(Moment::ZERO, grant, &server, Feedback::RetryAfter(secs(600)));
    }
    assert_eq!(core.check(Moment::ZERO, &server, "x"), paused(secs(600)));
}

/// L10: an answer to a later request takes the suspicion back; so does time.
#[test]
fn an_answer_or_time_takes_the_suspicion_back() {
    let server = at("https://h.example");
    let mut core = core();
    report(&mut core, Moment::ZERO, &server, "a", Feedback::RetryAfter(secs(60)));
    report(&mut core, after(secs(60)), &server, "b", Feedback::Ok);
    report(&mut core, after(secs(61)), &server, "c", Feedback::RetryAfter(DAY));
    assert_eq!(core.check(after(secs(61)), &server, "d"), paused(secs(121)));
    // Kept for twice the last pause after its end.
    report(&mut core, after(secs(121 + 120)), &server, "d", Feedback::RetryAfter(DAY));
    assert_eq!(core.check(after(secs(241)), &server, "e"), paused(secs(301)));
    // Just inside of it.
    let now = secs(301 + 120) - Duration::from_nanos(1);
    report(&mut core, after(now), &server, "e", Feedback::RetryAfter(secs(600)));
    assert_eq!(core.check(after(now), &server, "f"), paused(now + secs(600)));
}

/// L10: zero seconds is no reason to wait, and a pause is never made shorter.
#[test]
fn a_short_retry_after_shortens_nothing() {
    let server = at("https://h.example");
    let mut core = core();
    let late = core.try_take(Moment::ZERO, &server, "b").expect("open");
    report(&mut core, Moment::ZERO, &server, "a", Feedback::RetryAfter(Duration::ZERO));
    assert_eq!(core.check(Moment::ZERO, &server, "a"), Ok(()));
    report(&mut core, Moment::ZERO, &server, "a", Feedback::RetryAfter(secs(50)));
    core.settle(Moment::ZERO, late, &server, Feedback::RetryAfter(secs(1)));
    assert_eq!(core.check(Moment::ZERO, &server, "c"), paused(secs(50)));
}

/// L10: the fourth report in a row pauses the endpoint, for 60 s, then for twice as long after each
/// probe that finds it broken, 12 h at most; an answer ends it.
#[test]
fn a_broken_endpoint_is_paused_longer_and_longer() {
    let (server, other) = (at("https://h.example"), at("https://h.example:8443"));
    let mut core = core();
    for _ in 0..3 {
        report(&mut core, Moment::ZERO, &server, "a", Feedback::Broken);
        assert_eq!(core.check(Moment::ZERO, &server, "a"), Ok(()));
    }
    report(&mut core, Moment::ZERO, &server, "a", Feedback::Broken);
    let (mut now, mut pause) = (Duration::ZERO, secs(60));
    for round in 0..14 {
        assert_eq!(core.check(after(now), &server, "b"), paused(now + pause), "round {round}");
        assert_eq!(core.check(after(now), &other, "b"), Ok(()), "never the domain");
        now += pause;
        report(&mut core, after(now), &server, "b", Feedback::Broken);
        pause = (2 * pause).min(secs(12 * 3_600));
    }
    assert_eq!(pause, secs(12 * 3_600));
    now += pause;
    report(&mut core, after(now), &server, "b", Feedback::Ok);
    for _ in 0..3 {
        report(&mut core, after(now), &server, "b", Feedback::Broken);
    }
    assert_eq!(core.check(after(now), &server, "b"), Ok(()), "its name is cleared");
}

/// L10: reports in a row: anything else in between begins anew.
#[test]
fn reports_that_are_not_in_a_row_pause_nothing() {
    let server = at("https://h.example");
    for between in [Feedback::Ok, Feedback::Failed, Feedback::RetryAfter(Duration::ZERO)] {
        let mut core = core();
        for _ in 0..3 {
            for _ in 0..3 {
                report(&mut core, Moment::ZERO, &server, "a", Feedback::Broken);
            }
            report(&mut core, Moment::ZERO, &server, "a", between);
        }
        assert_eq!(core.check(Moment::ZERO, &server, "a"), Ok(()), "{between:?}");
    }
}

/// L10: five requests that were on together are one bad moment, not two.
#[test]
fn reports_of_permits_granted_before_a_pause_count_once() {
    let server = at("https://h.example");
    let mut core = core();
    let grants: Vec<_> = (0..5)
        .map(|n| core.try_take(Moment::ZERO, &server, &n.to_string()).expect("open"))
        .collect();
    for (grant, late) in grants.into_iter().zip([0, 0, 0, 0, 30]) {
        core.settle(after(secs(late)), grant, &server, Feedback::Broken);
    }
    assert_eq!(core.check(after(secs(30)), &server, "x"), paused(secs(60)));
    report(&mut core, after(secs(60)), &server, "x", Feedback::Broken);
    assert_eq!(core.check(after(secs(60)), &server, "x"), paused(secs(180)));
}

/// L10: one permit is the probe; others are `Paused` until it ends, and its end decides, however it
/// ends.
#[test]
fn the_end_of_the_probe_decides() {
    let server = at("https://h.example");
    let ends = [
        (Some(Feedback::Ok), Ok(())),
        (Some(Feedback::Failed), Ok(())),
        (Some(Feedback::Broken), paused(secs(60 + 5 + 120))),
        (Some(Feedback::RetryAfter(secs(7))), paused(secs(60 + 5 + 7))),
        // Nothing was sent, so the next one is the probe.
        (Some(Feedback::Unused), Ok(())),
        (None, Ok(())),
    ];
    for (feedback, expected) in ends {
        let mut core = core();
        for _ in 0..4 {
            report(&mut core, Moment::ZERO, &server, "a", Feedback::Broken);
        }
        let probe = core.try_take(after(secs(60)), &server, "a").expect("the probe");
        let now = after(secs(65));
        for _ in 0..2 {
            assert!(
                matches!(core.check(now, &server, "b"), Err(Refusal::Paused { until }) if until > now)
            );
        }
        core.settle(now, probe, &server, feedback.unwrap_or(Feedback::Failed));
        assert_eq!(core.check(now, &server, "b"), expected, "{feedback:?}");
        if feedback == Some(Feedback::Unused) {
            let _probe = core.try_take(now, &server, "b").expect("the next probe");
            assert!(matches!(core.check(now, &server, "c"), Err(Refusal::Paused { .. })));
        }
    }
}

/// L8, L10: a probe is a guard: dropped, panicked away or left lying, it blocks the host no longer
/// than a request does.
#[tokio::test(start_paused = true)]
async fn a_probe_that_is_dropped_does_not_block_the_host() {
    bounded();
    let throttle = DomainThrottle::new();
    let server = at("https://h.example");
    for _ in 0..4 {
        throttle.try_acquire(&server, "a").expect("open").finish(Feedback::Broken);
    }
    let waits = |key: &'static str| {
        let (throttle, server) = (throttle.clone(), server.clone());
        tokio::spawn(async move { throttle.acquire(&server, key).await })
    };
    let start = Instant::now();
    let (one, two) = (waits("one"), waits("two"));
    let probe = one.await.expect("no panic").expect("open");
    assert_eq!(start.elapsed(), secs(60));
    tokio::time::sleep(secs(30)).await;
    assert!(!two.is_finished(), "one probe at a time");
    drop(probe);
    two.await.expect("no panic").expect("open").finish(Feedback::Ok);
    assert_eq!(start.elapsed(), secs(90));
}

/// L10: after a pause those who wait do not all come at once: no more than may be on.
#[tokio::test(start_paused = true)]
async fn a_pause_that_ends_brings_no_stampede() {
    bounded();
    let throttle = DomainThrottle::new();
    let server = at("https://h.example");
    throttle.try_acquire(&server, "a").expect("open").finish(Feedback::RetryAfter(secs(30)));
    let start = Instant::now();
    for n in 0..100 {
        let (throttle, server) = (throttle.clone(), server.clone());
        tokio::spawn(async move {
            let permit = throttle.acquire(&server, &n.to_string()).await.expect("open");
            tokio::time::sleep(secs(3_600)).await;
            drop(permit);
        });
    }
    tokio::time::sleep(secs(31)).await;
    assert_eq!(start.elapsed(), secs(31));
    assert_eq!(throttle.counts(server.domain()).expect("in use").in_flight, 5);
}

/// L10: permits that were set aside when the server asks for quiet stay at home.
#[tokio::test(start_paused = true)]
async fn a_pause_takes_back_what_was_set_aside() {
    bounded();
    use crate::support::{Calls, Waiting, poll};
    let throttle = DomainThrottle::builder().limits(limits(2, 30, secs(60))).build();
    let servers = [at("https://h.example")];
    let one = throttle.try_acquire(&servers[0], "a").expect("open");
    let two = throttle.try_acquire(&servers[0], "b").expect("open");
    let calls = Calls::new();
    let mut waiting: Waiting<'_> = throttle.acquire_any(&servers, "c");
    assert!(poll(&mut waiting, &calls).is_none());
    one.finish(Feedback::Ok);
    assert_eq!(calls.count(), 1);
    two.finish(Feedback::RetryAfter(secs(10)));
    assert!(poll(&mut waiting, &calls).is_none(), "the server asked for quiet meanwhile");
    let start = Instant::now();
    waiting.await.expect("open").finish(Feedback::Ok);
    assert_eq!(start.elapsed(), secs(10));
}

/// L10: a domain that asked to be left alone is `Paused`, exactly until its time is over.
#[tokio::test(start_paused = true)]
async fn a_pause_is_answered_exactly() {
    bounded();
    let throttle = DomainThrottle::new();
    let server = at("https://example.org/");
    let permit = throttle.acquire_any(&[server.clone(), at("https://b.example/")], "a").await;
    permit.expect("open").finish(Feedback::RetryAfter(secs(10)));
    let Err(Denied::Paused { until }) = throttle.check(&server, "b") else { panic!("not paused") };
    assert_eq!(until, (Instant::now() + secs(10)).into_std());
    tokio::time::advance(secs(10) - Duration::from_nanos(1)).await;
    assert!(throttle.check(&server, "b").is_err());
    tokio::time::advance(Duration::from_nanos(1)).await;
    assert!(throttle.check(&server, "b").is_ok());
}

fn any_feedback() -> impl Strategy<Value = Feedback> {
    prop_oneof![
        1 => Just(Feedback::Ok),
        1 => Just(Feedback::Failed),
        1 => Just(Feedback::Broken),
        1 => Just(Feedback::Unused),
        2 => (0..90u64).prop_map(|s| Feedback::RetryAfter(secs(s))),
        1 => (0..200_000u64).prop_map(|s| Feedback::RetryAfter(secs(s))),
        1 => Just(Feedback::RetryAfter(Duration::MAX)),
    ]
}

proptest! {
    /// L10: whatever is reported about one key, another key that comes waits one window at most.
    #[test]
    fn no_report_about_one_key_holds_another_beyond_one_window(
        reports in prop::collection::vec((0..120u64, any_feedback()), 1..60),
    ) {
        // The window's own limit is out of the way.
        let mut core = DomainState::<()>::new(limits(5, 10_000, secs(60)));
        let server = at("https://h.example");
        let mut now = Duration::ZERO;
        for (step, feedback) in reports {
            now += secs(step);
            let feedback = if feedback == Feedback::Broken { Feedback::Failed } else { feedback };
            if let Ok(grant) = core.try_take(after(now), &server, "evil") {
                core.settle(after(now), grant, &server, feedback);
            }
            match core.check(after(now), &server, "good") {
                Ok(()) => {}
                Err(Refusal::Paused { until }) => {
                    prop_assert!(until <= after(now + secs(60)));
                    prop_assert_eq!(core.check(until, &server, "good"), Ok(()));
                    now = until.saturating_since(Moment::ZERO);
                }
                Err(other) => prop_assert!(false, "{:?}", other),
            }
        }
    }

    /// L10: whatever is reported about one port, another port and the domain stay open; `Failed`
    /// holds nothing at all.
    #[test]
    fn no_broken_port_holds_another(
        reports in prop::collection::vec((0..100_000u64, 0..4u8, any::<bool>()), 1..100),
    ) {
        let mut core = DomainState::<()>::new(limits(5, 10_000, secs(60)));
        let (evil, good) = (at("https://h.example:8443"), at("https://h.example"));
        let mut now = Duration::ZERO;
        for (step, key, broken) in reports {
            now += secs(step / 100);
            let feedback = if broken { Feedback::Broken } else { Feedback::Failed };
            if let Ok(grant) = core.try_take(after(now), &evil, &key.to_string()) {
                core.settle(after(now), grant, &evil, feedback);
            }
            prop_assert_eq!(core.check(after(now), &good, &key.to_string()), Ok(()));
            if let Ok(grant) = core.try_take(after(now), &good, &key.to_string()) {
                core.settle(after(now), grant, &good, Feedback::Failed);
            }
            prop_assert_eq!(core.check(after(now), &good, &key.to_string()), Ok(()));
        }
    }
}
