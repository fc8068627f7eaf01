//! What is here.

use ngit_adapter::git::Repositories;
use purgatory_sync::{Identifier, Oid};

use crate::objects_folder::{Folder, give, repository};

async fn missing(repositories: &Repositories, name: &str, oids: &[Oid]) -> Vec<Oid> {
    repositories.missing(&Identifier::from(name), oids).await.expect("the folder can be read")
}

/// G10: objects of any repository of the identifier count, those of other identifiers do not.
#[tokio::test]
async fn objects_of_all_siblings_are_here() {
    let folder = Folder::new();
    let source = folder.elsewhere("source");
    let mut tips = Vec::new();
    for number in 0..3_u8 {
        let name = format!("b{number}");
        let tip = source.commits(&name, 10)[9];
        give(&folder, &source, &[tip], &repository(number, "r")).await;
        tips.push(tip);
    }
    let elsewhere = source.commits("elsewhere", 3)[2];
    give(&folder, &source, &[elsewhere], &repository(0, "other")).await;
    let nowhere = Oid::sha1([9; 20]);
    let sha256 = Oid::sha256([9; 32]);
    let asked = [&tips[..], &[elsewhere, nowhere, sha256]].concat();
    let repositories = &folder.repositories;
    assert_eq!(missing(repositories, "r", &asked).await, [elsewhere, nowhere, sha256]);
    assert_eq!(
        missing(repositories, "other", &asked).await,
        [&tips[..], &[nowhere, sha256]].concat()
    );
    assert_eq!(missing(repositories, "none", &asked).await, asked);
}
