use std::{
    io::{IsTerminal, Write},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};

/// What a person sees on stderr: a bar where that is a terminal, and lines about what needs attention.
#[derive(Clone)]
pub(super) struct Progress {
    bar: ProgressBar,
    /// Where there is no bar, lines are printed as they are.
    plain: bool,
}

impl Progress {
    /// `lines` says that lines for a program go to stdout: on the same terminal a bar would be torn by them.
    pub(super) fn new(lines: bool) -> Self {
        let torn = lines && std::io::stdout().is_terminal();
        let terminal = std::io::stderr().is_terminal() && !torn;
        let bar = if terminal { ProgressBar::new(0) } else { ProgressBar::hidden() };
        let style =
            ProgressStyle::with_template("{elapsed} [{bar:30}] {pos}/{len} released  {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("=> "));
        if terminal {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Self { bar, plain: !terminal }
    }

    /// One more event is held.
    pub(super) fn held(&self) {
        self.bar.inc_length(1);
    }

    /// One of them went.
    pub(super) fn released(&self) {
        self.bar.inc(1);
    }

    /// What is going on just now. Text of strangers has to be made printable before.
    pub(super) fn doing(&self, what: String) {
        if !self.plain {
            self.bar.set_message(what);
        }
    }

    /// A line that stays.
    pub(super) fn say(&self, line: &str) {
        let print = || {
            // Nobody may be there to read it: that changes nothing.
            let _ = writeln!(std::io::stderr(), "{line}");
        };
        if self.plain { print() } else { self.bar.suspend(print) }
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
