//! How a push ended, for its client and for the log.

use super::{
    super::metrics,
    commands::Command,
    report::{self, RefReport},
    take::Push,
};

/// Why a push came to nothing.
pub(super) enum NotTaken {
    /// Each command has its reason.
    Refs(Vec<String>),
    /// The pack, or something on this side.
    All(String),
}

impl Push {
    /// What its client is told.
    pub(super) fn report(&self, result: Result<(), NotTaken>) -> Vec<u8> {
        if !self.commands.report {
            return Vec::new();
        }
        let name = |command: &Command| command.name.as_bytes();
        let bands = self.commands.bands;
        let all = &self.commands.all;
        match result {
            Ok(()) => {
                let refs: Vec<_> =
                    all.iter().map(|it| RefReport { name: name(it), refused: None }).collect();
                report::report(Ok(()), &refs, bands)
            }
            Err(NotTaken::Refs(reasons)) => {
                let refs = all.iter().zip(reasons);
                let refs: Vec<_> = refs
                    .map(|(it, why)| RefReport { name: name(it), refused: Some(why) })
                    .collect();
                report::report(Ok(()), &refs, bands)
            }
            Err(NotTaken::All(why)) => {
                let refused = || Some("nothing was taken".to_owned());
                let refs: Vec<_> =
                    all.iter().map(|it| RefReport { name: name(it), refused: refused() }).collect();
                let mut answer = if bands { report::message(&why) } else { Vec::new() };
                answer.extend(report::report(Err(&why), &refs, bands));
                answer
            }
        }
    }

    pub(super) fn log(&self, result: &Result<(), NotTaken>) {
        let repository = self.repository.url_path();
        let refs = self.commands.all.len();
        match result {
            Ok(()) => {
                metrics::push("accepted");
                tracing::info!(repository, refs, "push accepted");
            }
            Err(NotTaken::Refs(reasons)) => {
                metrics::push("refused");
                let why = reasons.first().map_or("", String::as_str);
                tracing::info!(repository, refs, why, "push refused");
            }
            Err(NotTaken::All(why)) => {
                metrics::push("failed");
                tracing::warn!(repository, refs, why, "push failed");
            }
        }
    }
}
