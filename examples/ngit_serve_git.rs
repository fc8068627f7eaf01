//! Serves every repository below a folder, read only, and says what was asked when it ends.
//!
//! Run with: cargo run -p purgatory-sync-examples --bin ngit_serve_git -- FOLDER

use std::error::Error;

use ngit_adapter::{
    git::Git,
    relay::{RequestLog, SmartHttp},
};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("give a folder of repositories")?;
    let log = RequestLog::default();
    // A router like any other: nest it into an axum application of your own.
    let router = SmartHttp::folder(Git::find().await?, folder).with_log(log.clone()).into_router();

    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("http://{}/", listener.local_addr()?);
    let stop = async {
        if let Err(error) = tokio::signal::ctrl_c().await {
            eprintln!("Ctrl-C cannot be caught: {error}");
        }
    };
    axum::serve(listener, router).with_graceful_shutdown(stop).await?;
    let (requests, most) = (log.requests(), log.most_at_once());
    println!("{requests} requests, {} of them for objects, {most} at once at most", log.fetches());
    Ok(())
}
