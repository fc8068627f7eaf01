use std::{collections::VecDeque, io::Write, time::Duration};

use axum::body::{Body, BodyDataStream, Bytes};
use flate2::write::MultiGzDecoder;
use futures::StreamExt;
use tokio::time::timeout;

/// A request's body, inflated, within its limits.
pub(super) struct RequestBody {
    chunks: BodyDataStream,
    inflater: Option<MultiGzDecoder<Vec<u8>>>,
    ready: VecDeque<Bytes>,
    left: u64,
    idle: Duration,
}

/// Why a body cannot be read on.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    #[error("the push is larger than this server takes")]
    TooLarge,
    #[error("the request's body is not valid gzip")]
    NotGzip,
    #[error("nothing came for too long")]
    Idle,
    #[error("the request's body ended early")]
    Cut,
}

/// Deflate grows a byte to about a thousand at most: what is inflated at one time stays small.
const INFLATE_AT_ONCE: usize = 4_096;

impl RequestBody {
    /// At most `max_bytes` of it are read, and `idle` is the longest time in which nothing may come.
    pub(super) fn new(body: Body, gzip: bool, max_bytes: u64, idle: Duration) -> Self {
        Self {
            chunks: body.into_data_stream(),
            inflater: gzip.then(|| MultiGzDecoder::new(Vec::new())),
            ready: VecDeque::new(),
            left: max_bytes,
            idle,
        }
    }

    /// The next bytes; none at the end. Not cancel safe.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, BodyError> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Ok(Some(bytes));
            }
            let chunk =
                timeout(self.idle, self.chunks.next()).await.map_err(|_| BodyError::Idle)?;
            match chunk {
                Some(chunk) => self.take(chunk.map_err(|_| BodyError::Cut)?)?,
                None => {
                    let Some(mut inflater) = self.inflater.take() else { return Ok(None) };
                    inflater.try_finish().map_err(|_| BodyError::NotGzip)?;
                    let rest = std::mem::take(inflater.get_mut());
                    self.push(rest.into())?;
                }
            }
        }
    }

    fn take(&mut self, chunk: Bytes) -> Result<(), BodyError> {
        let Some(mut inflater) = self.inflater.take() else { return self.push(chunk) };
        for piece in chunk.chunks(INFLATE_AT_ONCE) {
            inflater.write_all(piece).map_err(|_| BodyError::NotGzip)?;
            inflater.flush().map_err(|_| BodyError::NotGzip)?;
            let inflated = std::mem::take(inflater.get_mut());
            self.push(inflated.into())?;
        }
        self.inflater = Some(inflater);
        Ok(())
    }

    fn push(&mut self, bytes: Bytes) -> Result<(), BodyError> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or(BodyError::TooLarge)?;
        self.ready.push_back(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use flate2::{Compression, write::GzEncoder};

    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);

    async fn read_all(body: Body, gzip: bool, most: u64) -> Result<Vec<u8>, BodyError> {
        let mut body = RequestBody::new(body, gzip, most, LONG);
        let mut all = Vec::new();
        while let Some(bytes) = body.next().await? {
            all.extend_from_slice(&bytes);
        }
        Ok(all)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[tokio::test]
    async fn a_body_is_read_as_it_is_or_inflated() {
        let plain = b"some bytes".repeat(10_000);
        let read = read_all(Body::from(plain.clone()), false, 1 << 20).await.unwrap();
        assert_eq!(read, plain);
        let read = read_all(Body::from(gzip(&plain)), true, 1 << 20).await.unwrap();
        assert_eq!(read, plain);
        let cut = &gzip(&plain)[..20];
        let error = read_all(Body::from(cut.to_vec()), true, 1 << 20).await.unwrap_err();
        assert!(matches!(error, BodyError::NotGzip));
    }

    /// G4: a bomb is met with the limit, not with memory.
    #[tokio::test]
    async fn a_bomb_ends_at_the_limit() {
        let bomb = gzip(&vec![0; 64 << 20]);
        let error = read_all(Body::from(bomb), true, 1 << 20).await.unwrap_err();
        assert!(matches!(error, BodyError::TooLarge));
    }

    /// G4: a client that says nothing is not waited for.
    #[tokio::test(start_paused = true)]
    async fn a_silent_client_is_given_up() {
        let body = Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
        let error = read_all(body, false, 1).await.unwrap_err();
        assert!(matches!(error, BodyError::Idle));
    }
}
