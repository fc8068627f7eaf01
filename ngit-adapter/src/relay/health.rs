//! Whether the relay can do its work.

use std::time::Duration;

use nostr::filter::Filter;
use tokio::time::timeout;

use super::shared::Shared;

/// How long each part may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is wrong, a line each; nothing if all is well.
///
/// It looks at what the relay cannot do without: the database answers, the folder of repositories can be written, and the
/// engine runs. That other servers are down, and that much is held, is no illness.
pub(super) async fn troubles(shared: &Shared) -> Vec<&'static str> {
    let (database, folder) = futures::join!(database(shared), folder(shared));
    let engine = shared.sync().snapshot().stopping.then_some("the engine stops");
    [database, folder, engine].into_iter().flatten().collect()
}

async fn database(shared: &Shared) -> Option<&'static str> {
    let asked = shared.database().query(Filter::new().limit(1));
    match timeout(PATIENCE, asked).await {
        Ok(Ok(_)) => None,
        Ok(Err(_)) => Some("the database fails"),
        Err(_) => Some("the database does not answer"),
    }
}

async fn folder(shared: &Shared) -> Option<&'static str> {
    let root = shared.repositories().root().to_owned();
    let written = tokio::task::spawn_blocking(move || {
        let mut file = tempfile::Builder::new().prefix(".health-").tempfile_in(root)?;
        std::io::Write::write_all(&mut file, b"well")?;
        file.as_file().sync_all()
    });
    match timeout(PATIENCE, written).await {
        Ok(Ok(Ok(()))) => None,
        Ok(_) => Some("the folder of repositories cannot be written"),
        Err(_) => Some("the disk does not answer"),
    }
}
