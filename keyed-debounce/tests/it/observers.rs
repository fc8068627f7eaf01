//! What observers are told, and what the features `tracing` and `metrics` make of it.

use std::{
    io,
    sync::{Arc, Mutex},
};

use keyed_debounce::{
    Debounce, Event, KeyedDebouncer, MetricsObserver, Observer, Outcome, TracingObserver,
};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tokio::time::advance;

use crate::sim::{bounded, ms, secs};

/// One of everything.
async fn story(queue: &KeyedDebouncer<&'static str>) {
    let soon = Debounce::after(ms(100));
    queue.schedule("a", soon).unwrap();
    queue.schedule("a", soon).unwrap();
    queue.schedule("too many", soon).unwrap_err();
    advance(ms(130)).await;
    let run = queue.next().await.unwrap();
    queue.schedule("a", soon).unwrap();
    queue.cancel(&"a");
    queue.schedule("a", soon).unwrap();
    advance(ms(1000)).await;
    run.finish(Outcome::Done);
    queue.next().await.unwrap().finish(Outcome::Retry);
    advance(secs(20)).await;
    queue.next().await.unwrap().finish(Outcome::Done);
    queue.schedule("b", soon).unwrap();
    queue.cancel(&"b");
    queue.close();
    queue.schedule("late", soon).unwrap_err();
}

fn queue(observer: impl Observer<&'static str> + 'static) -> KeyedDebouncer<&'static str> {
    KeyedDebouncer::builder().capacity(std::num::NonZeroUsize::MIN).observer(observer).build()
}

#[tokio::test(start_paused = true)]
async fn each_event_is_told_with_its_numbers() {
    bounded();
    let told = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&told);
    let queue = queue(move |event: &Event<'_, &'static str>| {
        notes.lock().unwrap().push(format!("{event:?}"));
    });
    story(&queue).await;
    let told = told.lock().unwrap().join("\n");
    let expected = r#"Scheduled { key: "a", how: New }
Scheduled { key: "a", how: Joined }
Refused { key: "too many", closed: false }
Started { key: "a", attempt: 1, late_by: 30ms }
Scheduled { key: "a", how: AfterRun }
Cancelled { key: "a", running: true }
Scheduled { key: "a", how: AfterRun }
Finished { key: "a", outcome: Done, took: 1s, due_in: Some(0ns), backs_off: false, failures: 0 }
Started { key: "a", attempt: 1, late_by: 0ns }
Finished { key: "a", outcome: Retry, took: 0ns, due_in: Some(20s), backs_off: true, failures: 1 }
Started { key: "a", attempt: 2, late_by: 0ns }
Finished { key: "a", outcome: Done, took: 0ns, due_in: None, backs_off: false, failures: 0 }
Scheduled { key: "b", how: New }
Cancelled { key: "b", running: false }
Closed
Refused { key: "late", closed: true }"#;
    assert_eq!(told, expected);
}

/// An observer is called outside the lock: it may use the queue.
#[tokio::test(start_paused = true)]
async fn an_observer_may_call_the_queue() {
    bounded();
    let handle: Arc<Mutex<Option<KeyedDebouncer<&'static str>>>> = Arc::default();
    let inner = Arc::clone(&handle);
    let counted = Arc::new(Mutex::new(0));
    let counter = Arc::clone(&counted);
    let queue = queue(move |_: &Event<'_, &'static str>| {
        if let Some(queue) = &*inner.lock().unwrap() {
            *counter.lock().unwrap() += queue.counts().total();
            let _state = queue.state(&"a");
        }
    });
    *handle.lock().unwrap() = Some(queue.clone());
    story(&queue).await;
    assert_eq!(*counted.lock().unwrap(), 12);
    *handle.lock().unwrap() = None;
}

#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl io::Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn tracing_writes_one_event_each() {
    bounded();
    let buffer = Buffer::default();
    let writer = buffer.clone();
    let subscriber = tracing_subscriber::fmt()
        .without_time()
        .with_ansi(false)
        .with_max_level(tracing_subscriber::filter::LevelFilter::DEBUG)
        .with_writer(move || writer.clone())
        .finish();
    let queue = queue(TracingObserver::new("webhooks"));
    {
        let _here = tracing::subscriber::set_default(subscriber);
        story(&queue).await;
    }
    let text = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
    let ours: Vec<_> = text.lines().filter(|line| line.contains("keyed_debounce")).collect();
    assert_eq!(ours.len(), 16, "{text}");
    for part in [
        r#"DEBUG keyed_debounce: scheduled queue="webhooks" key="a" how=New"#,
        r#"started queue="webhooks" key="a" attempt=1 late_ms=30"#,
        r#"key="a" outcome=Retry took_ms=0 due_in_ms=20000 failures=1"#,
        r#"closed queue="webhooks""#,
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

fn value(snapshotter: &Snapshotter, wanted: &str) -> Option<DebugValue> {
    snapshotter.snapshot().into_vec().into_iter().find_map(|(key, _, _, value)| {
        let labels: Vec<_> =
            key.key().labels().map(|l| format!("{}={}", l.key(), l.value())).collect();
        (format!("{} {}", key.key().name(), labels.join(" ")) == wanted).then_some(value)
    })
}

#[tokio::test(start_paused = true)]
async fn metrics_add_up() {
    bounded();
    for (metric, expected) in [
        ("requests_total queue=webhooks how=new", DebugValue::Counter(2)),
        ("requests_total queue=webhooks how=joined", DebugValue::Counter(1)),
        ("requests_total queue=webhooks how=after_run", DebugValue::Counter(2)),
        ("requests_total queue=webhooks how=full", DebugValue::Counter(1)),
        ("requests_total queue=webhooks how=closed", DebugValue::Counter(1)),
        ("runs_total queue=webhooks outcome=done", DebugValue::Counter(2)),
        ("runs_total queue=webhooks outcome=retry", DebugValue::Counter(1)),
        ("keys queue=webhooks", DebugValue::Gauge(0.0.into())),
        ("running queue=webhooks", DebugValue::Gauge(0.0.into())),
        ("backoff_seconds queue=webhooks", DebugValue::Histogram(vec![20.0.into()])),
        (
            "late_seconds queue=webhooks",
            DebugValue::Histogram(vec![0.03.into(), 0.0.into(), 0.0.into()]),
        ),
        (
            "run_seconds queue=webhooks",
            DebugValue::Histogram(vec![1.0.into(), 0.0.into(), 0.0.into()]),
        ),
    ] {
        let recorder = DebuggingRecorder::new();
        let snapshotter = recorder.snapshotter();
        let queue = queue(MetricsObserver::new("webhooks"));
        {
            let _here = metrics::set_default_local_recorder(&recorder);
            story(&queue).await;
        }
        let found = value(&snapshotter, &format!("keyed_debounce_{metric}"));
        assert_eq!(found, Some(expected), "{metric}");
    }
}
