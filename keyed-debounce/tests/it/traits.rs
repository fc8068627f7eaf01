//! What can be done with the public types.

use std::{error::Error, fmt::Debug};

use keyed_debounce::{
    Backoff, Builder, Counts, Debounce, Drain, Event, Exponential, KeyState, KeyedDebouncer,
    Observer, Outcome, Run, RunHook, ScheduleError, Scheduled, Scheduler, SchedulerError,
    schedule::{
        Cancelled, Ending, Finished, Forgotten, HandOut, Schedule, Settings, Then, Ticket,
        Timestamp,
    },
};

fn is_sound<T: Debug + Send + Sync>() {}
fn is_error<T: Error + Send + Sync + 'static>() {}

#[test]
fn public_types_are_debug_send_and_sync() {
    is_sound::<KeyedDebouncer<String>>();
    is_sound::<Run<String>>();
    is_sound::<Builder<String>>();
    is_sound::<Schedule<String>>();
    is_sound::<HandOut<String>>();
    is_sound::<Finished<String>>();
    is_sound::<Cancelled<String>>();
    is_sound::<Forgotten<String>>();
    is_sound::<Event<'_, String>>();
    is_sound::<(Ending, Then, Ticket, Timestamp, Settings)>();
    is_sound::<(Debounce, Outcome, Scheduled, Drain, KeyState, Counts, Exponential)>();
    is_error::<ScheduleError<String>>();
    is_error::<SchedulerError>();
}

#[test]
fn traits_are_object_safe() {
    fn takes(
        _: Option<&dyn Scheduler<String>>,
        _: Option<&dyn RunHook>,
        _: Option<&dyn Backoff>,
        _: Option<&dyn Observer<String>>,
    ) {
    }
    takes(None, None, None, None);
}

#[test]
fn futures_can_be_spawned() {
    fn is_send<T: Send>(_: &T) {}
    let queue = KeyedDebouncer::<String>::new();
    is_send(&queue.next());
    is_send(&queue.drain(Drain::All, std::time::Duration::ZERO));
    is_send(&queue.run(|run| async move { run.finish(Outcome::Done) }));
}

#[test]
fn what_can_be_printed_is_short() {
    let queue = KeyedDebouncer::default();
    queue.schedule("key", Debounce::immediate()).unwrap();
    let text = format!("{queue:?}");
    assert!(text.starts_with("KeyedDebouncer { schedule: Schedule { len: 1, running: 0"), "{text}");
    queue.close();
    let refused = queue.schedule("key", Debounce::immediate()).unwrap_err();
    assert_eq!(format!("{refused:?}"), "Closed(..)");
    assert_eq!(refused.to_string(), "the scheduler is closed");
    assert_eq!(refused.into_key(), "key");
}

#[test]
fn errors_say_what_failed_and_why() {
    let failed: ScheduleError<u8> = ScheduleError::Backend { key: 1, source: "disk".into() };
    assert_eq!(failed.source().unwrap().to_string(), "disk");
    assert_eq!(failed.into_key(), 1);
    let failed = SchedulerError::Backend("disk".into());
    assert_eq!(failed.source().unwrap().to_string(), "disk");
    assert!(ScheduleError::Full(1).source().is_none());
}
