use std::io::{self, Write};

use axum::body::Body;
use flate2::write::MultiGzDecoder;
use futures::StreamExt;
use tokio::{io::AsyncWriteExt, process::ChildStdin};

use super::RequestKind;

/// Why a request's body was not passed on to its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum FeedError {
    #[error("the request's body is too large")]
    TooLarge,
    #[error("the request's body is not valid gzip")]
    NotGzip,
    #[error("the request's body could not be read")]
    Read(#[source] axum::Error),
}

/// Passes a request's body on to git, inflated, and says what it asks for as soon as that is known.
pub(super) async fn feed(
    body: Body,
    gzip: bool,
    max_bytes: u64,
    stdin: Option<ChildStdin>,
    kind: impl FnOnce(RequestKind),
) -> Result<(), FeedError> {
    let mut chunks = body.into_data_stream();
    let mut inflater = gzip.then(|| MultiGzDecoder::new(Vec::new()));
    let mut sink = Sink { stdin, left: max_bytes, start: Start::default(), kind: Some(kind) };
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(FeedError::Read)?;
        let Some(inflater) = &mut inflater else {
            sink.write(&chunk).await?;
            continue;
        };
        // Deflate grows a byte to about a thousand at most: what is inflated at one time stays small.
        for piece in chunk.chunks(INFLATE_AT_ONCE) {
            inflater.write_all(piece).map_err(|_| FeedError::NotGzip)?;
            inflater.flush().map_err(|_| FeedError::NotGzip)?;
            sink.write(inflater.get_ref()).await?;
            inflater.get_mut().clear();
        }
    }
    if let Some(mut inflater) = inflater {
        inflater.try_finish().map_err(|_| FeedError::NotGzip)?;
        sink.write(inflater.get_ref()).await?;
    }
    sink.say_kind(true);
    Ok(())
}

const INFLATE_AT_ONCE: usize = 1_024;

struct Sink<F> {
    stdin: Option<ChildStdin>,
    left: u64,
    start: Start,
    kind: Option<F>,
}

impl<F: FnOnce(RequestKind)> Sink<F> {
    async fn write(&mut self, bytes: &[u8]) -> Result<(), FeedError> {
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or(FeedError::TooLarge)?;
        self.start.take(bytes);
        self.say_kind(false);
        if let Some(stdin) = &mut self.stdin
            && stdin.write_all(bytes).await.is_err()
        {
            // Git has heard enough: its answer is what counts. The rest of the body is read and dropped.
            self.stdin = None;
        }
        Ok(())
    }

    fn say_kind(&mut self, at_end: bool) {
        if (at_end || self.start.is_full())
            && let Some(say) = self.kind.take()
        {
            say(self.start.kind());
        }
    }
}

/// The first bytes of a body: enough to know what it asks for.
#[derive(Default)]
struct Start {
    bytes: [u8; Self::ENOUGH],
    length: usize,
}

impl Start {
    const ENOUGH: usize = 4 + b"command=fetch".len();

    fn take(&mut self, bytes: &[u8]) {
        let count = bytes.len().min(Self::ENOUGH - self.length);
        self.bytes[self.length..][..count].copy_from_slice(&bytes[..count]);
        self.length += count;
    }

    fn is_full(&self) -> bool {
        self.length == Self::ENOUGH
    }

    fn kind(&self) -> RequestKind {
        match self.bytes[..self.length].get(4..) {
            Some(line) if line.starts_with(b"command=fetch") || line.starts_with(b"want ") => {
                RequestKind::Fetch
            }
            _ => RequestKind::Other,
        }
    }
}

impl From<FeedError> for io::Error {
    fn from(error: FeedError) -> Self {
        io::Error::new(io::ErrorKind::InvalidData, error)
    }
}
