//! The invariants of ARCHITECTURE.md that are about files: who may know whom, what a base crate may
//! touch, and that every example in the docs is compiled.

use std::{
    fs,
    path::{Path, PathBuf},
};

const PUBLISHED: [&str; 4] =
    ["keyed-debounce", "domain-throttle", "purgatory-sync", "ngit-adapter"];

/// Dependencies point one way, and the base crates pull in what their READMEs say and nothing else.
#[test]
fn each_crate_knows_only_whom_it_may() {
    let debounce = ["async-trait", "metrics", "proptest", "thiserror", "tokio", "tracing"];
    let throttle = ["async-trait", "httpdate", "metrics", "thiserror", "tokio", "tracing", "url"];
    assert_eq!(dependencies("keyed-debounce"), debounce);
    assert_eq!(dependencies("domain-throttle"), throttle);

    let engine = dependencies("purgatory-sync");
    for outside in ["nostr", "gix", "reqwest", "axum", "hyper", "ngit-adapter"] {
        assert!(!engine.iter().any(|name| name.starts_with(outside)), "the engine knows {outside}");
    }
    let adapter = dependencies("ngit-adapter");
    for inner in ["keyed-debounce", "domain-throttle"] {
        assert!(
            !adapter.iter().any(|name| name == inner),
            "the adapter reaches past the engine to {inner}"
        );
    }
}

/// The base crates and the engine run wherever tokio does: no files, no processes, no sockets.
#[test]
fn no_platform_api_below_the_adapter() {
    for name in ["keyed-debounce", "domain-throttle", "purgatory-sync"] {
        for file in rust_files(&root().join(name).join("src")) {
            let text = read(&file);
            for api in ["std::fs", "std::process", "std::env", "std::os", "TcpStream", "UdpSocket"]
            {
                assert!(!text.contains(api), "{} names {api}", file.display());
            }
        }
    }
}

/// An example that is not compiled is a promise nobody keeps.
#[test]
fn no_example_in_the_docs_is_left_out() {
    for name in PUBLISHED {
        let folder = root().join(name);
        let mut files = rust_files(&folder.join("src"));
        files.push(folder.join("README.md"));
        for file in files {
            let skipped = read(&file).lines().any(|line| {
                let fence = line.trim_start_matches(['/', '!', ' ']);
                fence.starts_with("```") && fence.contains("ignore")
            });
            assert!(!skipped, "{} has an example that is never compiled", file.display());
        }
    }
}

/// The names in the `[dependencies]` table of a crate, sorted.
fn dependencies(name: &str) -> Vec<String> {
    let manifest = read(&root().join(name).join("Cargo.toml"));
    let table = manifest.split("\n[dependencies]\n").nth(1).expect("a crate has dependencies");
    let mut names: Vec<String> = table
        .lines()
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    names.sort();
    names
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the examples stand in the workspace")
        .to_owned()
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a crate has a source folder") {
        let path = entry.expect("a source folder can be listed").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
    assert!(!files.is_empty(), "{} holds no source", folder.display());
    files
}
