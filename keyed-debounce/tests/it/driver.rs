//! The push driver.

use std::{
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use keyed_debounce::{
    Debounce, Drain, Event, KeyedDebouncer, Outcome, Run, ScheduleError, Scheduled, Scheduler,
    SchedulerError, drive,
};
use tokio::{
    task::yield_now,
    time::{sleep, timeout},
};

use crate::sim::{bounded, ms, secs};

/// D5: handlers run in parallel, up to the limit, 16 by default, and never one key twice.
#[tokio::test(start_paused = true)]
async fn runs_are_parallel_up_to_the_limit() {
    bounded();
    for (limit, expected) in [(None, 16), (NonZeroUsize::new(3), 3)] {
        let mut builder = KeyedDebouncer::builder();
        if let Some(limit) = limit {
            builder = builder.max_parallel(limit);
        }
        let queue = builder.build();
        for key in 0..100 {
            queue.schedule(key, Debounce::immediate()).unwrap();
        }
        let (on, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let handler = {
            let most = Arc::clone(&most);
            move |run: Run<i32>| {
                let (on, most) = (Arc::clone(&on), Arc::clone(&most));
                async move {
                    most.fetch_max(on.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    sleep(ms(10)).await;
                    on.fetch_sub(1, Ordering::SeqCst);
                    run.finish(Outcome::Done);
                }
            }
        };
        let (_, left) = tokio::join!(queue.run(handler), queue.drain(Drain::Ready, secs(60)));
        assert_eq!((most.load(Ordering::SeqCst), left.total()), (expected, 0));
    }
}

/// D10: dropping the driver aborts its handlers; their keys are retried and nothing is wedged.
#[tokio::test(start_paused = true)]
async fn dropping_the_driver_aborts_its_handlers() {
    bounded();
    let queue = KeyedDebouncer::new();
    queue.schedule("a", Debounce::immediate()).unwrap();
    let endless = queue.run(|run| async move {
        sleep(secs(1 << 20)).await;
        run.finish(Outcome::Done);
    });
    assert!(timeout(secs(1), endless).await.is_err());
    yield_now().await;
    assert_eq!(queue.counts().backoff, 1);
    assert_eq!(queue.next().await.unwrap().attempt(), 2);
}

/// D10: a handler that forgets to finish its run has failed.
#[tokio::test(start_paused = true)]
async fn a_handler_that_forgets_to_finish_is_retried() {
    bounded();
    let queue = KeyedDebouncer::new();
    queue.schedule("a", Debounce::immediate()).unwrap();
    let forgetful = queue.run(|run| async move { drop(run) });
    assert!(timeout(secs(1), forgetful).await.is_err());
    assert_eq!(queue.counts().backoff, 1);
}

/// A store that fails after one run.
struct Failing(KeyedDebouncer<u32>);

#[async_trait]
impl Scheduler<u32> for Failing {
    async fn schedule(&self, key: u32, at: Debounce) -> Result<Scheduled, ScheduleError<u32>> {
        Scheduler::schedule(&self.0, key, at).await
    }
    async fn next(&self) -> Result<Run<u32>, SchedulerError> {
        match self.0.counts().running {
            0 => self.0.next().await,
            _ => Err(SchedulerError::Backend("the store is away".into())),
        }
    }
    async fn cancel(&self, key: &u32) -> Result<bool, SchedulerError> {
        Scheduler::cancel(&self.0, key).await
    }
    async fn close(&self) {
        self.0.close();
    }
}

/// D20: the driver runs any scheduler, and a failed store ends it after its handlers.
#[tokio::test(start_paused = true)]
async fn it_drives_any_scheduler_and_reports_a_failed_store() {
    bounded();
    let queue = Failing(KeyedDebouncer::new());
    queue.schedule(1, Debounce::immediate()).await.unwrap();
    let scheduler: &dyn Scheduler<u32> = &queue;
    let end = drive(scheduler, NonZeroUsize::MIN.saturating_add(1), |run| async move {
        sleep(secs(5)).await;
        run.finish(Outcome::Done);
    });
    let failed = end.await.unwrap_err();
    assert!(matches!(failed, SchedulerError::Backend(_)));
    assert!(queue.0.is_empty(), "the handler has ended");
}

/// D6: a request during the run wakes its holder, all who wait for it, and is not used up by that.
#[tokio::test(start_paused = true)]
async fn long_work_may_look_again_at_once() {
    bounded();
    let queue = KeyedDebouncer::builder()
        .observer(|event: &Event<'_, &'static str>| {
            if let Event::Finished { took, .. } = event {
                assert_eq!(*took, secs(1));
            }
        })
        .build();
    queue.schedule("a", Debounce::immediate()).unwrap();
    let run = queue.next().await.unwrap();
    let again = tokio::spawn({
        let queue = queue.clone();
        async move {
            sleep(secs(1)).await;
            queue.schedule("a", Debounce::after(ms(50))).unwrap()
        }
    });
    tokio::join!(run.scheduled_again(), run.scheduled_again());
    run.scheduled_again().await;
    run.finish(Outcome::Done);
    assert_eq!(again.await.unwrap(), Scheduled::AfterRun);
    let run = queue.next().await.unwrap();
    assert!(timeout(secs(9), run.scheduled_again()).await.is_err());
    assert!(timeout(secs(9), run.lost()).await.is_err(), "a hold in memory is never lost");
}

/// D20: a scheduler behind an `Arc`, as others are given it, is one too.
#[tokio::test(start_paused = true)]
async fn a_shared_scheduler_is_a_scheduler() {
    bounded();
    let shared: Arc<dyn Scheduler<u32>> = Arc::new(KeyedDebouncer::new());
    async fn story(scheduler: impl Scheduler<u32>) {
        scheduler.schedule(1, Debounce::immediate()).await.unwrap();
        scheduler.next().await.unwrap().finish(Outcome::Retry);
        assert!(scheduler.cancel(&1).await.unwrap());
        scheduler.close().await;
        assert!(matches!(scheduler.next().await, Err(SchedulerError::Closed)));
    }
    story(shared).await;
}
