use std::{
    io::{self, BufWriter, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout_at},
};

/// Writes lines on a thread of its own, so that a slow reader holds up nobody.
pub(super) struct LineWriter {
    sink: LineSink,
    done: oneshot::Receiver<io::Result<()>>,
}

/// Where lines are put. Cheap to clone.
#[derive(Clone)]
pub(super) struct LineSink {
    lines: mpsc::Sender<Item>,
    waiting_bytes: Arc<AtomicUsize>,
    lost: Arc<AtomicU64>,
}

/// A line, or the end.
type Item = Option<String>;

/// How many lines may wait for a slow reader.
const MAX_WAITING: usize = 65_536;
/// How many bytes they may have together, but for those that wait for room.
const MAX_WAITING_BYTES: usize = 64 << 20;

impl LineWriter {
    pub(super) fn spawn(out: impl Write + Send + 'static) -> io::Result<Self> {
        let (lines, waiting) = mpsc::channel(MAX_WAITING);
        let (ended, done) = oneshot::channel();
        let waiting_bytes = Arc::<AtomicUsize>::default();
        let taken = Arc::clone(&waiting_bytes);
        std::thread::Builder::new().name("line-writer".into()).spawn(move || {
            // Nobody listens any more if the end was not waited for.
            let _ = ended.send(write_lines(BufWriter::new(out), waiting, &taken));
        })?;
        Ok(Self { sink: LineSink { lines, waiting_bytes, lost: Arc::default() }, done })
    }

    pub(super) fn sink(&self) -> LineSink {
        self.sink.clone()
    }

    /// Waits until all lines that were put are written, until this time. What is put later is lost.
    ///
    /// A reader that went away is no failure: whoever pipes into `head` has seen enough.
    pub(super) async fn finish(self, until: Instant) -> io::Result<()> {
        let Self { sink, done } = self;
        let written = timeout_at(until, async {
            // An error means that the writer has ended; it says why itself.
            let _ = sink.lines.send(None).await;
            done.await
        });
        match written.await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(error))) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Ok(Ok(Err(error))) => return Err(error),
            Ok(Err(_)) => return Err(io::Error::other("the thread that writes ended early")),
            Err(_) => return Err(io::Error::other("nobody reads what is written")),
        }
        match sink.lost.load(Ordering::Relaxed) {
            0 => Ok(()),
            lost => {
                Err(io::Error::other(format!("{lost} lines were lost: the reader is too slow")))
            }
        }
    }
}

impl LineSink {
    /// Puts a line, without its end, and waits for room.
    pub(super) async fn line(&self, line: String) {
        let Ok(room) = self.lines.reserve().await else {
            // The writer has ended; `finish` says why.
            return;
        };
        self.waiting_bytes.fetch_add(line.len(), Ordering::Relaxed);
        room.send(Some(line));
    }

    /// Puts a line where nothing may wait. Without room it is lost, and `finish` fails.
    pub(super) fn try_line(&self, line: String) {
        let bytes = line.len();
        let before = self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        let put = if before.saturating_add(bytes) > MAX_WAITING_BYTES {
            false
        } else {
            // Where the writer has ended, `finish` says why: nothing is lost that would have been written.
            !matches!(self.lines.try_send(Some(line)), Err(mpsc::error::TrySendError::Full(_)))
        };
        if !put {
            self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn write_lines(
    mut out: impl Write,
    mut lines: mpsc::Receiver<Item>,
    waiting_bytes: &AtomicUsize,
) -> io::Result<()> {
    let mut written = Ok(());
    while let Some(Some(line)) = lines.blocking_recv() {
        waiting_bytes.fetch_sub(line.len(), Ordering::Relaxed);
        if written.is_err() {
            // Go on taking lines, so that nobody waits for room.
            continue;
        }
        written = writeln!(out, "{line}");
        if lines.is_empty() && written.is_ok() {
            written = out.flush();
        }
    }
    written.and_then(|()| out.flush())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc as std_mpsc;

    use super::*;

    struct Channel(std_mpsc::Sender<Vec<u8>>);

    impl Write for Channel {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(bytes.to_vec()).map_err(|_| io::ErrorKind::BrokenPipe)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[expect(clippy::disallowed_methods, reason = "only so that a hang is a failure")]
    fn limit() -> Instant {
        Instant::now() + std::time::Duration::from_secs(60)
    }

    #[tokio::test]
    async fn all_lines_are_written_in_order() {
        let (out, written) = std_mpsc::channel();
        let writer = LineWriter::spawn(Channel(out)).expect("a thread can be started");
        for number in 0..1_000 {
            writer.sink().line(number.to_string()).await;
        }
        writer.finish(limit()).await.expect("all is written");
        let all: String = written.iter().map(|bytes| String::from_utf8(bytes).unwrap()).collect();
        assert_eq!(all, (0..1_000).map(|number| format!("{number}\n")).collect::<String>());
    }

    #[tokio::test]
    async fn a_reader_that_goes_is_no_failure() {
        let (out, written) = std_mpsc::channel();
        drop(written);
        let writer = LineWriter::spawn(Channel(out)).expect("a thread can be started");
        for _ in 0..2 * MAX_WAITING {
            writer.sink().line("x".into()).await;
        }
        writer.finish(limit()).await.expect("it has seen enough");
    }

    #[tokio::test]
    async fn a_full_disk_is_a_failure() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let writer = LineWriter::spawn(Full).expect("a thread can be started");
        writer.sink().line("x".into()).await;
        let error = writer.finish(limit()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[tokio::test]
    async fn a_reader_that_never_reads_loses_lines_and_holds_up_nobody() {
        struct Stuck(std_mpsc::Receiver<()>);
        impl Write for Stuck {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let _ = self.0.recv();
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (go, stuck) = std_mpsc::channel();
        let writer = LineWriter::spawn(Stuck(stuck)).expect("a thread can be started");
        let sink = writer.sink();
        for _ in 0..2 * MAX_WAITING {
            sink.try_line(String::new());
        }
        let lost = sink.lost.load(Ordering::Relaxed);
        assert!(lost > 0, "so many lines");
        // One is with the stuck writer, and the rest is bounded.
        for _ in 0..80 {
            sink.try_line("x".repeat(1 << 20));
        }
        assert!(sink.lost.load(Ordering::Relaxed) >= lost + 15, "so many bytes");
        assert!(sink.waiting_bytes.load(Ordering::Relaxed) <= MAX_WAITING_BYTES);
        drop(go);
        let error = writer.finish(limit()).await.unwrap_err();
        assert!(error.to_string().contains("lines were lost"), "{error}");
    }
}
