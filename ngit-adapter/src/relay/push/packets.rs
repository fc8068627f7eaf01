use std::collections::VecDeque;

use axum::body::Bytes;

use super::body::{BodyError, RequestBody};

/// The packet lines at the head of a push, and the pack behind them.
pub(super) struct Packets {
    body: RequestBody,
    buffer: VecDeque<u8>,
}

/// Why the head of a push cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum PacketError {
    #[error(transparent)]
    Body(#[from] BodyError),
    #[error("this is no packet line")]
    Malformed,
}

const LENGTH_BYTES: usize = 4;

impl Packets {
    pub(super) fn new(body: RequestBody) -> Self {
        Self { body, buffer: VecDeque::new() }
    }

    /// The next line; none at a flush, and at the end of the body.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, PacketError> {
        if self.buffer.is_empty() && !self.fill(1).await? {
            return Ok(None);
        }
        self.need(LENGTH_BYTES).await?;
        let digits: Vec<u8> = self.buffer.drain(..LENGTH_BYTES).collect();
        let length = std::str::from_utf8(&digits)
            .ok()
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|digits| usize::from_str_radix(digits, 16).ok())
            .ok_or(PacketError::Malformed)?;
        match length {
            0 => Ok(None),
            // Delimiters and response ends have no place in a push.
            1..LENGTH_BYTES => Err(PacketError::Malformed),
            _ => {
                let length = length - LENGTH_BYTES;
                self.need(length).await?;
                Ok(Some(self.buffer.drain(..length).collect()))
            }
        }
    }

    /// What comes after the lines: the next bytes of the pack; none at its end.
    pub(super) async fn rest(&mut self) -> Result<Option<Bytes>, BodyError> {
        if self.buffer.is_empty() {
            return self.body.next().await;
        }
        Ok(Some(Bytes::from(Vec::from(std::mem::take(&mut self.buffer)))))
    }

    async fn need(&mut self, bytes: usize) -> Result<(), PacketError> {
        if self.fill(bytes).await? { Ok(()) } else { Err(BodyError::Cut.into()) }
    }

    /// Reads until there are so many bytes. False if the body ends before.
    async fn fill(&mut self, bytes: usize) -> Result<bool, BodyError> {
        while self.buffer.len() < bytes {
            match self.body.next().await? {
                Some(more) => self.buffer.extend(more),
                None => return Ok(false),
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::body::Body;

    use super::*;

    fn packets(bytes: &'static [u8], piece: usize) -> Packets {
        let pieces = bytes.chunks(piece).map(|it| Ok::<_, std::io::Error>(Bytes::from_static(it)));
        let body = Body::from_stream(futures::stream::iter(pieces.collect::<Vec<_>>()));
        Packets::new(RequestBody::new(body, false, 1 << 20, Duration::from_secs(60)))
    }

    #[tokio::test]
    async fn lines_are_read_and_the_pack_is_left() {
        for piece in 1..20 {
            let mut packets = packets(b"0006ab0005c0000PACKrest", piece);
            assert_eq!(packets.next().await.unwrap(), Some(b"ab".to_vec()));
            assert_eq!(packets.next().await.unwrap(), Some(b"c".to_vec()));
            assert_eq!(packets.next().await.unwrap(), None);
            let mut rest = Vec::new();
            while let Some(bytes) = packets.rest().await.unwrap() {
                rest.extend_from_slice(&bytes);
            }
            assert_eq!(rest, b"PACKrest");
        }
    }

    #[tokio::test]
    async fn what_is_no_line_is_an_error() {
        for bytes in [&b"00"[..], b"zzzz", b"0001", b"0003", b"0009abc", b"+006ab", b"ffffx"] {
            assert!(packets(bytes, 3).next().await.is_err(), "{bytes:?}");
        }
        assert_eq!(packets(b"", 1).next().await.unwrap(), None);
    }
}
