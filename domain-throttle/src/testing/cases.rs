use std::{num::NonZeroU32, pin::Pin, sync::Arc, time::Duration};

use crate::{
    Denied, Endpoint, Feedback, Limits, Permit, Throttle,
    testing::{Backend, waiters::Waiters},
};

type Outcome = Result<(), String>;
type Run = for<'a> fn(&'a dyn Backend) -> Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// One thing a rule says.
pub(super) struct Case {
    pub(super) rule: &'static str,
    run: Run,
}

impl Case {
    pub(super) async fn run(&self, backend: &dyn Backend) -> Outcome {
        (self.run)(backend).await
    }
}

macro_rules! cases {
    ($($rule:literal $name:ident),* $(,)?) => {
        pub(super) const ALL: &[Case] =
            &[$(Case { rule: $rule, run: |backend| Box::pin($name(backend)) }),*];
    };
}

cases! {
    "L1" the_window_is_never_exceeded,
    "L1" a_window_counts_from_each_start,
    "L1" a_start_counts_from_the_hand_over,
    "L2" no_more_are_on_than_may_be,
    "L2" waiters_are_no_more_than_may_be,
    "L3" a_key_has_one_permit_of_a_domain,
    "L5" a_denial_names_its_cause_and_its_end,
    "L5" nobody_is_overtaken,
    "L6" a_permit_that_comes_back_wakes_the_next,
    "L6" time_wakes_the_next,
    "L6" the_first_of_several_domains_wins,
    "L7" keys_take_turns,
    "L7" who_cannot_go_keeps_its_place,
    "L8" a_dropped_wait_passes_its_permit_on,
    "L8" a_sleeper_blocks_nobody,
    "L9" a_permit_frees_its_slot_once,
    "L9" what_was_not_sent_does_not_count,
    "L10" a_key_that_is_told_to_stay_away_stays_away,
    "L10" two_keys_pause_the_domain,
    "L10" failures_pause_nothing,
    "L10" a_broken_endpoint_is_probed,
}

const MINUTE: Duration = Duration::from_secs(60);
const MILLI: Duration = Duration::from_millis(1);

async fn the_window_is_never_exceeded(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(100, 30)).await;
    let server = at("https://a.example");
    for n in 0..30 {
        granted(&throttle, &server, &n.to_string()).await?.finish(Feedback::Ok);
    }
    refused(&throttle, &server, "31", "the 31st start of a minute").await?;
    backend.advance(MINUTE - MILLI).await;
    refused(&throttle, &server, "31", "the 31st start just before the minute is over").await?;
    backend.advance(MILLI).await;
    for n in 0..30 {
        granted(&throttle, &server, &n.to_string()).await?.finish(Feedback::Ok);
    }
    refused(&throttle, &server, "31", "the 31st start of the next minute").await
}

async fn a_window_counts_from_each_start(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(100, 30)).await;
    let server = at("https://a.example");
    for n in 0..30 {
        granted(&throttle, &server, &n.to_string()).await?.finish(Feedback::Ok);
        backend.advance(Duration::from_secs(1)).await;
    }
    // 30 s later the tokens of a bucket would be back and an aligned window new.
    backend.advance(MINUTE - Duration::from_secs(30)).await;
    for n in 0..30 {
        granted(&throttle, &server, &n.to_string()).await?.finish(Feedback::Ok);
        refused(&throttle, &server, "x", "a second start for one that left the window").await?;
        backend.advance(Duration::from_secs(1)).await;
    }
    Ok(())
}

async fn a_start_counts_from_the_hand_over(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(1, 1)).await;
    let server = at("https://a.example");
    granted(&throttle, &server, "a").await?.finish(Feedback::Ok);
    let mut waiters = Waiters::new();
    waiters.add("waiter", &throttle, std::slice::from_ref(&server), "b");
    waiters.settle(backend).await?;
    backend.advance(MINUTE).await;
    backend.advance(Duration::from_millis(500)).await;
    waiters.settle(backend).await?;
    served(&waiters, &["waiter"], "one whose time has come")?;
    waiters.served.clear();
    backend.advance(MINUTE - MILLI).await;
    refused(&throttle, &server, "c", "a start within a minute of the hand-over before").await?;
    backend.advance(MILLI).await;
    granted(&throttle, &server, "c").await.map(drop)
}

async fn no_more_are_on_than_may_be(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(5, 1_000)).await;
    let server = at("https://a.example");
    let mut permits = Vec::new();
    for n in 0..5 {
        permits.push(granted(&throttle, &server, &n.to_string()).await?);
    }
    refused(&throttle, &server, "6", "a sixth permit").await?;
    refused(&throttle, &at("http://A.example.:8080/x"), "6", "a sixth permit at another port")
        .await?;
    granted(&throttle, &at("https://b.example"), "6").await?.finish(Feedback::Ok);
    for permit in permits.drain(..2) {
        permit.finish(Feedback::Ok);
    }
    backend.advance(Duration::ZERO).await;
    permits.push(granted(&throttle, &server, "6").await?);
    permits.push(granted(&throttle, &server, "7").await?);
    refused(&throttle, &server, "8", "a sixth permit after two came back").await
}

async fn waiters_are_no_more_than_may_be(backend: &dyn Backend) -> Outcome {
    const NAMES: [&str; 8] = ["1", "2", "3", "4", "5", "6", "7", "8"];
    let throttle = backend.throttle(limits(3, 1_000)).await;
    let server = at("https://a.example");
    let mut waiters = Waiters::new();
    for name in NAMES {
        waiters.add(name, &throttle, std::slice::from_ref(&server), name);
    }
    waiters.settle(backend).await?;
    served(&waiters, &NAMES[..3], "as many waiters as may be on")?;
    waiters.served.clear();
    waiters.settle(backend).await?;
    served(&waiters, &NAMES[3..6], "the next three")
}

async fn a_key_has_one_permit_of_a_domain(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(5, 1_000)).await;
    let (server, other_port) = (at("https://a.example"), at("http://a.example"));
    let permit = granted(&throttle, &server, "key").await?;
    match throttle.try_acquire(&other_port, "key").await {
        Err(Denied::KeyBusy) => {}
        other => return Err(format!("a second permit of a key on a domain: {}", shown(&other))),
    }
    let other = granted(&throttle, &server, "other").await?;
    let elsewhere = granted(&throttle, &at("https://b.example"), "key").await?;
    permit.finish(Feedback::Ok);
    backend.advance(Duration::ZERO).await;
    granted(&throttle, &other_port, "key").await?.finish(Feedback::Ok);
    drop((other, elsewhere));
    Ok(())
}

async fn a_denial_names_its_cause_and_its_end(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(1, 2)).await;
    let server = at("https://a.example");
    granted(&throttle, &server, "a").await?.finish(Feedback::Ok);
    let start = backend.now();
    backend.advance(Duration::from_secs(10)).await;
    let permit = granted(&throttle, &server, "a").await?;
    let busy = throttle.check(&server, "a").await;
    let full = throttle.check(&server, "b").await;
    if !matches!((&busy, &full), (Err(Denied::KeyBusy), Err(Denied::Concurrency))) {
        return Err(format!(
            "not the key before concurrency before the window: {busy:?}, {full:?}"
        ));
    }
    permit.finish(Feedback::Ok);
    backend.advance(Duration::ZERO).await;
    let until = match throttle.check(&server, "b").await {
        Err(Denied::Window { until }) => until,
        other => return Err(format!("a full window was answered {other:?}")),
    };
    let off = until
        .saturating_duration_since(start + MINUTE)
        .max((start + MINUTE).saturating_duration_since(until));
    if off > MILLI {
        return Err(format!("the window's end was named {off:?} off"));
    }
    backend.advance(until.saturating_duration_since(backend.now()).saturating_sub(MILLI)).await;
    refused(&throttle, &server, "b", "a start just before the promised end").await?;
    backend.advance(until.saturating_duration_since(backend.now())).await;
    granted(&throttle, &server, "b").await.map(drop)
}

async fn nobody_is_overtaken(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(1, 1_000)).await;
    let server = at("https://a.example");
    let permit = granted(&throttle, &server, "a").await?;
    let mut waiters = Waiters::new();
    for name in ["first", "second"] {
        waiters.add(name, &throttle, std::slice::from_ref(&server), name);
        waiters.settle(backend).await?;
    }
    permit.finish(Feedback::Ok);
    refused(&throttle, &server, "newcomer", "a newcomer who overtakes two waiters").await?;
    waiters.settle(backend).await?;
    served(&waiters, &["first"], "the one who came first")
}

async fn a_permit_that_comes_back_wakes_the_next(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(1, 1_000)).await;
    let server = at("https://a.example");
    let permit = granted(&throttle, &server, "a").await?;
    let mut waiters = Waiters::new();
    for name in ["first", "second"] {
        waiters.add(name, &throttle, std::slice::from_ref(&server), name);
        waiters.settle(backend).await?;
    }
    permit.finish(Feedback::Failed);
    waiters.settle(backend).await?;
    served(&waiters, &["first"], "the next in line")?;
    // The second is woken by a permit that is dropped.
    waiters.served.clear();
    waiters.settle(backend).await?;
    served(&waiters, &["second"], "the next in line after a drop")
}

async fn time_wakes_the_next(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(5, 1)).await;
    let server = at("https://a.example");
    granted(&throttle, &server, "a").await?.finish(Feedback::Ok);
    let mut waiters = Waiters::new();
    waiters.add("waiter", &throttle, std::slice::from_ref(&server), "b");
    waiters.settle(backend).await?;
    backend.advance(MINUTE - MILLI).await;
    waiters.settle(backend).await?;
    served(&waiters, &[], "nobody just before there is room")?;
    backend.advance(MILLI).await;
    waiters.settle(backend).await?;
    served(&waiters, &["waiter"], "who waits for the window")
}

async fn the_first_of_several_domains_wins(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(1, 1_000)).await;
    let servers = [at("https://a.example"), at("https://b.example")];
    let one = granted(&throttle, &servers[0], "x").await?;
    let two = granted(&throttle, &servers[1], "y").await?;
    let mut waiters = Waiters::new();
    waiters.add("both", &throttle, &servers, "both");
    waiters.settle(backend).await?;
    waiters.add("second only", &throttle, &servers[1..], "second only");
    waiters.settle(backend).await?;
    one.finish(Feedback::Ok);
    waiters.settle(backend).await?;
    served(&waiters, &["both"], "the one who waits for either")?;
    if waiters.served[0].1.endpoint() != &servers[0] {
        return Err("the permit names another endpoint than the one that was free".to_owned());
    }
    two.finish(Feedback::Ok);
    waiters.settle(backend).await?;
    served(&waiters, &["both", "second only"], "who stands behind a place that was given up")
}

async fn keys_take_turns(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(1, 1_000)).await;
    let server = at("https://a.example");
    let permit = granted(&throttle, &server, "x").await?;
    let mut waiters = Waiters::new();
    let line = [("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b"), ("b2", "b"), ("c1", "c")];
    for (name, key) in line {
        waiters.add(name, &throttle, std::slice::from_ref(&server), key);
        waiters.settle(backend).await?;
    }
    permit.finish(Feedback::Ok);
    let mut order = Vec::new();
    for _ in line {
        waiters.settle(backend).await?;
        let one_at_a_time = waiters.names();
        order.extend(&one_at_a_time);
        if one_at_a_time.len() != 1 {
            return Err(format!("{one_at_a_time:?} were served at once, after {order:?}"));
        }
        waiters.served.clear();
    }
    match order[..] {
        ["a1", "b1", "c1", "a2", "b2", "a3"] => Ok(()),
        _ => Err(format!("keys did not take turns: {order:?}")),
    }
}

async fn who_cannot_go_keeps_its_place(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(2, 1_000)).await;
    let server = at("https://a.example");
    let busy = granted(&throttle, &server, "a").await?;
    let other = granted(&throttle, &server, "x").await?;
    let mut waiters = Waiters::new();
    for (name, key) in [("a2", "a"), ("b1", "b"), ("c1", "c")] {
        waiters.add(name, &throttle, std::slice::from_ref(&server), key);
        waiters.settle(backend).await?;
    }
    other.finish(Feedback::Ok);
    waiters.settle(backend).await?;
    served(&waiters, &["b1"], "the first whose key is free")?;
    busy.finish(Feedback::Ok);
    waiters.settle(backend).await?;
    served(&waiters, &["b1", "a2"], "the one who was passed over")
}

async fn a_dropped_wait_passes_its_permit_on(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(1, 1_000)).await;
    let server = at("https://a.example");
    let permit = granted(&throttle, &server, "x").await?;
    let mut waiters = Waiters::new();
    for name in ["never woken", "woken", "next"] {
        waiters.add(name, &throttle, std::slice::from_ref(&server), name);
        waiters.settle(backend).await?;
    }
    waiters.cancel("never woken");
    permit.finish(Feedback::Ok);
    backend.advance(Duration::ZERO).await;
    if !waiters.is_woken("woken") {
        return Err("a permit went to a wait that was dropped".to_owned());
    }
    waiters.cancel("woken");
    waiters.settle(backend).await?;
    served(&waiters, &["next"], "the next after a wait that was dropped")?;
    waiters.served.clear();
    backend.advance(Duration::ZERO).await;
    granted(&throttle, &server, "y").await.map(drop)
}

async fn a_sleeper_blocks_nobody(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(1, 1_000)).await;
    let server = at("https://a.example");
    let permit = granted(&throttle, &server, "x").await?;
    let mut waiters = Waiters::new();
    for name in ["sleeper", "next"] {
        waiters.add(name, &throttle, std::slice::from_ref(&server), name);
        waiters.settle(backend).await?;
    }
    permit.finish(Feedback::Ok);
    waiters.settle_but("sleeper", backend).await?;
    served(&waiters, &[], "nobody but the one who is first")?;
    backend.advance(Duration::from_secs(1)).await;
    waiters.settle_but("sleeper", backend).await?;
    served(&waiters, &["next"], "the next, a second later")?;
    // It keeps its place before those who come later.
    waiters.add("later", &throttle, std::slice::from_ref(&server), "later");
    waiters.settle(backend).await?;
    waiters.served.clear();
    waiters.settle(backend).await?;
    served(&waiters, &["sleeper"], "the sleeper, in its place")
}

async fn a_permit_frees_its_slot_once(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(2, 1_000)).await;
    let server = at("https://a.example");
    let held = granted(&throttle, &server, "held").await?;
    granted(&throttle, &server, "finished").await?.finish(Feedback::Failed);
    drop(granted(&throttle, &server, "dropped").await?);
    let last = granted(&throttle, &server, "last").await?;
    refused(&throttle, &server, "third", "a third permit, freed twice").await?;
    drop((held, last));
    Ok(())
}

async fn what_was_not_sent_does_not_count(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(1, 2)).await;
    let server = at("https://a.example");
    for _ in 0..10 {
        granted(&throttle, &server, "a").await?.finish(Feedback::Unused);
    }
    granted(&throttle, &server, "a").await?.finish(Feedback::Failed);
    drop(granted(&throttle, &server, "a").await?);
    refused(&throttle, &server, "a", "a third start after two that were sent").await
}

async fn a_key_that_is_told_to_stay_away_stays_away(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(5, 1_000)).await;
    let server = at("https://a.example");
    let hour = 60 * MINUTE;
    granted(&throttle, &server, "a").await?.finish(Feedback::RetryAfter(hour));
    is_paused(&throttle, &server, "b", "another key at first").await?;
    backend.advance(MINUTE).await;
    granted(&throttle, &server, "b").await?.finish(Feedback::Ok);
    is_paused(&throttle, &server, "a", "the key itself").await?;
    backend.advance(hour - MINUTE - MILLI).await;
    is_paused(&throttle, &server, "a", "the key itself, to the end").await?;
    backend.advance(MILLI).await;
    granted(&throttle, &server, "a").await.map(drop)
}

async fn two_keys_pause_the_domain(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(5, 1_000)).await;
    let server = at("https://a.example");
    let one = granted(&throttle, &server, "a").await?;
    let two = granted(&throttle, &server, "b").await?;
    for permit in [one, two] {
        permit.finish(Feedback::RetryAfter(10 * MINUTE));
    }
    backend.advance(10 * MINUTE - MILLI).await;
    is_paused(&throttle, &server, "c", "everybody, after two keys were told").await?;
    granted(&throttle, &at("https://b.example"), "a").await?.finish(Feedback::Ok);
    backend.advance(MILLI).await;
    granted(&throttle, &server, "c").await.map(drop)
}

async fn failures_pause_nothing(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(5, 1_000)).await;
    let server = at("https://a.example");
    for n in 0..50 {
        granted(&throttle, &server, &n.to_string()).await?.finish(Feedback::Failed);
    }
    Ok(())
}

async fn a_broken_endpoint_is_probed(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(5, 1_000)).await;
    let (server, other_port) = (at("https://a.example"), at("https://a.example:8443"));
    for _ in 0..4 {
        granted(&throttle, &server, "a").await?.finish(Feedback::Broken);
    }
    is_paused(&throttle, &server, "b", "a broken endpoint").await?;
    granted(&throttle, &other_port, "b").await?.finish(Feedback::Ok);
    backend.advance(MINUTE).await;
    let probe = granted(&throttle, &server, "a").await?;
    is_paused(&throttle, &server, "b", "everybody but the probe").await?;
    probe.finish(Feedback::Broken);
    backend.advance(2 * MINUTE - MILLI).await;
    is_paused(&throttle, &server, "b", "twice as long after a probe that failed").await?;
    backend.advance(MILLI).await;
    // A probe is a guard: dropped, it has ended.
    drop(granted(&throttle, &server, "b").await?);
    backend.advance(Duration::ZERO).await;
    let one = granted(&throttle, &server, "b").await?;
    granted(&throttle, &server, "c").await.map(drop)?;
    drop(one);
    Ok(())
}

fn limits(max_concurrent: u32, max_per_window: u32) -> Limits {
    let count = |limit| NonZeroU32::new(limit).unwrap_or(NonZeroU32::MIN);
    Limits {
        max_concurrent: count(max_concurrent),
        max_per_window: count(max_per_window),
        window: MINUTE,
    }
}

fn at(url: &str) -> Endpoint {
    url.parse().expect("the suite's URLs name servers")
}

async fn granted(throttle: &Arc<dyn Throttle>, at: &Endpoint, key: &str) -> Result<Permit, String> {
    let granted = throttle.try_acquire(at, key).await;
    granted.map_err(|denied| format!("`{key}` was refused at {at} although it may go: {denied:?}"))
}

async fn refused(throttle: &Arc<dyn Throttle>, at: &Endpoint, key: &str, what: &str) -> Outcome {
    if throttle.check(at, key).await.is_ok() {
        return Err(format!("`check` says yes to {what}"));
    }
    match throttle.try_acquire(at, key).await {
        Err(_) => Ok(()),
        Ok(_) => Err(format!("{what} was granted")),
    }
}

async fn is_paused(throttle: &Arc<dyn Throttle>, at: &Endpoint, key: &str, who: &str) -> Outcome {
    match throttle.check(at, key).await {
        Err(Denied::Paused { .. }) => refused(throttle, at, key, who).await,
        other => Err(format!("{who} should be paused, but `check` says {other:?}")),
    }
}

fn served(waiters: &Waiters, expected: &[&str], who: &str) -> Outcome {
    let names = waiters.names();
    if names == expected {
        Ok(())
    } else {
        Err(format!("{names:?} were served and not {expected:?}: {who}"))
    }
}

fn shown(answer: &Result<Permit, Denied>) -> String {
    match answer {
        Ok(_) => "granted".to_owned(),
        Err(denied) => format!("{denied:?}"),
    }
}
