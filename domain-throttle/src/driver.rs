use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    thread,
};

use tokio::{
    runtime::{Handle, Id},
    sync::Notify,
    task::{AbortHandle, yield_now},
};

use crate::{Moment, clock::Clock, shared::Shared};

/// The tasks of a throttle: they bring what only time brings to those who wait, and forget.
///
/// There is one in each runtime that the throttle is used in, so that a runtime that is not driven
/// just now, or is busy, holds up nobody who waits in another. Each sleeps while nothing is due, and
/// ends with the throttle or with its runtime, whichever ends first.
#[derive(Debug, Default)]
pub(crate) struct Driver {
    tasks: Mutex<Vec<Task>>,
    earlier: Arc<Notify>,
}

#[derive(Debug)]
struct Task {
    runtime: Id,
    /// `None` until it is spawned, and after it turned out that its runtime has no timer.
    abort: Option<AbortHandle>,
}

impl Driver {
    /// Sees to it that there is a task in the runtime of the caller, if there is such a runtime.
    pub(crate) fn ensure(&self, shared: &Arc<Shared>) {
        let Ok(runtime) = Handle::try_current() else { return };
        let id = runtime.id();
        {
            let mut tasks = self.lock();
            if tasks.iter().any(|task| task.runtime == id) {
                return;
            }
            tasks.push(Task { runtime: id, abort: None });
        }
        let end = End { shared: Arc::downgrade(shared), runtime: id, has_begun: false };
        // A runtime that is shutting down drops the task at once, which then takes the lock.
        let spawned = runtime.spawn(drive(end, self.earlier.clone(), shared.clock));
        if let Some(task) = self.lock().iter_mut().find(|task| task.runtime == id) {
            task.abort = Some(spawned.abort_handle());
        }
    }

    /// Something is due earlier than what the tasks sleep for.
    pub(crate) fn look_again(&self) {
        self.earlier.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Task>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let tasks = self.tasks.get_mut().unwrap_or_else(PoisonError::into_inner);
        tasks.drain(..).filter_map(|task| task.abort).for_each(|task| task.abort());
    }
}

async fn drive(mut end: End, earlier: Arc<Notify>, clock: Clock) {
    end.has_begun = true;
    loop {
        // Made before the look, so that it hears of what comes between the look and the sleep.
        let told = earlier.notified();
        // The throttle must not be kept alive by its own task.
        let Some(next) = end.shared.upgrade().map(|shared| shared.turn()) else { return };
        match next {
            Turn::MoreIsDue => yield_now().await,
            Turn::SleepUntil(at) => tokio::select! {
                () = told => {}
                () = clock.sleep_until(at) => {}
            },
            Turn::Sleep => told.await,
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

/// Says so when a task ends while the throttle lives.
struct End {
    shared: Weak<Shared>,
    runtime: Id,
    has_begun: bool,
}

impl Drop for End {
    fn drop(&mut self) {
        // A panic here means that the runtime has no timer: another try would fare the same.
        if thread::panicking() {
            return;
        }
        if let Some(shared) = self.shared.upgrade() {
            shared.driver.lock().retain(|task| task.runtime != self.runtime);
            // Who was polled there may be polled elsewhere from now on, and starts a task there.
            if self.has_begun {
                shared.wake_all();
            }
        }
    }
}
