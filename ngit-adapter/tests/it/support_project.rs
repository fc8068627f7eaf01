//! One repository on one server, and what its owner says of it.

use ngit_adapter::nostr::event::Event;
use tempfile::TempDir;

use crate::{support::TestRepo, support_events::Person, support_server::TestServer};

/// The repository `project` with three commits, a server that has it, and the events that name it.
pub(crate) struct Project {
    pub(crate) server: TestServer,
    pub(crate) announcement: Event,
    /// `main` is at the last commit.
    pub(crate) state: Event,
    _folder: TempDir,
}

impl Project {
    pub(crate) fn served() -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let commits = TestRepo::init(folder.path().join("project.git")).commits("main", 3);
        let server = TestServer::start("127.0.0.1", folder.path());
        let owner = Person::new(1);
        let announcement = owner.announcement("project", &[&server.url("project.git")]);
        let state = owner.state("project", &[("refs/heads/main", commits[2])]);
        Self { server, announcement, state, _folder: folder }
    }
}
