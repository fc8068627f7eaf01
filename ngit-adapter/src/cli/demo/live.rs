use std::{
    io::{self, IsTerminal, Write},
    sync::{Arc, Mutex, PoisonError},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A part of the terminal, at its lower end, that is drawn anew and anew, while lines go by above it.
#[derive(Clone)]
pub(super) struct Live {
    bar: ProgressBar,
    /// Held while something is written, so that no line goes above what is being taken away.
    writing: Arc<Mutex<()>>,
}

impl Live {
    /// Where a person looks on: at a terminal that can move its cursor, for both of the program's outputs.
    pub(super) fn on_terminal() -> Option<Self> {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        let looked_at = io::stdout().is_terminal() && io::stderr().is_terminal() && !dumb;
        looked_at.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            Self { bar, writing: Arc::default() }
        })
    }

    /// Draws these lines instead of the last ones. A terminal that takes nothing holds up a thread beside the workers.
    pub(super) async fn draw(&self, lines: Vec<String>) {
        let bar = self.bar.clone();
        // It fails only when the program ends.
        let _ = tokio::task::spawn_blocking(move || bar.set_message(lines.join("\n"))).await;
    }

    /// Takes what was drawn away.
    pub(super) async fn end(&self) {
        let live = self.clone();
        let _ = tokio::task::spawn_blocking(move || {
            let _writing = live.writing.lock().unwrap_or_else(PoisonError::into_inner);
            live.bar.finish_and_clear();
        })
        .await;
    }

    /// Writes whole lines above what is drawn. Says false, and writes nothing, if nothing is drawn any more.
    fn write_above(&self, lines: &[u8]) -> bool {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let drawn = !self.bar.is_finished();
        if drawn {
            // With its end: without it a blank line at the end would be lost.
            self.bar.println(String::from_utf8_lossy(lines));
        }
        drawn
    }
}

/// Standard output; while something is drawn, whole lines above it.
pub(super) struct Out {
    live: Option<Live>,
    waiting: Vec<u8>,
}

impl Out {
    pub(super) fn new(live: Option<Live>) -> Self {
        Self { live, waiting: Vec::new() }
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(live) = &self.live else { return io::stdout().write(bytes) };
        self.waiting.extend_from_slice(bytes);
        if let Some(end) = self.waiting.iter().rposition(|byte| *byte == b'\n') {
            let rest = self.waiting.split_off(end + 1);
            let lines = std::mem::replace(&mut self.waiting, rest);
            if !live.write_above(&lines) {
                io::stdout().write_all(&lines)?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}
