use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that ask a program to end: SIGINT (Ctrl-C), SIGTERM, SIGHUP.
///
/// They are caught from the moment this is made, so nothing that is made later can be left behind. One that the program was
/// started to ignore (`nohup`, a job in the background) stays ignored.
pub(super) struct Interrupt {
    signals: [Option<Signal>; 3],
}

impl Interrupt {
    pub(super) fn listen() -> io::Result<Self> {
        let ignored = ignored_signals();
        let listen = |kind: SignalKind| {
            let is_ignored = ignored >> (kind.as_raw_value() - 1) & 1 == 1;
            if is_ignored { Ok(None) } else { signal(kind).map(Some) }
        };
        Ok(Self {
            signals: [
                listen(SignalKind::interrupt())?,
                listen(SignalKind::terminate())?,
                listen(SignalKind::hangup())?,
            ],
        })
    }

    /// Waits for the next one. Cancel safe.
    pub(super) async fn received(&mut self) {
        let [int, term, hup] = &mut self.signals;
        tokio::select! {
            () = next(int) => {}
            () = next(term) => {}
            () = next(hup) => {}
        }
    }
}

async fn next(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// One bit for each signal that this process ignores, the lowest for signal 1. Where the system does not say it: none.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
