use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use tokio::{
    net::{TcpListener, TcpSocket},
    task::JoinSet,
};

use super::{
    books::Books,
    gate::gated,
    hosts::{Host, Names},
};
use crate::{git::Git, relay::SmartHttp};

/// The servers of the demo, each on an address of this machine and with a folder of its own.
pub(super) struct Servers {
    all: Vec<Server>,
    tasks: JoinSet<()>,
    /// A port that is taken and where nobody listens, so that it refuses for sure.
    _taken: TcpSocket,
}

pub(super) struct Server {
    pub(super) host: Host,
    pub(super) books: Books,
    pub(super) folder: PathBuf,
    address: SocketAddr,
}

impl Servers {
    pub(super) async fn start(git: &Git, root: &Path) -> io::Result<Self> {
        let taken = bind(Host::Closed)?;
        let mut tasks = JoinSet::new();
        let mut all = Vec::new();
        for host in Host::ALL {
            let folder = root.join(host.name());
            tokio::fs::create_dir_all(&folder).await?;
            let books = Books::default();
            let address = if host == Host::Closed {
                taken.local_addr()?
            } else {
                let listener = bind(host)?.listen(128)?;
                let address = listener.local_addr()?;
                let git_server = SmartHttp::folder(git.clone(), &folder).into_router();
                tasks.spawn(serve(listener, gated(git_server, host, books.clone())));
                address
            };
            all.push(Server { host, books, folder, address });
        }
        Ok(Self { all, tasks, _taken: taken })
    }

    pub(super) fn all(&self) -> &[Server] {
        &self.all
    }

    pub(super) fn at(&self, host: Host) -> &Server {
        let place = Host::ALL.iter().position(|each| *each == host);
        &self.all[place.expect("all hosts are in the list of all hosts")]
    }

    /// Who finds them by their names.
    pub(super) fn names(&self) -> Names {
        Names(self.all.iter().map(|server| (server.host, server.address.ip())).collect())
    }

    /// Ends them.
    pub(super) async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}

impl Server {
    /// The URL of a repository on it.
    pub(super) fn url(&self, repository: &str) -> String {
        format!("http://{}:{}/{repository}.git", self.host.name(), self.address.port())
    }
}

async fn serve(listener: TcpListener, router: axum::Router) {
    // Without an error there is no end: it is stopped.
    let _ = axum::serve(listener, router).await;
}

/// A free port of the host's own loopback address. Systems that have only one loopback address give that one to all:
/// the names still differ.
fn bind(host: Host) -> io::Result<TcpSocket> {
    let own = IpAddr::from(Ipv4Addr::new(127, 0, 0, host.number()));
    let socket = TcpSocket::new_v4()?;
    if socket.bind((own, 0).into()).is_ok() {
        return Ok(socket);
    }
    let socket = TcpSocket::new_v4()?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    Ok(socket)
}
