use std::{
    fs::File,
    io::{self, BufRead, BufReader},
};

use tokio::sync::mpsc;

use crate::{
    cli::args::Input,
    nip34::{EventError, EventLimits, VerifiedEvent},
};

/// One line that is not blank, with its number from 1.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) number: u64,
    pub(super) event: Result<VerifiedEvent, BadLine>,
}

/// Why a line is no event.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadLine {
    #[error("the line has more than {MAX_LINE_BYTES} bytes")]
    TooLong,
    #[error("the line is not UTF-8")]
    NotUtf8,
    #[error(transparent)]
    Event(#[from] EventError),
}

/// The most bytes of a line. An event has 1 MiB at most; white space around it may be more.
const MAX_LINE_BYTES: usize = 2 << 20;

/// How many events may wait to be looked at.
const MAX_WAITING: usize = 32;

/// Reads and verifies on a thread of its own, because both block. An error is the last thing that comes.
pub(super) fn read(input: &Input) -> io::Result<mpsc::Receiver<io::Result<Line>>> {
    let mut reader: Box<dyn BufRead + Send> = match input {
        Input::Stdin => Box::new(BufReader::new(io::stdin())),
        Input::File(path) => Box::new(BufReader::new(File::open(path)?)),
    };
    let (lines, waiting) = mpsc::channel(MAX_WAITING);
    // Nobody waits for this thread: a read from a terminal or a pipe cannot be called off. It ends
    // with the input, with the first line that nobody takes, or with the process.
    std::thread::Builder::new().name("event-reader".into()).spawn(move || {
        let each =
            |number, line: RawLine<'_>| lines.blocking_send(Ok(verify(number, line))).is_ok();
        if let Err(error) = read_lines(&mut reader, MAX_LINE_BYTES, each) {
            let _ = lines.blocking_send(Err(error));
        }
    })?;
    Ok(waiting)
}

/// A line as it was read: its bytes, or none if there were too many.
type RawLine<'a> = Option<&'a [u8]>;

fn verify(number: u64, line: RawLine<'_>) -> Line {
    let event = match line {
        None => Err(BadLine::TooLong),
        Some(bytes) if std::str::from_utf8(bytes).is_err() => Err(BadLine::NotUtf8),
        Some(bytes) => {
            VerifiedEvent::from_json(bytes, &EventLimits::default()).map_err(BadLine::from)
        }
    };
    Line { number, event }
}

/// Hands each line that is not blank to `each`, with its number, until that says false. Never holds
/// more than `max` bytes of a line.
fn read_lines(
    reader: &mut impl BufRead,
    max: usize,
    mut each: impl FnMut(u64, RawLine<'_>) -> bool,
) -> io::Result<()> {
    const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let Some(fits) = read_line(reader, max, &mut line)? else { return Ok(()) };
        let mut text = line.as_slice();
        if number == 1 {
            text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        }
        let text = text.trim_ascii();
        let blank = fits && text.is_empty();
        if !blank && !each(number, fits.then_some(text)) {
            return Ok(());
        }
    }
    Ok(())
}

/// Reads to the next line feed or the end. Says whether all of it is in `line`; none at the end.
fn read_line(
    reader: &mut impl BufRead,
    max: usize,
    line: &mut Vec<u8>,
) -> io::Result<Option<bool>> {
    let mut any = false;
    let mut fits = true;
    loop {
        let available = match reader.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if available.is_empty() {
            return Ok(any.then_some(fits));
        }
        any = true;
        let end = available.iter().position(|&byte| byte == b'\n');
        let part = &available[..end.unwrap_or(available.len())];
        fits = fits && line.len() + part.len() <= max;
        if fits {
            line.extend_from_slice(part);
        }
        let used = part.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            return Ok(Some(fits));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(input: &[u8], buffer: usize, max: usize) -> Vec<(u64, Option<Vec<u8>>)> {
        let mut all = Vec::new();
        let mut reader = BufReader::with_capacity(buffer, input);
        read_lines(&mut reader, max, |number, line| {
            all.push((number, line.map(<[u8]>::to_vec)));
            true
        })
        .expect("memory can be read");
        all
    }

    fn text(line: &str) -> Option<Vec<u8>> {
        Some(line.as_bytes().to_vec())
    }

    #[test]
    fn lines_are_numbered_as_an_editor_does() {
        let all = lines(b"\xef\xbb\xbf a \r\n\n\t\nb\nlast", 8, 100);
        assert_eq!(all, [(1, text("a")), (4, text("b")), (5, text("last"))]);
        assert_eq!(lines(b"", 8, 100), []);
        assert_eq!(lines(b"\n", 8, 100), []);
    }

    #[test]
    fn a_line_that_is_too_long_is_named_and_the_next_ones_are_read() {
        let mut input = vec![b'x'; 10_000];
        input.extend_from_slice(b"\nok\n");
        input.extend_from_slice(&[b'y'; 101]);
        assert_eq!(lines(&input, 16, 100), [(1, None), (2, text("ok")), (3, None)]);
    }

    #[test]
    fn reading_ends_when_nobody_takes_lines_any_more() {
        let mut seen = 0;
        let mut reader = BufReader::new(&b"a\nb\nc\n"[..]);
        read_lines(&mut reader, 10, |_, _| {
            seen += 1;
            seen < 2
        })
        .expect("memory can be read");
        assert_eq!(seen, 2);
    }

    proptest! {
        /// The same as splitting the whole input at once, whatever the size of the buffer.
        #[test]
        fn lines_are_those_of_the_whole_text(
            parts in prop::collection::vec("[a-c \r]{0,12}", 0..12),
            ends in any::<bool>(),
            buffer in 1..20_usize,
            max in 1..12_usize,
        ) {
            let mut input = parts.join("\n");
            if ends {
                input.push('\n');
            }
            let expected: Vec<_> = input
                .split('\n')
                .zip(1_u64..)
                .filter(|(line, _)| line.len() > max || !line.trim().is_empty())
                .map(|(line, number)| (number, if line.len() > max { None } else { text(line.trim()) }))
                .collect();
            prop_assert_eq!(lines(input.as_bytes(), buffer, max), expected);
        }
    }
}
