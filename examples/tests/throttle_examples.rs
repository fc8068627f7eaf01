//! The examples of domain-throttle run and print what they say.

use std::process::Command;

fn output(program: &str) -> String {
    let output = Command::new(program).output().expect("the example starts");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("it prints text")
}

#[test]
fn polite_crawler() {
    let text = output(env!("CARGO_BIN_EXE_throttle_polite_crawler"));
    assert_eq!(text.matches("200 OK http://").count(), 24, "{text}");
    assert!(text.ends_with("127.0.0.1: 12 requests\n127.0.0.2: 12 requests\n"), "{text}");
}

#[test]
fn pause_on_429() {
    let text = output(env!("CARGO_BIN_EXE_throttle_pause_on_429"));
    assert!(
        text.contains("alice is told 429 Too Many Requests\nbob waits, without asking\n"),
        "{text}"
    );
    assert!(text.contains("bob is told 200 OK after "), "{text}");
}

#[test]
fn two_parties() {
    let text = output(env!("CARGO_BIN_EXE_throttle_two_parties"));
    assert_eq!(text.matches("of a person was number").count(), 3, "{text}");
    assert!(text.ends_with("the mirror's last request was number 103\n"), "{text}");
}

#[test]
fn custom() {
    let text = output(env!("CARGO_BIN_EXE_throttle_custom"));
    assert!(text.starts_with("goes again: Permit"), "{text}");
}
