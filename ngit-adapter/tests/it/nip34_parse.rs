//! What is read from the tags of each kind, hostile and sloppy ones included.

use ngit_adapter::{
    nip34::{
        Announcement, GitEvent, Nip34Error, Patch, Proposal, PullRequest, PullRequestUpdate, State,
    },
    nostr::event::{Tag, Tags},
};
use proptest::prelude::*;

use crate::store_support::{event, key, oid};

const GOOD: &str = "0123456789abcdef0123456789abcdef01234567";
const OTHER: &str = "1123456789abcdef0123456789abcdef01234567";
const SHA256: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn tags(tags: &[&[&str]]) -> Tags {
    Tags::from_list(tags.iter().map(|tag| Tag::parse(tag.iter().copied()).unwrap()).collect())
}

fn proposal(of: &[&[&str]]) -> Result<Proposal, Nip34Error> {
    PullRequest::from_tags(&tags(of)).map(|it| it.proposal)
}

/// The `a` of a pull request, in all its forms.
#[test]
fn the_repository_of_a_pull_request() {
    let owner = key(1).to_hex();
    let other = key(2).to_hex();
    let at = |kind: &str, owner: &str, id: &str| format!("{kind}:{owner}:{id}");
    let c: &[&str] = &["c", GOOD];
    // (the values of `a`, the identifier, how many repositories)
    let plain = at("30617", &owner, "repo");
    let colon = at("30617", &owner, "a:b:c");
    let upper = at("30617", &owner.to_uppercase(), "repo");
    let sibling = at("30617", &other, "repo");
    let another = at("30617", &other, "another");
    let wrong_kind = at("30618", &owner, "repo");
    let empty = at("30617", &owner, "");
    let unicode = at("30617", &owner, "../ä /🦀");
    let good: &[(&[&[&str]], &str, usize)] = &[
        (&[&["a", &plain]], "repo", 1),
        (&[&["a", &colon]], "a:b:c", 1),
        (&[&["a", &plain, "wss://relay.example.org"]], "repo", 1),
        (&[&["a", &plain, "", "root"]], "repo", 1),
        (&[&["a", &plain], &["a", &plain]], "repo", 1),
        (&[&["a", &plain], &["a", &sibling]], "repo", 2),
        (&[&["a", &plain], &["a", &another]], "repo", 1),
        (&[&["a", &upper]], "repo", 1),
        (&[&["a", &upper], &["a", &plain]], "repo", 1),
        (&[&["a", &wrong_kind], &["a", &plain]], "repo", 1),
        (&[&["a"], &["a", &plain]], "repo", 1),
        (&[&["a", &empty]], "", 1),
        (&[&["a", &unicode]], "../ä /🦀", 1),
    ];
    for (a, identifier, repositories) in good {
        let all: Vec<&[&str]> = a.iter().copied().chain([c]).collect();
        let proposal = proposal(&all).unwrap();
        assert_eq!(proposal.identifier().as_str(), *identifier, "{a:?}");
        assert_eq!(proposal.repositories.len(), *repositories, "{a:?}");
        assert_eq!(proposal.repositories[0].owner, key(1), "{a:?}");
    }
    let short = at("30617", &owner[..63], "repo");
    let not_hex = at("30617", &"z".repeat(64), "repo");
    let not_ascii = at("30617", &"é".repeat(32), "repo");
    let bad: &[&[&[&str]]] = &[
        &[],
        &[&["a"]],
        &[&["a", ""]],
        &[&["a", "30617"]],
        &[&["a", &format!("30617:{owner}")]],
        &[&["a", &wrong_kind]],
        &[&["a", &at(" 30617", &owner, "repo")]],
        &[&["a", &at("030617", &owner, "repo")]],
        &[&["a", &short]],
        &[&["a", &not_hex]],
        &[&["a", &not_ascii]],
        &[&["A", &plain]],
    ];
    for a in bad {
        let all: Vec<&[&str]> = a.iter().copied().chain([c]).collect();
        assert_eq!(proposal(&all), Err(Nip34Error::NoRepository), "{a:?}");
    }
    let long = at("30617", &owner, &"x".repeat(8_193));
    assert_eq!(proposal(&[&["a", &long], c]), Err(Nip34Error::IdentifierTooLong(8_193)));
}

/// G1: the `c` of a pull request, in all its forms.
#[test]
fn the_commit_of_a_pull_request() {
    let a = format!("30617:{}:repo", key(1).to_hex());
    let repository = ["a", a.as_str()];
    let with = |c: &[&[&str]]| {
        let all: Vec<&[&str]> =
            [&repository as &[&str]].into_iter().chain(c.iter().copied()).collect();
        proposal(&all).map(|it| it.tip.to_string())
    };
    assert_eq!(with(&[&["c", GOOD]]).unwrap(), GOOD);
    assert_eq!(with(&[&["c", GOOD], &["c", GOOD]]).unwrap(), GOOD);
    // Repeated: the first that is a commit.
    assert_eq!(with(&[&["c", GOOD], &["c", OTHER]]).unwrap(), GOOD);
    assert_eq!(with(&[&["c", "HEAD"], &["c", OTHER]]).unwrap(), OTHER);
    assert_eq!(with(&[&["c", GOOD, "ignored"]]).unwrap(), GOOD);
    assert_eq!(with(&[]), Err(Nip34Error::NoTip));
    assert_eq!(with(&[&["c"]]), Err(Nip34Error::NoTip));
    let sha256 = with(&[&["c", SHA256]]).unwrap_err();
    assert_eq!(sha256, Nip34Error::Sha256);
    assert!(sha256.to_string().starts_with("SHA-256 is not supported"));
    for bad in [
        "",
        "HEAD",
        "+refs/heads/*:refs/heads/*",
        "--upload-pack=sh",
        &GOOD[..39],
        &GOOD.to_uppercase(),
        &format!("{GOOD} "),
        &format!("\u{0}{}", &GOOD[1..]),
        &"é".repeat(20),
        &"０".repeat(40),
        &"a".repeat(100_000),
    ] {
        let error = with(&[&["c", bad]]).unwrap_err();
        assert!(matches!(error, Nip34Error::BadTip(_)), "{bad:?}: {error:?}");
    }
}

/// P14: an update has the pull request's form, and names the pull request. R3: `merge-base` is waited for by nobody.
#[test]
fn an_update_names_its_pull_request() {
    let a = format!("30617:{}:repo", key(1).to_hex());
    let id = "ab".repeat(32);
    let of = tags(&[&["a", &a], &["c", GOOD], &["E", &id], &["merge-base", OTHER]]);
    let update = PullRequestUpdate::from_tags(&of).unwrap();
    assert_eq!(update.pull_request.unwrap().to_hex(), id);
    assert_eq!(update.proposal.tip.to_string(), GOOD);
    let without = PullRequestUpdate::from_tags(&tags(&[&["a", &a], &["c", GOOD], &["E", "x"]]));
    assert_eq!(without.unwrap().pull_request, None);
}

/// `clone`, `maintainers` and `relays`, in one tag and repeated.
#[test]
fn an_announcement_in_one_tag_or_in_several() {
    let (one, two) = (key(1).to_hex(), key(2).to_hex());
    let (u1, u2) = ("https://a.example/r.git", "http://b.example:8080/r.git");
    let in_one = tags(&[
        &["d", "r"],
        &["clone", u1, u2],
        &["maintainers", &one, &two],
        &["relays", "wss://x", "wss://y"],
    ]);
    let repeated = tags(&[
        &["clone", u1],
        &["d", "r"],
        &["maintainers", &one],
        &["clone", u2, u1],
        &["relays", "wss://x"],
        &["relays", "wss://y"],
        &["maintainers", &two.to_uppercase(), &one],
        &["d", "second"],
    ]);
    let read = Announcement::from_tags(&in_one).unwrap();
    assert_eq!(read, Announcement::from_tags(&repeated).unwrap());
    assert_eq!(read.identifier.as_str(), "r");
    assert_eq!(read.clone_urls.iter().map(|it| it.as_str()).collect::<Vec<_>>(), [u1, u2]);
    assert_eq!(read.maintainers, [key(1), key(2)]);
    assert_eq!(read.relays, ["wss://x", "wss://y"]);
}

/// G1: a clone URL that may not be asked is passed over, and so is a maintainer that is no key.
#[test]
fn what_is_no_url_and_no_key_is_passed_over() {
    let of = tags(&[
        &["d", "r"],
        &[
            "clone",
            "ssh://git@a.example/r.git",
            "git@a.example:r.git",
            "ext::sh -c id",
            "file:///etc/passwd",
            "--upload-pack=sh",
            "https://user:secret@a.example/r.git",
            "https://a.example/r.git?x",
            "",
            "https://a.example/r.git",
        ],
        &["maintainers", "", "npub1", "zz", &"é".repeat(32)],
    ]);
    let read = Announcement::from_tags(&of).unwrap();
    assert_eq!(read.clone_urls.len(), 1);
    assert!(read.maintainers.is_empty());
}

/// R1: counts are bounded, whatever the event says.
#[test]
fn counts_of_an_announcement_are_bounded() {
    let urls: Vec<String> = (0..5_000).map(|it| format!("https://h{it}.example/r.git")).collect();
    let keys: Vec<String> = (0..5_000).map(|it| format!("{it:064x}")).collect();
    let clone: Vec<&str> =
        std::iter::once("clone").chain(urls.iter().map(String::as_str)).collect();
    let maintainers: Vec<&str> =
        std::iter::once("maintainers").chain(keys.iter().map(String::as_str)).collect();
    let read = Announcement::from_tags(&tags(&[&["d", "r"], &clone, &maintainers])).unwrap();
    assert_eq!((read.clone_urls.len(), read.maintainers.len()), (50, 100));
}

/// The `d` is the only required tag, and any string.
#[test]
fn an_identifier_is_any_string_but_not_absent() {
    for id in ["", " ", "a/b", "..", "a:b", "🦀", "\u{0}", "r.git", &"x".repeat(8_192)] {
        let of = tags(&[&["d", id]]);
        assert_eq!(Announcement::from_tags(&of).unwrap().identifier.as_str(), id);
        assert_eq!(State::from_tags(&of).unwrap().identifier.as_str(), id);
    }
    for of in [tags(&[]), tags(&[&["d"]])] {
        assert_eq!(Announcement::from_tags(&of), Err(Nip34Error::NoIdentifier));
        assert_eq!(State::from_tags(&of), Err(Nip34Error::NoIdentifier));
    }
    let long = tags(&[&["d", &"x".repeat(8_193)]]);
    assert_eq!(State::from_tags(&long), Err(Nip34Error::IdentifierTooLong(8_193)));
}

/// R3: what of a state is a ref, what is passed over, and what is left alone.
#[test]
fn the_refs_of_a_state() {
    let state = State::from_tags(&tags(&[
        &["d", "r"],
        &["refs/heads/main", GOOD],
        &["refs/heads/main", OTHER],
        &["refs/heads/feature/x", OTHER, "parent", "grandparent"],
        &["refs/tags/v1", GOOD],
        &["refs/tags/v1^{}", OTHER],
        &["refs/heads/sym", "ref: refs/heads/main"],
        &["refs/heads/upper", &GOOD.to_uppercase()],
        &["refs/heads/short", &GOOD[..7]],
        &["refs/heads/sha256", SHA256],
        &["refs/heads/é", "é"],
        &["refs/heads/novalue"],
        &["refs/heads/bad..name", GOOD],
        &["refs/heads/", GOOD],
        &["refs/heads/a.lock", GOOD],
        &["refs/heads/x y", GOOD],
        &["refs/remotes/origin/main", GOOD],
        &["refs/nostr/abc", GOOD],
        &["refs/heads/../../config", GOOD],
        &["main", GOOD],
        &["HEAD", "ref: refs/heads/main"],
    ]))
    .unwrap();
    let refs: Vec<_> =
        state.refs.refs.iter().map(|(name, oid)| (name.as_str(), oid.to_string())).collect();
    assert_eq!(
        refs,
        [
            ("refs/heads/feature/x", OTHER.to_owned()),
            ("refs/heads/main", GOOD.to_owned()),
            ("refs/tags/v1", GOOD.to_owned()),
        ]
    );
    let left_alone: Vec<_> = state.refs.left_alone.iter().map(|it| it.as_str()).collect();
    assert_eq!(
        left_alone,
        [
            "refs/heads/sha256",
            "refs/heads/short",
            "refs/heads/sym",
            "refs/heads/upper",
            "refs/heads/é"
        ]
    );
    assert_eq!(state.refs.head.as_ref().map(|it| it.as_str()), Some("refs/heads/main"));
    assert_eq!(state.oids().count(), 2);
}

#[test]
fn the_head_of_a_state_is_a_branch_or_nothing() {
    for (value, head) in [
        ("ref: refs/heads/main", Some("refs/heads/main")),
        ("ref: refs/heads/a/b", Some("refs/heads/a/b")),
        ("refs/heads/main", None),
        ("ref: refs/tags/v1", None),
        ("ref: refs/heads/../x", None),
        ("ref: ", None),
        (GOOD, None),
    ] {
        let state = State::from_tags(&tags(&[&["d", "r"], &["HEAD", value]])).unwrap();
        assert_eq!(state.refs.head.as_ref().map(|it| it.as_str()), head, "{value}");
    }
}

/// G1: a repository of SHA-256 is said so, and not taken for one without refs.
#[test]
fn a_state_of_sha256_is_a_clear_error() {
    let of = tags(&[&["d", "r"], &["refs/heads/main", SHA256], &["refs/heads/x", "y"]]);
    assert_eq!(State::from_tags(&of), Err(Nip34Error::Sha256));
}

#[test]
fn a_patch_is_taken_as_it_is() {
    let a = format!("30617:{}:repo", key(1).to_hex());
    let named = Patch::from_tags(&tags(&[&["a", &a]]));
    assert_eq!(named.identifier.unwrap().as_str(), "repo");
    assert_eq!(Patch::from_tags(&tags(&[])).identifier, None);
}

#[test]
fn each_kind_is_read_by_its_number() {
    let a = format!("30617:{}:repo", key(1).to_hex());
    let tip = oid(1).to_string();
    let of: &[&[&str]] = &[&["d", "r"], &["a", &a], &["c", &tip]];
    let read = |kind| GitEvent::read(&event(1, kind, 1, of)).unwrap();
    assert!(matches!(read(30617), GitEvent::Announcement(_)));
    assert!(matches!(read(30618), GitEvent::State(_)));
    assert!(matches!(read(1617), GitEvent::Patch(_)));
    assert!(matches!(read(1618), GitEvent::PullRequest(_)));
    assert!(matches!(read(1619), GitEvent::PullRequestUpdate(_)));
    assert!(matches!(read(1621), GitEvent::Other));
    assert!(matches!(read(1), GitEvent::Other));
}

proptest! {
    /// R1: no tags make a reader panic, and what it gives is within its bounds.
    #[test]
    fn no_tags_make_a_reader_panic(
        all in prop::collection::vec(
            (
                prop::sample::select(vec!["a", "c", "d", "clone", "maintainers", "HEAD", "refs/heads/a", "E", "refs/tags/\u{e9}"]),
                prop::collection::vec(".{0,80}|[0-9a-f]{40}|30617:[0-9a-f]{64}:.{0,9}|ref: .{0,9}", 0..4),
            ),
            0..12,
        )
    ) {
        let all: Vec<Tag> = all
            .iter()
            .map(|(name, values)| Tag::parse(std::iter::once(*name).chain(values.iter().map(String::as_str))).unwrap())
            .collect();
        let all = Tags::from_list(all);
        let _ = Announcement::from_tags(&all);
        let _ = Patch::from_tags(&all);
        if let Ok(state) = State::from_tags(&all) {
            prop_assert!(state.refs.left_alone.iter().all(|it| !state.refs.refs.contains_key(it)));
        }
        if let Ok(update) = PullRequestUpdate::from_tags(&all) {
            let proposal = update.proposal;
            prop_assert!(proposal.repositories.iter().all(|it| it.identifier == *proposal.identifier()));
        }
    }
}
