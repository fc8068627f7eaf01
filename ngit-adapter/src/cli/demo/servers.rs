use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use tokio::{net::TcpListener, task::JoinSet};

use super::world::Place;
use crate::{
    git::Git,
    relay::{RequestLog, SmartHttp},
};

/// Three git servers on three addresses of this machine, each with a folder of its own.
pub(super) struct Servers {
    pub(super) all: [Server; 3],
    tasks: JoinSet<()>,
}

pub(super) struct Server {
    pub(super) address: SocketAddr,
    pub(super) log: RequestLog,
    folder: PathBuf,
}

impl Servers {
    pub(super) async fn start(git: &Git, root: &Path) -> io::Result<Self> {
        let mut tasks = JoinSet::new();
        let mut start = async |number: u8| {
            let listener = listen(number).await?;
            let server = Server {
                address: listener.local_addr()?,
                log: RequestLog::default(),
                folder: root.join(number.to_string()),
            };
            tokio::fs::create_dir_all(&server.folder).await?;
            let router = SmartHttp::folder(git.clone(), &server.folder)
                .with_log(server.log.clone())
                .into_router();
            tasks.spawn(async move {
                // Without an error there is no end: it is stopped.
                let _ = axum::serve(listener, router).await;
            });
            io::Result::Ok(server)
        };
        let all = [start(1).await?, start(2).await?, start(3).await?];
        Ok(Self { all, tasks })
    }

    pub(super) fn places(&self) -> [Place<'_>; 3] {
        self.all
            .each_ref()
            .map(|server| Place { base_url: server.base_url(), folder: &server.folder })
    }

    /// Ends them.
    pub(super) async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}

impl Server {
    pub(super) fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The names of the repositories it serves, sorted.
    pub(super) fn repositories(&self) -> Vec<String> {
        let entries = self.folder.read_dir().into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

/// Listens on 127.0.0.`number`. Systems that have only one loopback address get that one, three times.
async fn listen(number: u8) -> io::Result<TcpListener> {
    let own = IpAddr::from(Ipv4Addr::new(127, 0, 0, number));
    match TcpListener::bind((own, 0)).await {
        Ok(listener) => Ok(listener),
        Err(_) => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await,
    }
}
