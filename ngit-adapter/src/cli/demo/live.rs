use std::io::{self, IsTerminal, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A part of the terminal, at its lower end, that is drawn anew and anew, while lines go by above it.
#[derive(Clone)]
pub(super) struct Live {
    bar: ProgressBar,
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
            Self { bar }
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
        let bar = self.bar.clone();
        let _ = tokio::task::spawn_blocking(move || bar.finish_and_clear()).await;
    }
}

/// Standard output; while something is drawn, whole lines above it.
pub(super) struct Out {
    live: Option<Live>,
    line: Vec<u8>,
}

impl Out {
    pub(super) fn new(live: Option<Live>) -> Self {
        Self { live, line: Vec::new() }
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(live) = self.live.as_ref().filter(|live| !live.bar.is_finished()) else {
            let begun = std::mem::take(&mut self.line);
            io::stdout().write_all(&begun)?;
            return io::stdout().write(bytes);
        };
        self.line.extend_from_slice(bytes);
        if let Some(end) = self.line.iter().rposition(|byte| *byte == b'\n') {
            let rest = self.line.split_off(end + 1);
            let lines = std::mem::replace(&mut self.line, rest);
            // With its end: without it a blank line at the end would be lost.
            live.bar.println(String::from_utf8_lossy(&lines));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}
