mod feedback;
mod limiting;
mod waiting;

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
    ($($rule:literal $name:path),* $(,)?) => {
        pub(super) const ALL: &[Case] =
            &[$(Case { rule: $rule, run: |backend| Box::pin($name(backend)) }),*];
    };
}

cases! {
    "L1" limiting::the_window_is_never_exceeded,
    "L1" limiting::a_window_counts_from_each_start,
    "L1" limiting::a_start_counts_from_the_hand_over,
    "L2" limiting::no_more_are_on_than_may_be,
    "L2" limiting::waiters_are_no_more_than_may_be,
    "L3" limiting::a_key_has_one_permit_of_a_domain,
    "L5" limiting::a_denial_names_its_cause_and_its_end,
    "L5" waiting::nobody_is_overtaken,
    "L6" waiting::a_permit_that_comes_back_wakes_the_next,
    "L6" waiting::time_wakes_the_next,
    "L6" waiting::the_first_of_several_domains_wins,
    "L7" waiting::keys_take_turns,
    "L7" waiting::who_cannot_go_keeps_its_place,
    "L8" waiting::a_dropped_wait_passes_its_permit_on,
    "L8" waiting::a_sleeper_blocks_nobody,
    "L9" limiting::a_permit_frees_its_slot_once,
    "L9" limiting::what_was_not_sent_does_not_count,
    "L10" feedback::a_key_that_is_told_to_stay_away_stays_away,
    "L10" feedback::two_keys_pause_the_domain,
    "L10" feedback::failures_pause_nothing,
    "L10" feedback::a_broken_endpoint_is_probed,
}

const MINUTE: Duration = Duration::from_secs(60);
const MILLI: Duration = Duration::from_millis(1);

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
