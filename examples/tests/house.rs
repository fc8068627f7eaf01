//! The invariants of ARCHITECTURE.md that are about files: who may know whom, what a base crate may
//! touch, that every example in the docs is compiled, and what the docs of each crate have.

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
    let throttle =
        ["async-trait", "hashbrown", "httpdate", "metrics", "thiserror", "tokio", "tracing", "url"];
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

/// Whoever knows the README of one crate finds their way in those of the others.
#[test]
fn every_readme_has_the_same_sections() {
    let sections = [
        "What is here",
        "The rules",
        "Cancel safety",
        "Fairness",
        "Memory",
        "Limits",
        "Design questions",
    ];
    for name in PUBLISHED {
        let text = read(&root().join(name).join("README.md"));
        for section in sections {
            let heading = format!("## {section}");
            let found = text.lines().filter(|line| *line == heading).count();
            assert_eq!(found, 1, "sections `{heading}` in {name}/README.md");
        }
        let first = text.lines().position(|line| line == "```rust");
        assert!(first.is_some_and(|line| line < 30), "{name}/README.md begins without an example");
    }
}

/// Whoever drops a future must be able to read what that leaves behind.
#[test]
fn every_public_async_fn_says_what_a_dropped_call_leaves() {
    for name in PUBLISHED {
        for file in rust_files(&root().join(name).join("src")) {
            let silent = silent_about_drops(&read(&file));
            assert!(silent.is_empty(), "{}: no `# Cancel safety` at {silent:?}", file.display());
        }
    }
}

/// Public async functions, those of public traits among them, whose documentation has no such section.
fn silent_about_drops(text: &str) -> Vec<String> {
    let (mut silent, mut docs) = (Vec::new(), String::new());
    let (mut in_trait, mut in_attribute) = (false, false);
    for line in text.lines() {
        let code = line.trim_start();
        in_trait = line != "}" && (in_trait || line.starts_with("pub trait "));
        if code.starts_with("///") {
            docs.push_str(code);
        } else if in_attribute || code.starts_with("#[") {
            in_attribute = !code.ends_with(']');
        } else {
            let public =
                code.starts_with("pub async fn") || in_trait && code.starts_with("async fn");
            if public && !docs.contains("/// # Cancel safety") {
                silent.push(code.to_owned());
            }
            docs.clear();
        }
    }
    silent
}

/// An example fits on a screen or two, says how to start it, and is started by a test.
#[test]
fn every_example_is_short_says_how_to_run_it_and_is_run() {
    let folder = root().join("examples");
    let tests: String = rust_files(&folder.join("tests")).iter().map(|file| read(file)).collect();
    let list = read(&folder.join("README.md"));
    let programs = rust_files(&folder).into_iter().filter(|file| file.parent() == Some(&folder));
    for file in programs {
        let (text, name) =
            (read(&file), file.file_stem().expect("it has a name").to_string_lossy());
        assert!(text.lines().count() < 80, "{name} is not under 80 lines");
        let start = format!("//! Run with: cargo run -p purgatory-sync-examples --bin {name}");
        let mut top = text.lines().take_while(|line| line.starts_with("//!"));
        assert!(top.any(|line| line.starts_with(&start)), "{name} does not say `{start}`");
        assert!(tests.contains(&format!("CARGO_BIN_EXE_{name}\"")), "no test runs {name}");
        assert!(list.contains(&format!("({name}.rs)")), "{name} is not in the README");
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
