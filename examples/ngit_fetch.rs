//! Brings one commit from somebody's server here, with all checks, and nothing else that the server has.
//!
//! Run with: cargo run -p purgatory-sync-examples --bin ngit_fetch -- URL COMMIT FOLDER [--local]

use std::error::Error;

use ngit_adapter::{
    RepositoryId,
    git::{Repositories, SmartHttpFetcher},
    nostr::key::PublicKey,
};
use purgatory_sync::{CloneUrl, FetchRequest, GitFetcher, Identifier, Oid};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [url, commit, folder, rest @ ..] = args.as_slice() else {
        return Err("give a URL, a commit and a folder".into());
    };
    // Both are parsed here: what is no URL and what is no object id gets no further.
    let url: CloneUrl = url.parse()?;
    let commit: Oid = commit.parse()?;

    // Loopback and private networks are refused unless they are asked for.
    let local = rest.iter().any(|arg| arg == "--local");
    let repositories = Repositories::open(folder)?;
    let fetcher = SmartHttpFetcher::builder(repositories.clone())
        .allow_private_networks(local)
        .build()
        .await?;

    // In a relay these come from a signed announcement. Here somebody is made up.
    let owner = PublicKey::from_byte_array([1; 32]);
    let identifier = Identifier::from("example");
    let repository = RepositoryId::new(owner, identifier.clone());
    let (oids, targets) = ([commit], [repository.to_target()]);
    let fetched = fetcher.fetch(FetchRequest::new(&identifier, &url, &oids, &targets)).await?;

    println!("{} of {} objects, {} requests", fetched.received.len(), oids.len(), fetched.requests);
    let missing = fetcher.missing(&identifier, &oids).await?;
    println!("{} missing in {}", missing.len(), repositories.path(&repository).display());
    Ok(())
}
