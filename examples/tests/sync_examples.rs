//! The examples of purgatory-sync run and print what they say.

use std::process::Command;

fn output(program: &str) -> String {
    let output = Command::new(program).output().expect("the example starts");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("it prints text")
}

#[test]
fn memory() {
    let expected = "released: state of one, state of two\nstill held: three (1 missing)\n";
    assert_eq!(output(env!("CARGO_BIN_EXE_sync_memory")), expected);
}

#[test]
fn own_store() {
    let expected = "the store keeps what the engine needs\n";
    assert_eq!(output(env!("CARGO_BIN_EXE_sync_own_store")), expected);
}

#[test]
fn watch() {
    let expected = "pass 1 of project\n  \
                    dead.example answered network: 0 of 2 objects\n  \
                    good.example answered partial: 1 of 2 objects\n  \
                    1 released, 1 still held\n\
                    pass ended: all_asked\n\
                    project: waits for its next try: true, held: 1\n";
    assert_eq!(output(env!("CARGO_BIN_EXE_sync_watch")), expected);
}

#[test]
fn not_git() {
    let expected = "near.example has 2 of 3\nfar.example has 1 of 1\nshown: post\n";
    assert_eq!(output(env!("CARGO_BIN_EXE_sync_not_git")), expected);
}
