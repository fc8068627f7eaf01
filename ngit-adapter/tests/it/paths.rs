//! From owner and identifier to a folder and to a URL.

use std::{collections::HashMap, path::Component};

use ngit_adapter::RepositoryId;
use proptest::{
    prelude::*,
    test_runner::{TestCaseError, TestRunner},
};

use crate::objects_folder::{Folder, owner, repository};

/// Identifiers that somebody may try, and any others.
fn identifiers() -> impl Strategy<Value = String> {
    let parts = prop_oneof![
        Just("."),
        Just(".."),
        Just("/"),
        Just("%"),
        Just("%2F"),
        Just("%-"),
        Just(".git"),
        Just("\n"),
        Just("\0"),
        Just(":"),
        Just("\\"),
        Just("A"),
        Just("a"),
        Just("ß"),
        Just("😀"),
        Just("e\u{301}"),
        Just("é"),
        Just(" "),
        Just("~"),
        Just("HEAD"),
        Just("-"),
        Just("?#&"),
    ];
    prop_oneof![
        prop::collection::vec(parts, 0..8).prop_map(|parts| parts.concat()),
        any::<String>(),
        ("[aA.%/]{1,3}", 1_usize..4_000).prop_map(|(part, times)| part.repeat(times)),
    ]
}

/// Runs a property on a folder of repositories.
fn for_all<S: Strategy>(
    inputs: S,
    property: impl Fn(&Folder, S::Value) -> Result<(), TestCaseError>,
) {
    let folder = Folder::new();
    TestRunner::default()
        .run(&inputs, |input| property(&folder, input))
        .unwrap_or_else(|failure| panic!("{failure}"));
}

/// G11: two repositories never share a folder, whatever their identifiers are.
#[test]
fn different_repositories_have_different_folders() {
    let ids = (0_u8..3, identifiers()).prop_map(|(number, name)| repository(number, &name));
    for_all(prop::collection::vec(ids, 2..40), |folder, ids| {
        let mut by_path = HashMap::new();
        for id in ids {
            let path = folder.repositories.path(&id);
            if let Some(other) = by_path.insert(path, id.clone()) {
                prop_assert_eq!(other, id);
            }
        }
        Ok(())
    });
}

/// G11: a repository is two levels below the root and nowhere else, in a folder that file systems can name.
#[test]
fn a_repository_stays_inside_the_folder() {
    for_all(identifiers(), |folder, name| {
        let path = folder.repositories.path(&repository(0, &name));
        let below = path.strip_prefix(folder.repositories.root()).expect("it is below the root");
        let parts: Vec<_> = below.components().collect();
        prop_assert_eq!(parts.len(), 2);
        for part in parts {
            prop_assert!(matches!(part, Component::Normal(_)));
            let part = part.as_os_str().to_str().expect("ASCII");
            prop_assert!(part.len() <= 220 && part.bytes().all(|b| b.is_ascii_graphic()));
        }
        prop_assert!(path.to_str().expect("ASCII").ends_with(".git"));
        Ok(())
    });
}

/// G11: what a URL says of a repository leads back to it, also after a URL parser has read it.
#[test]
fn a_repository_round_trips_through_a_url() {
    for_all((identifiers(), 0_u8..3), |_, (name, number)| {
        let id = repository(number, &name);
        let url = format!("https://git.example.org{}", id.url_path());
        let url = url::Url::parse(&url).expect("a URL");
        prop_assert_eq!(RepositoryId::from_url_path(url.path()), Some(id.clone()));
        prop_assert_eq!(RepositoryId::from_url_path(&id.url_path()), Some(id));
        Ok(())
    });
}

/// G11: the folder of each kind of identifier, as the contract writes it down.
#[test]
fn a_folder_is_named_by_the_encoded_identifier() {
    let folder = Folder::new();
    let name = |identifier: &str| {
        let path = folder.repositories.path(&repository(0, identifier));
        path.file_name().expect("a name").to_str().expect("ASCII").to_owned()
    };
    assert_eq!(name("my-repo_1.x~"), "my-repo_1.x~.git");
    assert_eq!(name(""), ".git");
    assert_eq!(name("."), "%2E.git");
    assert_eq!(name(".."), "%2E%2E.git");
    assert_eq!(name("..."), "%2E%2E%2E.git");
    assert_eq!(name("../x"), "..%2Fx.git");
    assert_eq!(name("..%2F"), "..%252F.git");
    assert_eq!(name("x.git"), "x.git.git");
    assert_eq!(name("a:b c\n"), "a%3Ab%20c%0A.git");
    assert_eq!(name("😀"), "%F0%9F%98%80.git");
    assert_eq!(name(&"a".repeat(200)), format!("{}.git", "a".repeat(200)));
    assert_eq!(
        name(&"a".repeat(201)),
        format!(
            "{}%-a92efd82109373e58f9a2056dee01e807e216ce6075f7051207c0a9f7d666e50.git",
            "a".repeat(100)
        ),
    );
}

/// G11: an identifier of 10 KB makes a repository that works.
#[tokio::test]
async fn a_very_long_identifier_has_a_repository() {
    let folder = Folder::new();
    let id = repository(0, &"/é".repeat(5_000));
    let repo = folder.made(&id).await;
    assert_eq!(repo.git(["rev-parse", "--is-bare-repository"]), "true");
    let siblings = folder.repositories.siblings(&id.identifier).await;
    assert_eq!(siblings.expect("they can be listed"), [id]);
}

/// G11: what is no path of a repository is none.
#[test]
fn other_url_paths_are_no_repositories() {
    let npub = repository(0, "x").url_path();
    let npub = npub.strip_suffix("/x.git").expect("it ends so");
    for path in [
        String::new(),
        "/".into(),
        npub.into(),
        format!("{npub}/x"),
        format!("{npub}/a/b.git"),
        format!("{npub}/%FF.git"),
        format!("{}/x.git", npub.to_uppercase()),
        format!("/{}/x.git", owner(0).to_hex()),
    ] {
        assert_eq!(RepositoryId::from_url_path(&path), None, "{path}");
    }
}
