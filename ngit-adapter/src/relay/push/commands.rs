//! What a push asks for, read once at the edge.

use std::str::FromStr;

use nostr::event::EventId;
use purgatory_sync::Oid;

use super::packets::{PacketError, Packets};
use crate::RefName;

/// One line of a push: a ref from one value to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) name: PushedRef,
    /// What the client thinks the ref is; `None` if it thinks that there is none.
    pub(super) old: Option<Oid>,
    /// What it is to be; `None` if it is to go.
    pub(super) new: Option<Oid>,
}

/// A ref that a push may be about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PushedRef {
    /// A branch or a tag.
    State(RefName),
    /// `refs/nostr/<event>`: the commit of a pull request.
    PullRequest(EventId),
    /// Anything else, as it was written. It may be no text, and is never used as a name.
    Other(Vec<u8>),
}

/// All that a push asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Commands {
    pub(super) all: Vec<Command>,
    /// The client wants a report.
    pub(super) report: bool,
    /// The report goes in bands, and texts for the person beside it.
    pub(super) bands: bool,
}

/// Why the commands cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum CommandError {
    #[error(transparent)]
    Packet(#[from] PacketError),
    #[error("this is no push: a line names two objects and a ref")]
    Malformed,
    #[error("a push has at most {MAX_COMMANDS} refs here")]
    TooMany,
    #[error("signed pushes are not supported: the state event is the signature")]
    Signed,
}

const MAX_COMMANDS: usize = 10_000;

impl Commands {
    /// Reads the commands, up to the flush behind them. None at all is fine: git asks so whether it may push.
    pub(super) async fn read(packets: &mut Packets) -> Result<Self, CommandError> {
        let mut commands = Self::default();
        while let Some(line) = packets.next().await? {
            // What the client's own history lacks is found by the checks.
            if line.starts_with(b"shallow ") {
                continue;
            }
            if line.starts_with(b"push-cert") {
                return Err(CommandError::Signed);
            }
            if commands.all.len() >= MAX_COMMANDS {
                return Err(CommandError::TooMany);
            }
            commands.take(&line)?;
        }
        Ok(commands)
    }

    fn take(&mut self, line: &[u8]) -> Result<(), CommandError> {
        let mut halves = line.splitn(2, |byte| *byte == 0);
        let command = halves.next().unwrap_or_default();
        if let Some(capabilities) = halves.next() {
            let capabilities = String::from_utf8_lossy(capabilities);
            for capability in capabilities.split_ascii_whitespace() {
                self.report |= matches!(capability, "report-status" | "report-status-v2");
                self.bands |= capability == "side-band-64k";
            }
        }
        self.all.push(read_command(command).ok_or(CommandError::Malformed)?);
        Ok(())
    }
}

fn read_command(line: &[u8]) -> Option<Command> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let mut parts = line.splitn(3, |byte| *byte == b' ');
    let old = value(parts.next()?)?;
    let new = value(parts.next()?)?;
    let name = parts.next().filter(|name| !name.is_empty() && name.len() <= 4_096)?;
    Some(Command { name: read_name(name), old, new })
}

/// An object id; all zeros is none.
fn value(hex: &[u8]) -> Option<Option<Oid>> {
    let hex = std::str::from_utf8(hex).ok().filter(|hex| hex.len() == 40)?;
    let oid = Oid::from_str(hex).ok()?;
    Some((oid.as_bytes() != [0; 20]).then_some(oid))
}

fn read_name(name: &[u8]) -> PushedRef {
    let Ok(text) = std::str::from_utf8(name) else { return PushedRef::Other(name.to_owned()) };
    if let Some(hex) = text.strip_prefix("refs/nostr/") {
        // One spelling: an event has one ref.
        return match EventId::from_hex(hex) {
            Ok(id) if id.to_hex() == hex => PushedRef::PullRequest(id),
            _ => PushedRef::Other(name.to_owned()),
        };
    }
    text.parse().map_or_else(|_| PushedRef::Other(name.to_owned()), PushedRef::State)
}

impl PushedRef {
    /// The name, for a report: as it was written.
    pub(super) fn as_bytes(&self) -> Vec<u8> {
        match self {
            Self::State(name) => name.as_str().as_bytes().to_vec(),
            Self::PullRequest(id) => format!("refs/nostr/{}", id.to_hex()).into_bytes(),
            Self::Other(name) => name.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const A: &str = "1111111111111111111111111111111111111111";
    const NONE: &str = "0000000000000000000000000000000000000000";

    fn read(line: &str) -> Option<Command> {
        read_command(line.as_bytes())
    }

    /// G1: what a push names is a value of a type, or it is refused by name and used for nothing.
    #[test]
    fn a_command_is_read_into_types() {
        let command = read(&format!("{NONE} {A} refs/heads/main\n")).unwrap();
        assert_eq!((command.old, command.new), (None, Some(A.parse().unwrap())));
        assert_eq!(command.name, PushedRef::State("refs/heads/main".parse().unwrap()));
        let id = "ab".repeat(32);
        let command = read(&format!("{A} {NONE} refs/nostr/{id}")).unwrap();
        assert_eq!(command.name, PushedRef::PullRequest(EventId::from_hex(&id).unwrap()));
        for other in [
            "HEAD",
            "refs/heads/../x",
            "refs/nostr/1",
            "refs/remotes/a",
            "--help",
            "refs/heads/a b",
            &format!("refs/nostr/{}", id.to_uppercase()),
        ] {
            let command = read(&format!("{NONE} {A} {other}")).unwrap();
            assert_eq!(command.name, PushedRef::Other(other.as_bytes().to_vec()));
        }
        for bad in [
            "",
            "x",
            &format!("{A} {A}"),
            &format!("{A} {A} "),
            &format!("{A} HEAD refs/heads/a"),
            &format!("{A} +refs/heads/*:refs/heads/* x"),
            &format!("{} {A} refs/heads/a", "f".repeat(64)),
        ] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn capabilities_stand_behind_the_first_command() {
        let mut commands = Commands::default();
        let line = format!("{NONE} {A} refs/heads/main\0 report-status side-band-64k agent=git/2");
        commands.take(line.as_bytes()).unwrap();
        assert!(commands.report && commands.bands);
    }

    proptest! {
        /// G1: no line makes it panic.
        #[test]
        fn any_line_is_read_or_refused(line in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Commands::default().take(&line);
        }
    }
}
