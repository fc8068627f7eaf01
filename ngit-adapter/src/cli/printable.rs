use std::fmt::Write as _;

/// The most characters of a stranger's text on one line.
const MAX_CHARS: usize = 60;

/// A stranger's text for a person's terminal: one line, no control characters, not too long.
pub(super) fn printable(text: &str) -> String {
    let mut printed = String::new();
    for (place, character) in text.chars().enumerate() {
        if place == MAX_CHARS {
            printed.push('…');
            break;
        }
        // Marks that turn the direction of writing can make a line say something else than it does.
        let turns = matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if character.is_control() || turns || matches!(character, '\u{2028}' | '\u{2029}') {
            write!(printed, "{}", character.escape_default()).expect("a string takes all");
        } else {
            printed.push(character);
        }
    }
    printed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_writes_to_the_terminal_but_itself() {
        assert_eq!(printable("lantern"), "lantern");
        assert_eq!(printable("\u{1b}[2J\n"), "\\u{1b}[2J\\n");
        assert_eq!(printable("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(printable("日本"), "日本");
        let long = printable(&"x".repeat(10_000));
        assert_eq!(long.chars().count(), MAX_CHARS + 1);
    }
}
