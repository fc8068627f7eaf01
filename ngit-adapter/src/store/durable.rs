//! How changes reach the disk.

use std::{path::PathBuf, sync::Arc};

use purgatory_sync::StoreError;
use tokio::{sync::Mutex, task};

use super::{config::StoreConfig, event_store::Inner, journal::Journal, shelf::Shelf};

/// The journal, and whose turn it is to write it. Not a lock of data: it is written by one at a
/// time, and whoever waited finds that the one before has written for all.
pub(super) type SharedJournal = Arc<Mutex<Journal>>;

/// Reads a journal into a shelf.
pub(super) async fn open(
    path: PathBuf,
    config: StoreConfig,
    now: u64,
) -> Result<(Shelf, SharedJournal), StoreError> {
    // What was held under a higher bound stays held under a lower one.
    let unbounded = config.unbounded();
    let read = task::spawn_blocking(move || {
        let mut shelf = Shelf::new(true);
        let journal = Journal::open(&path, |replay| shelf.replay(replay, &unbounded))?;
        shelf.give_deadlines(now, &unbounded);
        std::io::Result::Ok((shelf, Arc::new(Mutex::new(journal))))
    });
    let failed = || StoreError::new("the journal of held events could not be opened");
    read.await
        .map_err(|error| failed().with_source(error))?
        .map_err(|error| failed().with_source(error))
}

impl Inner {
    /// Waits until every change so far is on the disk. Calls that come while one writes are served
    /// together by the next.
    ///
    /// Cancel safe: what was begun is written.
    pub(super) async fn flush(&self) -> Result<(), StoreError> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let wanted = self.shelf().written();
        let mut journal = Arc::clone(journal).lock_owned().await;
        if journal.durable() >= wanted {
            return Ok(());
        }
        let (snapshot, lines, upto) = {
            let mut shelf = self.shelf();
            let upto = shelf.written();
            if journal.wants_rewrite(shelf.live_bytes()) {
                (Some(shelf.snapshot()), String::new(), upto)
            } else {
                (None, shelf.take_lines(), upto)
            }
        };
        let write = task::spawn_blocking(move || match snapshot {
            Some(snapshot) => journal.rewrite(&snapshot, upto),
            None => journal.append(&lines, upto),
        });
        let failed = || StoreError::new("the journal of held events could not be written");
        write
            .await
            .map_err(|error| failed().with_source(error))?
            .map_err(|error| failed().with_source(error))
    }
}
