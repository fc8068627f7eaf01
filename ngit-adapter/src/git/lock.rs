//! One at a time in a repository: in this process by a queue, against other processes by a lock file.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use tokio::sync::{Mutex as Queue, OwnedMutexGuard};

use super::{RepositoryError, repositories::off_worker};
use crate::file_lock::FileLock;

/// The lock file in a repository. It stays there; the lock on it ends with its process, however that ends.
const LOCK_FILE: &str = "ngit.lock";

/// How long another process may hold a repository before a waiter gives up, and how often it looks.
/// Nobody holds it across the network, so this is much more than any of our own work takes.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The queues of the repositories that are in use in this process.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    queues: Mutex<HashMap<PathBuf, Weak<Queue<()>>>>,
}

/// A repository is held: nobody else changes its refs or adds packs to it meanwhile. Dropping it lets the next one in.
#[must_use = "the repository is free again when this is dropped"]
#[derive(Debug)]
pub struct RepositoryLock {
    // In this order: the next one in the queue must find the file unlocked.
    _file: FileLock,
    _turn: OwnedMutexGuard<()>,
}

impl Locks {
    /// Waits until the repository at `path`, which exists, is free, and takes it.
    ///
    /// # Cancel safety
    ///
    /// A dropped wait leaves the queue.
    pub(crate) async fn lock(&self, path: &Path) -> Result<RepositoryLock, RepositoryError> {
        let turn = self.queue(path).lock_owned().await;
        let file = lock_file(path).await?;
        Ok(RepositoryLock { _file: file, _turn: turn })
    }

    fn queue(&self, path: &Path) -> Arc<Queue<()>> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = queues.get(path).and_then(Weak::upgrade) {
            return queue;
        }
        // Forgets what is no longer used whenever the map would have to grow: amortised, and it stays
        // as small as twice what is in use.
        if queues.len() == queues.capacity() {
            queues.retain(|_, queue| queue.strong_count() > 0);
        }
        let queue = Arc::new(Queue::new(()));
        queues.insert(path.to_owned(), Arc::downgrade(&queue));
        queue
    }
}

/// Takes the lock against other processes. The turn in the queue is ours, so at most one task per repository waits here.
#[expect(clippy::disallowed_methods, reason = "a lock of another process can only be looked at")]
async fn lock_file(repository: &Path) -> Result<FileLock, RepositoryError> {
    let mut waited = Duration::ZERO;
    loop {
        let path = repository.join(LOCK_FILE);
        if let Some(file) = off_worker(move || try_lock(&path)).await? {
            return Ok(file);
        }
        if waited >= PATIENCE {
            return Err(RepositoryError::new(format!(
                "another process has held the repository {} for {} s",
                repository.display(),
                PATIENCE.as_secs()
            )));
        }
        tokio::time::sleep(LOOK_AGAIN).await;
        waited += LOOK_AGAIN;
    }
}

/// The lock, if nobody has it.
fn try_lock(path: &Path) -> Result<Option<FileLock>, RepositoryError> {
    let what = || format!("cannot lock {}", path.display());
    FileLock::try_take(path).map_err(RepositoryError::because(what()))
}
