//! What a server has of what is asked, found out in few requests, whatever the server says.

use std::path::PathBuf;

use ngit_adapter::{
    git::Git,
    relay::{RequestLog, SmartHttp},
};
use purgatory_sync::{FetchErrorKind as Kind, Oid};
use tempfile::TempDir;

use crate::{
    fetch_server::{
        ADVERTISEMENT, RESULT, ScriptedServer, answer_truly, capabilities, ok, packet, truth,
    },
    fetch_support::{Here, absent, chain},
    support::TestRepo,
    support_server::TestServer,
};

/// All gits on `PATH`: how one answers a probe depends on its version.
fn installed_gits() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").expect("there is a PATH");
    let gits: Vec<_> = std::env::split_paths(&path)
        .map(|folder| folder.join("git"))
        .filter(|git| git.is_file())
        .collect();
    assert!(!gits.is_empty(), "git is installed");
    gits
}

fn repo_of(commits: usize) -> (TempDir, TestRepo, Vec<Oid>) {
    let dir = TempDir::new().expect("a temporary folder");
    let repo = TestRepo::init(dir.path().join("project.git"));
    let commits = repo.commits("main", commits);
    (dir, repo, commits)
}

fn sorted(mut oids: Vec<Oid>) -> Vec<Oid> {
    oids.sort();
    oids
}

/// G5: of a chain of commits all come, in whatever order they are asked for, though a server may leave some out
/// of its answer to the probe.
#[tokio::test]
async fn a_chain_comes_in_any_order() {
    let (dir, _repo, commits) = repo_of(5);
    for git in installed_gits() {
        let log = RequestLog::default();
        let git = Git::at(git).await.expect("it is git");
        let router = SmartHttp::folder(git.clone(), dir.path()).with_log(log.clone());
        let server = TestServer::start_with("127.0.0.1", router.into_router(), log.clone());
        let reversed: Vec<Oid> = commits.iter().rev().copied().collect();
        for order in [&commits, &reversed] {
            let here = Here::new().await;
            let asked = [&[absent(1)], &order[..], &[absent(2)]].concat();
            let fetched = here.fetch(&server.url("project.git"), &asked).await.expect("it works");
            assert_eq!(sorted(fetched.received), sorted(commits.clone()), "{}", git.version());
            assert_eq!(fetched.requests, 4);
            assert!(fetched.ask_again.is_empty());
            assert!(here.repo().is_complete(commits[4]));
        }
    }
}

/// G5: thousands of objects are one fetch, whether all are there or not.
#[tokio::test]
async fn three_thousand_objects_are_one_fetch() {
    let (dir, _repo, commits) = repo_of(3_000);
    let server = TestServer::start("127.0.0.1", dir.path());
    let here = Here::new().await;
    let fetched = here.fetch(&server.url("project.git"), &commits).await.expect("it works");
    assert_eq!(sorted(fetched.received), sorted(commits.clone()));
    assert_eq!((fetched.requests, server.log().requests()), (2, 2));
    assert!(here.missing(&commits).await.is_empty());

    let here = Here::new().await;
    let asked = [&[absent(3)], &commits[..]].concat();
    let fetched = here.fetch(&server.url("project.git"), &asked).await.expect("it works");
    assert_eq!(sorted(fetched.received), sorted(commits.clone()));
    assert_eq!((fetched.requests, server.log().requests()), (4, 6));
    assert!(fetched.ask_again.is_empty());
}

/// G5: what is too much for one request is asked for in the next.
#[tokio::test]
async fn more_than_one_request_can_hold_is_asked_again() {
    let (dir, _repo, commits) = repo_of(3);
    let server = TestServer::start("127.0.0.1", dir.path());
    let here = Here::new().await;
    let absent = (0..10_050_u32).map(|number| {
        let mut hash = [0xee; 20];
        hash[..4].copy_from_slice(&number.to_be_bytes());
        Oid::sha1(hash)
    });
    let asked: Vec<Oid> = commits.iter().copied().chain(absent).collect();
    let fetched = here.fetch(&server.url("project.git"), &asked).await.expect("it works");
    assert_eq!(fetched.received, commits);
    assert_eq!(fetched.ask_again, asked[10_000..]);
    assert_eq!(fetched.requests, 4);
}

/// G5, G6: whatever an error line says, the probe tells what is there: another object, one in capitals, several
/// lines, none at all.
#[tokio::test]
async fn forged_error_lines_change_nothing() {
    let (_dir, repo, commits) = repo_of(4);
    let upper = commits[3].to_string().to_uppercase();
    for forged in [
        format!("upload-pack: not our ref {}", commits[3]),
        format!("upload-pack: not our ref {upper}"),
        format!("upload-pack: not our ref {}", absent(200)),
        format!("upload-pack: not our ref {}\nnot our ref {}\n", commits[0], commits[1]),
        "certificate dns ssl 401 shallow".to_owned(),
        "\x1b[2J\x07\r\n".to_owned(),
        String::new(),
    ] {
        let (repo, line) = (repo.clone(), packet(format!("ERR {forged}")));
        let server = ScriptedServer::start(move |request, stream| {
            match request.contains(&absent(1).to_string()) && request.wants() {
                true => ok(stream, RESULT, &line),
                false => answer_truly(&repo, request, stream),
            }
        });
        let here = Here::new().await;
        let asked = [absent(1), commits[3], commits[0]];
        let fetched = here.fetch(&server.url(), &asked).await.expect("two are there");
        assert_eq!(sorted(fetched.received), sorted(vec![commits[3], commits[0]]), "{forged:?}");
        assert_eq!((fetched.requests, server.requests().len()), (4, 4));
        assert!(fetched.ask_again.is_empty());
    }
}

/// G5: acknowledgements of objects that nobody asked for are passed over.
#[tokio::test]
async fn strange_acknowledgements_are_passed_over() {
    let server = ScriptedServer::start(|request, stream| {
        if request.is_discovery() {
            return ok(stream, ADVERTISEMENT, &capabilities("fetch=wait-for-done\n"));
        }
        if request.wants() {
            return ok(stream, RESULT, &packet("ERR no\n"));
        }
        let lines = [
            packet("acknowledgments\n"),
            packet(format!("ACK {}\n", absent(77))),
            packet("ACK HEAD\n"),
            packet("ACK --upload-pack=touch\n"),
            packet("NAK\n"),
            b"0000".to_vec(),
        ];
        ok(stream, RESULT, &lines.concat())
    });
    let here = Here::new().await;
    let fetched = here.fetch(&server.url(), &[absent(1)]).await.expect("it has nothing");
    assert!(fetched.received.is_empty() && fetched.ask_again.is_empty());
    assert_eq!(fetched.requests, 3);
}

/// A server with the truth about `repo` that cannot be probed.
fn not_to_be_probed(repo: TestRepo) -> ScriptedServer {
    ScriptedServer::start(move |request, stream| match request.is_discovery() {
        true => ok(stream, ADVERTISEMENT, &capabilities("fetch=shallow\n")),
        false => answer_truly(&repo, request, stream),
    })
}

/// Asks as the engine does, again where that is wanted. Gives what came, and the number of fetches.
async fn ask_until_done(here: &Here, url: &str, oids: &[Oid]) -> (Vec<Oid>, usize) {
    let (mut received, mut ask, mut fetches) = (Vec::new(), oids.to_vec(), 0);
    while !ask.is_empty() {
        fetches += 1;
        let fetched = here.fetch(url, &ask).await.expect("it answers");
        assert!(fetched.requests <= 4, "{} requests", fetched.requests);
        assert!(fetched.ask_again.len() < ask.len(), "asking again has to shrink");
        assert!(fetched.ask_again.iter().all(|oid| ask.contains(oid)));
        received.extend(fetched.received);
        ask = fetched.ask_again;
    }
    (received, fetches)
}

/// G5: from a server that cannot be probed, what its refs name comes at once, and the rest by asking again for less.
#[tokio::test]
async fn without_a_probe_the_question_shrinks() {
    let (_dir, repo, commits) = repo_of(10);
    let branch = repo.commit("side", "file", "side\n");
    let server = not_to_be_probed(repo);
    let here = Here::new().await;
    // Two tips, a commit behind one of them, three that are nowhere.
    let asked = [absent(1), commits[9], absent(2), branch, commits[4], absent(3)];
    let fetched = here.fetch(&server.url(), &asked).await.expect("it answers");
    assert_eq!(fetched.received, [commits[9], branch, commits[4]], "one came along");
    assert_eq!(fetched.requests, 4);
    assert!(fetched.ask_again.len() <= 2, "{:?}", fetched.ask_again);

    let here = Here::new().await;
    let (received, fetches) =
        ask_until_done(&here, &server.url(), &[&asked[..], &[commits[2]]].concat()).await;
    assert_eq!(sorted(received), sorted(vec![commits[9], branch, commits[4], commits[2]]));
    assert!(fetches <= 4, "{fetches} fetches");

    // None of these is a tip.
    let here = Here::new().await;
    let asked = [absent(1), commits[7], absent(2), commits[3]];
    let (received, fetches) = ask_until_done(&here, &server.url(), &asked).await;
    assert_eq!(sorted(received), sorted(vec![commits[7], commits[3]]));
    assert_eq!(fetches, 3);
}

/// G5: no answer makes it loop: a refusal that names nothing of what was asked is asked again once at most for what refs name, and
/// that is all.
#[tokio::test]
async fn refusals_without_a_name_end_it() {
    let (_dir, repo, commits) = repo_of(3);
    for text in ["ERR no\n".to_owned(), format!("ERR not our ref {}\n", absent(99))] {
        let (repo, line) = (repo.clone(), packet(text));
        let server = ScriptedServer::start(move |request, stream| match request {
            _ if request.is_discovery() => ok(stream, ADVERTISEMENT, &capabilities("fetch\n")),
            _ if request.contains(&absent(1).to_string()) => ok(stream, RESULT, &line),
            _ => ok(stream, RESULT, &truth(&repo, request)),
        });
        let here = Here::new().await;
        let asked = [commits[2], absent(1), commits[1]];
        let fetched = here.fetch(&server.url(), &asked).await.expect("it answers");
        // The tip, and its parent that came along.
        assert_eq!(fetched.received, [commits[2], commits[1]]);
        assert!(fetched.ask_again.is_empty());
    }
    let never = ScriptedServer::start(|request, stream| match request.is_discovery() {
        true => ok(stream, ADVERTISEMENT, &capabilities("fetch\n")),
        false => ok(stream, RESULT, &packet(format!("ERR not our ref {}\n", absent(2)))),
    });
    let here = Here::new().await;
    let kind =
        here.fetch(&never.url(), &[absent(1), absent(2)]).await.map(|fetched| fetched.ask_again);
    assert!(matches!(kind, Ok(again) if again == [absent(1)]));
}

/// G6: text of a server is shown in one line, without control characters, and not at any length.
#[tokio::test]
async fn text_of_servers_is_tamed() {
    let text = format!("ERR bad\r\n\x1b[31mred\x07\u{202e}{}\n", "long ".repeat(2_000));
    let server = ScriptedServer::start(move |request, stream| match request.is_discovery() {
        true => ok(stream, ADVERTISEMENT, &capabilities("fetch=wait-for-done\n")),
        false => ok(stream, RESULT, &packet(&text)),
    });
    let here = Here::new().await;
    let error = here.fetch(&server.url(), &[absent(1)]).await.expect_err("it gives up");
    assert_eq!(error.kind(), Kind::ServerError);
    let line = chain(&error);
    assert!(line.contains("bad") && line.len() < 1_000, "{line}");
    assert!(!line.chars().any(|c| c.is_control() || c == '\u{202e}'), "{line:?}");
}
