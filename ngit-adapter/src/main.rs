//! The program `ngit-purgatory`.
fn main() {}
