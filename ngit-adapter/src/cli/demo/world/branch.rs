use super::history::{History, Mark};

/// Adds `count` commits, one at least, and gives the last one.
pub(super) fn grow(
    history: &mut History,
    branch: &str,
    parent: Option<Mark>,
    author: &str,
    count: usize,
) -> Mark {
    const WORK: [(&str, &str); 6] = [
        ("Say what this is", "README.md"),
        ("Write down how it is built", "docs/building.md"),
        ("Round the corners", "src/shape.txt"),
        ("Measure twice", "src/measure.txt"),
        ("Check the joints", "tests/joints.txt"),
        ("Tidy the workshop", "docs/workshop.md"),
    ];
    let mut last = parent;
    for number in 0..count.max(1) {
        let (message, file) = WORK[number % WORK.len()];
        let content =
            format!("{author}, {branch}, step {number}\n{}", "More to come.\n".repeat(number));
        last = Some(history.commit(branch, last, author, message, (file, &content)));
    }
    last.expect("at least one commit was made")
}
