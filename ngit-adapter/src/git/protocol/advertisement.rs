//! What a server says it can do.

use gix_packetline::PacketLineRef;

/// What a server of protocol v2 can do, as far as it matters here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Advertisement {
    /// It can be asked which of many objects it has (`wait-for-done`).
    pub(crate) can_be_probed: bool,
    /// It lists its refs (`ls-refs`).
    pub(crate) lists_refs: bool,
    /// It wants to be told the hash (`object-format`).
    pub(crate) names_object_format: bool,
    fetches: bool,
    other_hash: bool,
}

/// Reads an advertisement line by line.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    said: Advertisement,
    state: State,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    /// Before everything: the service line or the version.
    #[default]
    Start,
    /// After `# service=git-upload-pack`: a flush.
    Service,
    /// The version.
    Version,
    /// Capabilities until a flush.
    Capabilities,
    Done,
}

/// Why a server cannot be asked.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum NotSupported {
    #[error("the server does not speak git protocol v2")]
    Version,
    #[error("the server's protocol v2 has no fetch")]
    NoFetch,
    #[error("SHA-256 repositories are not supported")]
    Sha256,
}

impl Reading {
    /// Takes the next line.
    pub(crate) fn line(&mut self, line: PacketLineRef<'_>) -> Result<(), NotSupported> {
        let text = line.as_slice().map(|text| text.strip_suffix(b"\n").unwrap_or(text));
        self.state = match (&self.state, text) {
            (State::Start, Some(b"# service=git-upload-pack")) => State::Service,
            (State::Service, None) if line == PacketLineRef::Flush => State::Version,
            (State::Start | State::Version, Some(b"version 2")) => State::Capabilities,
            (State::Capabilities, Some(capability)) => {
                self.said.add(capability);
                State::Capabilities
            }
            (State::Capabilities, None) if line == PacketLineRef::Flush => State::Done,
            // What comes after it is nothing that we asked for.
            (State::Done, _) => State::Done,
            _ => return Err(NotSupported::Version),
        };
        Ok(())
    }

    /// What was said, once all of it was read.
    pub(crate) fn finish(self) -> Result<Advertisement, NotSupported> {
        match self.said {
            _ if self.state != State::Done => Err(NotSupported::Version),
            Advertisement { other_hash: true, .. } => Err(NotSupported::Sha256),
            Advertisement { fetches: false, .. } => Err(NotSupported::NoFetch),
            said => Ok(said),
        }
    }
}

impl Advertisement {
    fn add(&mut self, capability: &[u8]) {
        let mut parts = capability.splitn(2, |byte| *byte == b'=');
        let name = parts.next().unwrap_or_default();
        let value = parts.next().unwrap_or_default();
        match name {
            b"fetch" => {
                self.fetches = true;
                self.can_be_probed =
                    value.split(|byte| *byte == b' ').any(|feature| feature == b"wait-for-done");
            }
            b"ls-refs" => self.lists_refs = true,
            b"object-format" => {
                self.names_object_format = true;
                self.other_hash = value != b"sha1";
            }
            _ => {}
        }
    }
}
