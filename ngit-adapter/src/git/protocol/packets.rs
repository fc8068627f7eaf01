//! Packet lines out of bytes that come in any portions.

use gix_packetline::{
    PacketLineRef,
    decode::{Stream, streaming},
};

/// Bytes that came, cut into packet lines as soon as those are whole.
#[derive(Debug, Default)]
pub(crate) struct Packets {
    bytes: Vec<u8>,
    // Where the first line begins that was not handed out.
    start: usize,
}

/// What came is not made of packet lines.
#[derive(Debug, thiserror::Error)]
#[error("what came is not made of packet lines")]
pub(crate) struct NotPackets;

impl Packets {
    /// Adds what came.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether a whole line is there.
    pub(crate) fn has_next(&self) -> Result<bool, NotPackets> {
        match streaming(&self.bytes[self.start..]) {
            Ok(Stream::Complete { .. }) => Ok(true),
            Ok(Stream::Incomplete { .. }) => Ok(false),
            Err(_) => Err(NotPackets),
        }
    }

    /// The next line, if a whole one is there.
    pub(crate) fn next(&mut self) -> Result<Option<PacketLineRef<'_>>, NotPackets> {
        match streaming(&self.bytes[self.start..]) {
            Ok(Stream::Complete { line, bytes_consumed }) => {
                self.start += bytes_consumed;
                Ok(Some(line))
            }
            Ok(Stream::Incomplete { .. }) => Ok(None),
            Err(_) => Err(NotPackets),
        }
    }

    /// Whether nothing is left, not even a part of a line.
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.bytes.len()
    }
}
