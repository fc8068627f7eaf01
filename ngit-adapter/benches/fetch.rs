//! Our fetch beside a plain `git fetch` of the same objects from the same server, in one run, and the HTTP
//! requests that fetches make.
//!
//! Run with: `cargo bench -p ngit-adapter --bench fetch`

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

#[path = "../tests/it/support.rs"]
mod support;
#[path = "../tests/it/support_server.rs"]
mod support_server;

use std::time::{Duration, Instant};

use ngit_adapter::{
    RepositoryId,
    git::{Repositories, SmartHttpFetcher},
    nostr::key::PublicKey,
};
use purgatory_sync::{CloneUrl, FetchRequest, Fetched, GitFetcher, Identifier, Oid};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use support::TestRepo;
use support_server::TestServer;

const ROUNDS: usize = 21;

fn main() {
    let there = There::new();
    let tip = &there.commits[there.commits.len() - 1..];
    println!("## Time, median of {ROUNDS}, each in turn with the other\n");
    println!("| fetch | ours | `git fetch` | ratio |\n|---|---|---|---|");
    there.compare("1,000 commits by their tip", "commits.git", tip);
    there.compare("1,000 commits, each named", "commits.git", &there.commits);
    there.compare("10 MB in 200 files", "large.git", &[there.large]);
    println!("\n## HTTP requests, counted on the server\n");
    println!("| asked | there | `git fetch` of what is there | ours |\n|---|---|---|---|");
    for (missing, present) in [(0, 10), (1, 9), (5, 35), (16, 3), (7, 0)] {
        there.count(missing, present);
    }
}

/// A server, and what it has.
struct There {
    runtime: Runtime,
    _folder: TempDir,
    server: TestServer,
    commits: Vec<Oid>,
    large: Oid,
}

/// A fetcher with an empty folder.
struct Here {
    _folder: TempDir,
    fetcher: SmartHttpFetcher,
    id: RepositoryId,
}

impl There {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let folder = TempDir::new().expect("a temporary folder");
        let repo = TestRepo::init(folder.path().join("commits.git"));
        let commits = repo.commits("main", 1_000);
        let repo = TestRepo::init(folder.path().join("large.git"));
        let mut large = None;
        for file in 0..200_u32 {
            large = Some(repo.commit("main", &format!("file{file}"), &noise(file)));
        }
        for name in ["commits.git", "large.git"] {
            TestRepo::open(folder.path().join(name)).git(["repack", "-a", "-d", "-q"]);
        }
        let server = TestServer::start("127.0.0.1", folder.path());
        Self {
            runtime: runtime.expect("a runtime"),
            _folder: folder,
            server,
            commits,
            large: large.expect("there are files"),
        }
    }

    fn compare(&self, what: &str, repository: &str, oids: &[Oid]) {
        let url = self.server.url(repository);
        let (mut ours, mut plain) = (Vec::new(), Vec::new());
        // The first round of each fills caches and is not counted.
        for round in 0..=ROUNDS {
            let times = (self.fetch_ours(&url, oids), fetch_plain(&url, oids));
            if round > 0 {
                ours.push(times.0);
                plain.push(times.1);
            }
        }
        let (ours, plain) = (median(ours), median(plain));
        let ratio = ours.as_secs_f64() / plain.as_secs_f64();
        println!("| {what} | {ours:.1?} | {plain:.1?} | {ratio:.2} |");
    }

    fn fetch_ours(&self, url: &str, oids: &[Oid]) -> Duration {
        let here = self.here();
        let begun = Instant::now();
        let fetched = self.fetch(&here, url, oids);
        let time = begun.elapsed();
        assert_eq!(fetched.received.len(), oids.len());
        time
    }

    fn count(&self, missing: u8, present: usize) {
        let url = self.server.url("commits.git");
        let tail = &self.commits[self.commits.len() - present..];
        let absent = (0..missing).map(|number| Oid::sha1([number ^ 0xa5; 20]));
        let asked: Vec<Oid> = absent.chain(tail.iter().copied()).collect();
        let requests = || self.server.log().requests();
        let before = requests();
        let fetched = self.fetch(&self.here(), &url, &asked);
        let ours = requests() - before;
        assert_eq!((fetched.received.len(), u64::from(fetched.requests)), (present, ours));
        let before = requests();
        if present > 0 {
            fetch_plain(&url, tail);
        }
        let plain = requests() - before;
        println!("| {} | {present} | {plain} | {ours} |", asked.len());
    }

    fn here(&self) -> Here {
        let folder = TempDir::new().expect("a temporary folder");
        let repositories = Repositories::open(folder.path()).expect("the folder can be used");
        let hex = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
        let owner = PublicKey::from_hex(hex).expect("a public key");
        let builder = SmartHttpFetcher::builder(repositories).allow_private_networks(true);
        let fetcher = self.runtime.block_on(builder.build()).expect("git is installed");
        let id = RepositoryId::new(owner, Identifier::from("project"));
        Here { _folder: folder, fetcher, id }
    }

    fn fetch(&self, here: &Here, url: &str, oids: &[Oid]) -> Fetched {
        let url: CloneUrl = url.parse().expect("a clone URL");
        let targets = [here.id.to_target()];
        let request = FetchRequest::new(&here.id.identifier, &url, oids, &targets);
        self.runtime.block_on(here.fetcher.fetch(request)).expect("it works")
    }
}

/// What a script would do: objects that are named one by one go to git by its standard input.
fn fetch_plain(url: &str, oids: &[Oid]) -> Duration {
    let folder = TempDir::new().expect("a temporary folder");
    let repo = TestRepo::init(folder.path().join("project.git"));
    let names: Vec<String> = oids.iter().map(ToString::to_string).collect();
    let begun = Instant::now();
    let args = ["fetch", "--quiet", "--no-tags", "--stdin", url];
    repo.git_with_input(&args, names.join("\n").as_bytes());
    begun.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// 50 KB that do not compress to nothing.
fn noise(seed: u32) -> String {
    let mut state = seed.wrapping_add(1);
    let mut text = String::new();
    while text.len() < 50_000 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.push_str(&format!("{state:08x}\n"));
    }
    text
}
