//! The examples of keyed-debounce run and print what they say.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

fn output(program: &str) -> String {
    let output = Command::new(program).output().expect("the example starts");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("it prints text")
}

#[test]
fn webhooks() {
    let text = output(env!("CARGO_BIN_EXE_debounce_webhooks"));
    assert!(text.contains("3 new, 27 joined what was waiting"), "{text}");
    assert_eq!(text.matches("index ").count(), 3, "{text}");
    assert!(text.ends_with("0 left\n"), "{text}");
}

#[test]
fn retry() {
    let expected = "attempt 1: connection refused\n\
                    attempt 2: connection refused again\n\
                    attempt 3: delivered\n\
                    0 left\n";
    assert_eq!(output(env!("CARGO_BIN_EXE_debounce_retry")), expected);
}

#[test]
fn custom_scheduler() {
    let expected = "quick: done\nslow: lease lost, stopped\n";
    assert_eq!(output(env!("CARGO_BIN_EXE_debounce_custom_scheduler")), expected);
}

#[cfg(unix)]
#[test]
fn controller_drains_on_ctrl_c() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_debounce_controller"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("the example starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    lines
        .by_ref()
        .map_while(Result::ok)
        .find(|line| line.starts_with("reconciled"))
        .expect("something is reconciled");
    let pid = child.id().to_string();
    let killed = Command::new("kill").args(["-INT", &pid]).status().expect("kill runs");
    assert!(killed.success());
    let rest: Vec<_> = lines.map_while(Result::ok).collect();
    assert!(rest.iter().any(|line| line.starts_with("draining")), "{rest:?}");
    assert_eq!(rest.last().map(String::as_str), Some("0 left"));
    assert!(child.wait().expect("it ends").success());
}
