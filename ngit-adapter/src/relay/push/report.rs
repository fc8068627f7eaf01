//! What a client is told of its push, as packet lines.

/// How one ref fared, with its name as the client wrote it.
pub(super) struct RefReport {
    pub(super) name: Vec<u8>,
    /// Why it was refused, if it was.
    pub(super) refused: Option<String>,
}

/// The most bytes of a line, with its length in front.
const MAX_LINE: usize = 65_520;

/// The answer to a push that was read: `unpack` is `Ok` or why the pack was not taken.
pub(super) fn report(unpack: Result<(), &str>, refs: &[RefReport], bands: bool) -> Vec<u8> {
    let mut lines = Vec::new();
    match unpack {
        Ok(()) => line(&mut lines, b"unpack ok\n"),
        Err(why) => line(&mut lines, &joined(&[b"unpack ", one_line(why).as_bytes(), b"\n"])),
    }
    for it in refs {
        match &it.refused {
            None => line(&mut lines, &joined(&[b"ok ", &it.name, b"\n"])),
            Some(why) => {
                let why = one_line(why);
                line(&mut lines, &joined(&[b"ng ", &it.name, b" ", why.as_bytes(), b"\n"]));
            }
        }
    }
    flush(&mut lines);
    if !bands {
        return lines;
    }
    let mut answer = Vec::new();
    for part in lines.chunks(MAX_LINE - 5) {
        line(&mut answer, &joined(&[&[1], part]));
    }
    flush(&mut answer);
    answer
}

/// A text for the person at the client, if it takes any.
pub(super) fn message(text: &str) -> Vec<u8> {
    let mut answer = Vec::new();
    line(&mut answer, &joined(&[&[2], one_line(text).as_bytes(), b"\n"]));
    answer
}

/// Says that there is still somebody.
pub(super) fn keep_alive() -> &'static [u8] {
    b"0005\x01"
}

pub(super) fn line(into: &mut Vec<u8>, content: &[u8]) {
    let content = &content[..content.len().min(MAX_LINE - 4)];
    into.extend_from_slice(format!("{:04x}", content.len() + 4).as_bytes());
    into.extend_from_slice(content);
}

pub(super) fn flush(into: &mut Vec<u8>) {
    into.extend_from_slice(b"0000");
}

fn joined(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// A text that stays on its line, and not too long.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(1_000).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_how_each_ref_fared() {
        let refs = [
            RefReport { name: b"refs/heads/a".to_vec(), refused: None },
            RefReport { name: b"refs/heads/b".to_vec(), refused: Some("no\nline".to_owned()) },
        ];
        let plain = "000eunpack ok\n0014ok refs/heads/a\n001cng refs/heads/b no line\n0000";
        assert_eq!(String::from_utf8(report(Ok(()), &refs, false)).unwrap(), plain);
        let banded = String::from_utf8(report(Ok(()), &refs, true)).unwrap();
        assert_eq!(banded, format!("{:04x}\u{1}{plain}0000", plain.len() + 5));
        assert!(report(Err("why"), &[], false).starts_with(b"000funpack why\n"));
    }
}
