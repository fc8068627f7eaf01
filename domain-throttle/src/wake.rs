use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    task::Waker,
};

/// Wakes each. A waker may be anybody's code: a panic in one is its own, the others are woken all
/// the same. Who wakes may be unwinding already, and a second panic would end the process.
pub(crate) fn wake_all(wakers: impl IntoIterator<Item = Waker>) {
    for waker in wakers {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
            // What was thrown may throw again when it is dropped.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(panic)));
        }
    }
}
