//! P12: the six metrics, read after a scripted run.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use purgatory_sync::FetchErrorKind;

use crate::common::*;

/// Keeps what is recorded, by name and labels.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<BTreeMap<String, Vec<f64>>>>);

/// One metric of it.
struct One {
    kept: Kept,
    name: String,
}

impl Kept {
    fn one(&self, key: &Key) -> Arc<One> {
        let labels: Vec<_> =
            key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let name = match labels.is_empty() {
            true => key.name().to_owned(),
            false => format!("{}{{{}}}", key.name(), labels.join(",")),
        };
        Arc::new(One { kept: self.clone(), name })
    }

    /// What was recorded under this name: the sum of counters and gauges, every value of histograms.
    fn all(&self) -> BTreeMap<String, Vec<f64>> {
        self.0.lock().unwrap().clone()
    }

    fn sum(&self, name: &str) -> f64 {
        self.all().get(name).map_or(0.0, |values| values.iter().sum())
    }
}

impl One {
    fn add(&self, value: f64) {
        self.kept.0.lock().unwrap().entry(self.name.clone()).or_default().push(value);
    }
}

impl CounterFn for One {
    fn increment(&self, value: u64) {
        self.add(value as f64);
    }
    fn absolute(&self, _: u64) {
        panic!("counters are counted up");
    }
}

impl GaugeFn for One {
    fn increment(&self, value: f64) {
        self.add(value);
    }
    fn decrement(&self, value: f64) {
        self.add(-value);
    }
    fn set(&self, _: f64) {
        panic!("two threads that set a gauge can leave the older value");
    }
}

impl HistogramFn for One {
    fn record(&self, value: f64) {
        self.add(value);
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.one(key))
    }
    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.one(key))
    }
    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.one(key))
    }
}

/// Runs on a paused clock, in one thread, with a recorder of its own.
fn recorded(work: impl AsyncFnOnce(&Kept)) -> Kept {
    let kept = Kept::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    metrics::with_local_recorder(&kept, || runtime.block_on(work(&kept)));
    kept
}

/// P12: every one of the six after a run of two identifiers, one of which needs three passes.
#[test]
fn the_six_metrics_have_exact_values_after_a_scripted_run() {
    let kept = recorded(async |kept| {
        let world = World::new();
        let (one, two) = (url("https://one.example/a.git"), url("https://two.example/a.git"));
        world.git.serve(&one, [oid(1), oid(2)]);
        world.git.latency(&one, secs(1));
        world.git.script(&two, Reply::Fail(FetchErrorKind::Network));
        world.git.script(&two, Reply::Fail(FetchErrorKind::Timeout));
        world.git.serve(&two, [oid(3)]);
        world.announce("a", &[&one]);
        world.announce("b", &[&one, &two]);
        world.state("a", "state a", &[1, 2]);
        world.state("b", "state b", &[3]);
        assert_eq!(kept.sum("purgatory_sync_queue_size"), 2.0);
        pass(ms(700)).await;
        assert_eq!(kept.sum("purgatory_domain_in_flight{domain=one.example}"), 2.0);
        world.idle().await;
        world.sync.shutdown().await;
    });
    let all = kept.all();
    // The throttle below has metrics of its own, where its feature is on.
    let ours = |name: &&str| name.starts_with("purgatory_");
    let names: Vec<&str> = all.keys().map(String::as_str).filter(ours).collect();
    assert_eq!(
        names,
        [
            "purgatory_domain_in_flight{domain=one.example}",
            "purgatory_domain_in_flight{domain=two.example}",
            "purgatory_domain_requests_total{domain=one.example}",
            "purgatory_domain_requests_total{domain=two.example}",
            "purgatory_sync_attempts_total",
            "purgatory_sync_backoff_seconds",
            "purgatory_sync_oids_fetched_total",
            "purgatory_sync_queue_size",
        ]
    );
    assert_eq!(kept.sum("purgatory_sync_queue_size"), 0.0);
    assert_eq!(kept.sum("purgatory_sync_attempts_total"), 4.0);
    assert_eq!(kept.sum("purgatory_sync_oids_fetched_total"), 3.0);
    assert_eq!(kept.sum("purgatory_domain_in_flight{domain=one.example}"), 0.0);
    assert_eq!(kept.sum("purgatory_domain_in_flight{domain=two.example}"), 0.0);
    assert_eq!(kept.sum("purgatory_domain_requests_total{domain=one.example}"), 4.0);
    assert_eq!(kept.sum("purgatory_domain_requests_total{domain=two.example}"), 3.0);
    assert_eq!(all["purgatory_sync_backoff_seconds"], [20.0, 40.0]);
}

/// P12: no identifier is a label; domains are, the first hundred, then "other".
#[test]
fn labels_are_bounded_whatever_strangers_announce() {
    let kept = recorded(async |_| {
        let world = World::with(|config| config.with_fetches_per_pass(1_000).unwrap());
        for number in 0..150 {
            let id = format!("an identifier {number}");
            world.announce(&id, &[&url(&format!("https://host{number}.example/a.git"))]);
            world.state(&id, &id, &[1]);
        }
        pass(secs(5)).await;
        world.sync.shutdown().await;
    });
    let all = kept.all();
    assert!(all.keys().all(|name| !name.contains("an identifier")));
    let domains = all.keys().filter(|name| name.starts_with("purgatory_domain_requests_total"));
    assert_eq!(domains.count(), 101);
    assert_eq!(kept.sum("purgatory_domain_requests_total{domain=other}"), 50.0);
    assert_eq!(kept.sum("purgatory_sync_queue_size"), 0.0, "an engine that ended queues nothing");
}

/// P12: a cancelled fetch is not on any more, and a new event prevents the backoff.
#[test]
fn what_is_cancelled_or_prevented_is_not_counted() {
    let kept = recorded(async |_| {
        let world = World::new();
        let silent = url("https://silent.example/a.git");
        world.git.always(&silent, Reply::Hang);
        world.announce("a", &[&silent]);
        world.state("a", "state", &[1]);
        pass(secs(1)).await;
        world.state("b", "nowhere", &[1]);
        pass(ms(499)).await;
        world.store.slow_down(ms(300));
        pass(ms(100)).await;
        world.state("b", "during the pass", &[2]);
        pass(ms(300)).await;
        world.sync.shutdown().await;
    });
    assert_eq!(kept.sum("purgatory_domain_in_flight{domain=silent.example}"), 0.0);
    assert!(!kept.all().contains_key("purgatory_sync_backoff_seconds"));
}
