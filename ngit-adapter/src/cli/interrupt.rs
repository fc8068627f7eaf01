use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that ask a program to end: SIGINT (Ctrl-C), SIGTERM, SIGHUP.
///
/// They are caught from the moment this is made, so nothing that is made later can be left behind.
pub(super) struct Interrupt {
    signals: [Signal; 3],
}

impl Interrupt {
    pub(super) fn listen() -> io::Result<Self> {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [int, term, hup] = kinds.map(signal);
        Ok(Self { signals: [int?, term?, hup?] })
    }

    /// Waits for the next one. Cancel safe.
    pub(super) async fn received(&mut self) {
        let [int, term, hup] = &mut self.signals;
        tokio::select! {
            _ = int.recv() => {}
            _ = term.recv() => {}
            _ = hup.recv() => {}
        }
    }
}
