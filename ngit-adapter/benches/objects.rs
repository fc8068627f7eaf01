//! Objects, refs and siblings beside what a script would do with git, in one run.
//!
//! Run with: `cargo bench -p ngit-adapter --bench objects`

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

#[path = "../tests/it/support.rs"]
mod support;

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use ngit_adapter::{
    RefKeeper, RepositoryId, StateRefs,
    git::{CheckedPack, FetchTarget, Repositories},
    nostr::key::{Keys, SecretKey},
};
use purgatory_sync::{Identifier, Oid};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use support::TestRepo;

/// Each commit brings itself, two trees and a blob.
const COMMITS: usize = 12_500;
const ASKED: usize = 1_000;
const REFS: usize = 100;
const INCREMENT: usize = 20;

type Refs = Vec<(String, Oid)>;

struct Bench {
    runtime: Runtime,
    repositories: Repositories,
    folder: TempDir,
    source: TestRepo,
    commits: Vec<Oid>,
}

fn main() {
    let bench = Bench::new();
    bench.existence();
    bench.refs();
    bench.increment();
    bench.full_copy();
}

impl Bench {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let folder = TempDir::new().expect("a temporary folder");
        let source = TestRepo::init(folder.path().join("source"));
        let commits = source.commits("main", COMMITS);
        source.git(["repack", "-a", "-d", "-q"]);
        let repositories = Repositories::open(folder.path()).expect("the folder can be opened");
        let bench = Self { runtime, repositories, folder, source, commits };
        bench.give(&id(0), bench.pack());
        bench.apply(&id(0), &[("refs/heads/main".to_owned(), bench.commits[COMMITS - 1])]);
        bench
    }

    /// 1,000 objects of 50,000, half of them missing.
    fn existence(&self) {
        let oids: Vec<Oid> = (0..ASKED)
            .map(|number| match number % 2 {
                0 => self.commits[number * 12],
                _ => Oid::sha1([u8::try_from(number % 251).expect("it fits"); 20]),
            })
            .collect();
        let repo = self.repo(&id(0));
        println!(
            "\nexistence of {ASKED} objects, half of them missing, in {} objects",
            COMMITS * 4
        );
        let ours = median(30, || {
            let missing = self.runtime.block_on(self.repositories.missing(&identifier(), &oids));
            assert_eq!(missing.expect("it can be read").len(), ASKED / 2);
        });
        let lines: String = oids.iter().map(|oid| format!("{oid}\n")).collect();
        let batch = median(10, || {
            let said = repo.git_with_input(&["cat-file", "--batch-check"], lines.as_bytes());
            assert_eq!(said.lines().filter(|line| line.ends_with("missing")).count(), ASKED / 2);
        });
        let each = median(1, || {
            let found =
                |oid: &&Oid| repo.try_git(["cat-file", "-e", &oid.to_string()]).status.success();
            assert_eq!(oids.iter().filter(found).count(), ASKED / 2);
        });
        row("Repositories::missing", ours, ours);
        row("git cat-file --batch-check", batch, ours);
        row("1,000 times git cat-file -e", each, ours);
    }

    /// 100 branches that all move.
    fn refs(&self) {
        println!("\n{REFS} branches move");
        let refs = |shift: usize| -> Refs {
            let name = |number| format!("refs/heads/topic/{number}");
            (0..REFS).map(|number| (name(number), self.commits[number * 100 + shift])).collect()
        };
        let ours_id = id(1);
        let (stdin, each) = (self.other("stdin"), self.other("each"));
        self.give(&ours_id, self.pack());
        let mut shift = 0;
        let mut rounds = |rounds: usize, work: &mut dyn FnMut(&Refs)| {
            median(rounds, || {
                shift += 1;
                work(&refs(shift));
            })
        };
        let ours = rounds(20, &mut |refs| self.apply(&ours_id, refs));
        let unlisted_id = id(3);
        self.give(&unlisted_id, self.pack());
        let list = self.repositories.path(&unlisted_id).join("ngit-packs");
        std::fs::remove_file(list).expect("it was there");
        let unlisted = rounds(20, &mut |refs| self.apply(&unlisted_id, refs));
        let by_stdin = rounds(20, &mut |refs| {
            let lines: String =
                refs.iter().map(|(name, oid)| format!("update {name} {oid}\n")).collect();
            stdin.git_with_input(&["update-ref", "--stdin"], lines.as_bytes());
        });
        let by_each = rounds(3, &mut |refs| {
            for (name, oid) in refs {
                each.git(["update-ref", name, &oid.to_string()]);
            }
        });
        row("apply_state, with its checks", ours, ours);
        row("apply_state, where packs went: git looks", unlisted, ours);
        row("git update-ref --stdin", by_stdin, ours);
        row("100 times git update-ref", by_each, ours);
    }

    /// A sibling that lacks 20 commits gets them.
    fn increment(&self) {
        println!("\na sibling gets {INCREMENT} commits");
        let ours_id = id(2);
        let theirs = self.other("increment");
        theirs.git(["update-ref", "refs/heads/main", &self.commits[COMMITS - 1_001].to_string()]);
        theirs.git(["gc", "--quiet", "--prune=now"]);
        self.apply(&ours_id, &[("refs/heads/main".to_owned(), self.commits[COMMITS - 1_001])]);
        let mut next = COMMITS - 1_001;
        let ours = median(20, || {
            next += INCREMENT;
            self.apply(&ours_id, &[("refs/heads/main".to_owned(), self.commits[next])]);
        });
        let donor = self.repositories.path(&id(0));
        let mut next = COMMITS - 1_001;
        let fetch = median(20, || {
            next += INCREMENT;
            let what = format!("{}:refs/heads/main", self.commits[next]);
            theirs.git(["fetch", "--quiet", donor.to_str().expect("UTF-8"), &what]);
        });
        row("apply_state, with all its checks", ours, ours);
        row("git fetch <path>", fetch, ours);
    }

    /// A sibling that has nothing gets everything.
    fn full_copy(&self) {
        println!("\na sibling gets all {} objects", COMMITS * 4);
        let tip = self.commits[COMMITS - 1];
        let (mut number, pack) = (10, self.pack());
        let linked = median(5, || {
            number += 1;
            self.give(&id(number), pack.clone());
        });
        let donor = self.repositories.path(&id(0));
        let fetch = median(3, || {
            number += 1;
            let empty = TestRepo::init(self.folder.path().join(format!("empty{number}")));
            let what = format!("{tip}:refs/heads/main");
            empty.git(["fetch", "--quiet", donor.to_str().expect("UTF-8"), &what]);
        });
        let copied = median(3, || {
            number += 1;
            self.apply(&id(number), &[("refs/heads/main".to_owned(), tip)]);
        });
        row("adopt: the fetched pack gets another name", linked, copied);
        row("apply_state: a copy, with all its checks", copied, copied);
        row("git fetch <path>", fetch, copied);
    }

    fn repo(&self, id: &RepositoryId) -> TestRepo {
        TestRepo::open(self.repositories.path(id))
    }

    /// A repository with all objects that is not one of ours.
    fn other(&self, name: &str) -> TestRepo {
        let repo = TestRepo::init(self.folder.path().join(name));
        for file in self.source.object_files() {
            let below = file.strip_prefix(self.source.path()).expect("it is below");
            std::fs::create_dir_all(repo.path().join(below).parent().expect("a parent"))
                .and_then(|()| std::fs::hard_link(&file, repo.path().join(below)))
                .expect("it can be linked");
        }
        repo
    }

    fn pack(&self) -> CheckedPack {
        let files = self.source.object_files();
        let find = |extension: &str| -> PathBuf {
            let is = |file: &&PathBuf| file.extension().is_some_and(|it| it == extension);
            files.iter().find(is).expect("it was repacked").clone()
        };
        CheckedPack { pack: find("pack"), index: find("idx"), stands_alone: true }
    }

    fn give(&self, id: &RepositoryId, pack: CheckedPack) {
        self.runtime.block_on(async {
            let path = self.repositories.create(id).await.expect("it can be made");
            let objects = path.join("objects");
            let tips = Vec::new();
            let target =
                FetchTarget { repository: id.clone(), path, is_whole: true, objects, tips };
            self.repositories.adopt(&target, &pack, &[]).await.expect("the pack is taken");
        });
    }

    fn apply(&self, id: &RepositoryId, refs: &[(String, Oid)]) {
        let refs = refs.iter().map(|(name, oid)| (name.parse().expect("a ref name"), *oid));
        let state = StateRefs { refs: refs.collect(), ..StateRefs::default() };
        let applied = self.runtime.block_on(self.repositories.apply_state(id, &state));
        applied.expect("the state can be applied");
    }
}

fn identifier() -> Identifier {
    Identifier::from("r")
}

fn id(number: u8) -> RepositoryId {
    let secret = SecretKey::from_slice(&[number + 1; 32]).expect("a secret key");
    RepositoryId::new(Keys::new(secret).public_key(), identifier())
}

fn median(rounds: usize, mut work: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let begun = Instant::now();
            work();
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[rounds / 2]
}

fn row(name: &str, time: Duration, of: Duration) {
    let ratio = time.as_secs_f64() / of.as_secs_f64();
    println!("{name:<44} {:>10.2} ms {ratio:>9.2} x", time.as_secs_f64() * 1e3);
}
