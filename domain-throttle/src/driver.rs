use std::{
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use tokio::{
    runtime::Handle,
    sync::Notify,
    task::{AbortHandle, yield_now},
};

use crate::{Moment, clock::Clock, shared::Shared};

/// The one task of a throttle: it brings what only time brings to those who wait, and forgets.
///
/// It is spawned with the first domain that is asked from within a runtime, sleeps while nothing is
/// due, and ends with the throttle. If its runtime ends first, the next waiter that is polled on another starts it anew.
#[derive(Debug, Default)]
pub(crate) struct Driver {
    running: AtomicBool,
    task: Mutex<Option<AbortHandle>>,
    earlier: Arc<Notify>,
}

impl Driver {
    pub(crate) fn ensure(&self, shared: &Arc<Shared>) {
        if self.running.load(Ordering::Acquire) {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        if self.running.swap(true, Ordering::AcqRel) {
            return;
        }
        let end = End(Arc::downgrade(shared));
        let task = runtime.spawn(drive(end, self.earlier.clone(), shared.clock));
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task.abort_handle());
    }

    /// Something is due earlier than what the task sleeps for.
    pub(crate) fn look_again(&self) {
        self.earlier.notify_one();
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let task = self.task.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = task.take() {
            task.abort();
        }
    }
}

async fn drive(end: End, earlier: Arc<Notify>, clock: Clock) {
    loop {
        // The throttle must not be kept alive by its own task.
        let Some(next) = end.0.upgrade().map(|shared| shared.turn()) else { return };
        match next {
            Turn::MoreIsDue => yield_now().await,
            Turn::SleepUntil(at) => tokio::select! {
                () = earlier.notified() => {}
                () = clock.sleep_until(at) => {}
            },
            Turn::Sleep => earlier.notified().await,
        }
    }
}

/// What the driver does after a turn.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Turn {
    MoreIsDue,
    SleepUntil(Moment),
    Sleep,
}

/// Says so when the task ends while the throttle lives.
struct End(Weak<Shared>);

impl Drop for End {
    fn drop(&mut self) {
        // A panic here means that the runtime has no timer: another try would fare the same.
        if thread::panicking() {
            return;
        }
        if let Some(shared) = self.0.upgrade() {
            shared.driver.running.store(false, Ordering::Release);
            shared.wake_all();
        }
    }
}
