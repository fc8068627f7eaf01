//! What the `metrics` and `tracing` features tell. No key is a label; domains are, the first hundred.

use std::{
    collections::BTreeMap,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use domain_throttle::{DomainThrottle, Feedback, Throttle, ThrottleExt};
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use tracing::{
    Subscriber,
    field::{Field, Visit},
    span,
};

use crate::support::{Calls, Waiting, at, endpoints, limits, poll, secs};

type Values = Arc<Mutex<BTreeMap<String, f64>>>;

#[derive(Debug, Default)]
struct Recorded(Values);

struct Cell(Values, String);

impl Cell {
    fn add(&self, value: f64) {
        *self.0.lock().expect("no panic").entry(self.1.clone()).or_default() += value;
    }
}

#[expect(clippy::cast_precision_loss, reason = "small numbers")]
impl CounterFn for Cell {
    fn increment(&self, value: u64) {
        self.add(value as f64);
    }
    fn absolute(&self, value: u64) {
        self.add(value as f64);
    }
}

impl GaugeFn for Cell {
    fn increment(&self, value: f64) {
        self.add(value);
    }
    fn decrement(&self, value: f64) {
        self.add(-value);
    }
    fn set(&self, value: f64) {
        self.add(value);
    }
}

impl HistogramFn for Cell {
    fn record(&self, value: f64) {
        self.add(value);
    }
}

impl Recorded {
    fn cell(&self, key: &Key) -> Arc<Cell> {
        let labels: Vec<_> =
            key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        Arc::new(Cell(self.0.clone(), format!("{}{{{}}}", key.name(), labels.join(","))))
    }
}

impl Recorder for Recorded {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.cell(key))
    }
    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.cell(key))
    }
    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.cell(key))
    }
}

/// A recorder that panics once, when it is asked for the time of this number.
struct Faulty(AtomicUsize);

impl Faulty {
    fn count(&self) {
        if self.0.fetch_sub(1, Ordering::Relaxed) == 0 {
            // Not `panic`, which would fill the output.
            resume_unwind(Box::new("the recorder explodes"));
        }
    }
}

impl Recorder for Faulty {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        self.count();
        Counter::noop()
    }
    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        self.count();
        Gauge::noop()
    }
    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        self.count();
        Histogram::noop()
    }
}

#[derive(Clone, Debug, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0 += &format!(" {field}={value:?}");
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("domain_throttle")
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().expect("no panic").push(line.0);
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// L12: what is counted has a bounded number of names, and gauges go back to zero.
#[test]
fn metrics_tell_permits_waits_denials_and_pauses() {
    let recorded = Recorded::default();
    let values = recorded.0.clone();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    metrics::with_local_recorder(&recorded, || {
        runtime.block_on(async {
            let throttle = DomainThrottle::builder().limits(limits(1, 30, secs(60))).build();
            let server = at("https://h.example");
            let permit = throttle.try_acquire(&server, "a").expect("open");
            assert!(throttle.try_acquire(&server, "b").is_err());
            let waits = throttle.acquire(&server, "b");
            let finish = async {
                tokio::time::sleep(secs(2)).await;
                permit.finish(Feedback::Ok);
            };
            let (waited, ()) = futures::join!(waits, finish);
            waited.expect("open").finish(Feedback::RetryAfter(secs(5)));
            for n in 0..150 {
                let server = at(&format!("https://h{n}.example"));
                throttle.try_acquire(&server, "a").expect("open").finish(Feedback::Unused);
            }
        });
    });
    let values = values.lock().expect("no panic").clone();
    let expected = [
        ("domain_throttle_permits_total{domain=h.example}", 2.0),
        ("domain_throttle_permits_total{domain=other}", 51.0),
        ("domain_throttle_in_flight{domain=h.example}", 0.0),
        ("domain_throttle_in_flight{domain=other}", 0.0),
        ("domain_throttle_waiters{}", 0.0),
        ("domain_throttle_wait_seconds{}", 2.0),
        ("domain_throttle_denied_total{cause=concurrency}", 1.0),
        ("domain_throttle_pauses_total{what=domain}", 1.0),
        ("domain_throttle_feedback_total{feedback=retry_after}", 1.0),
        ("domain_throttle_feedback_total{feedback=unused}", 150.0),
    ];
    for (name, value) in expected {
        assert_eq!(values.get(name), Some(&value), "{name}");
    }
    let domains =
        values.keys().filter(|name| name.starts_with("domain_throttle_permits_total")).count();
    assert_eq!(domains, 101);
}

/// L10: what an operator wants to know is told: whom was asked to stay away, and for how long.
#[test]
fn tracing_tells_denials_and_pauses() {
    let lines = Lines::default();
    tracing::subscriber::with_default(lines.clone(), || {
        let throttle = DomainThrottle::new();
        let server = at("https://h.example");
        throttle.try_acquire(&server, "a").expect("open").finish(Feedback::RetryAfter(secs(5)));
        assert!(throttle.try_acquire(&server, "b").is_err());
        let server = at("https://b.example:8443");
        for _ in 0..4 {
            throttle.try_acquire(&server, "a").expect("open").finish(Feedback::Broken);
        }
    });
    let lines = lines.0.lock().expect("no panic").clone();
    let expected = [
        "INFO message=domain paused domain=h.example length=5s",
        "DEBUG message=permit denied domain=h.example cause=\"paused\"",
        "INFO message=endpoint paused domain=b.example endpoint=https://b.example:8443 length=60s",
    ];
    for line in expected {
        assert!(lines.iter().any(|told| told == line), "{line:?} is not in {lines:#?}");
    }
}

/// L8, L9: a recorder that panics, wherever it does, costs neither a permit nor a place in line.
#[test]
fn a_panic_in_a_recorder_leaves_nothing_behind() {
    let servers = endpoints(&["https://h.example"]);
    for good in 0.. {
        let faulty = Faulty(AtomicUsize::new(good));
        let throttle = DomainThrottle::builder().limits(limits(1, 30, secs(60))).build();
        let panics = AtomicUsize::new(0);
        let note = |_| panics.fetch_add(1, Ordering::Relaxed);
        metrics::with_local_recorder(&faulty, || {
            let calls = Calls::new();
            let take = |key| {
                let taken =
                    catch_unwind(AssertUnwindSafe(|| throttle.try_acquire(&servers[0], key)));
                taken.map_err(note).ok().and_then(Result::ok)
            };
            let look = |waiting: &mut Waiting<'_>| {
                let polled = catch_unwind(AssertUnwindSafe(|| poll(waiting, &calls)));
                polled.map_err(note).ok().flatten()
            };
            let end = |what: Box<dyn Send + '_>| {
                let _ = catch_unwind(AssertUnwindSafe(|| drop(what))).map_err(note);
            };
            let first = take("a");
            let mut waits: Waiting<'_> = throttle.acquire_any(&servers, "b");
            let mut leaves: Waiting<'_> = throttle.acquire_any(&servers, "c");
            let early = look(&mut waits);
            // A wait that panicked has ended.
            let second = look(&mut leaves);
            end(Box::new(leaves));
            end(Box::new(first));
            let late = (panics.load(Ordering::Relaxed) == 0).then(|| look(&mut waits));
            end(Box::new((early, second)));
            end(Box::new(waits));
            end(Box::new(late));
        });
        let counts = throttle.counts(servers[0].domain()).expect("its window is not empty");
        assert_eq!((counts.in_flight, counts.waiting), (0, 0), "after {good}");
        assert_eq!(throttle.waiters(), 0, "after {good}");
        if panics.load(Ordering::Relaxed) == 0 {
            assert!(good > 10, "much is told");
            return;
        }
    }
}
