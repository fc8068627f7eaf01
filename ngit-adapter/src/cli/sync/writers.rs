use std::{fs::File, io, path::Path};

use tokio::time::Instant;

use crate::cli::{
    Failure,
    line_writer::{LineSink, LineWriter},
};

/// Where the run writes: JSON lines to stdout, released events to a file, each if it is wanted.
pub(super) struct Writers {
    json: Option<LineWriter>,
    out: Option<(String, LineWriter)>,
}

impl Writers {
    pub(super) fn open(json: bool, out: Option<&Path>) -> Result<Self, Failure> {
        let json = json.then(|| LineWriter::spawn(io::stdout())).transpose();
        let json = json.map_err(Failure::because("no thread can be started"))?;
        let out = out.map(|path| {
            let name = path.display().to_string();
            let writer = File::create(path).and_then(LineWriter::spawn);
            let writer = writer.map_err(Failure::because(format!("{name} cannot be written")))?;
            Ok((name, writer))
        });
        Ok(Self { json, out: out.transpose()? })
    }

    pub(super) fn json(&self) -> Option<LineSink> {
        self.json.as_ref().map(LineWriter::sink)
    }

    pub(super) fn out(&self) -> Option<LineSink> {
        self.out.as_ref().map(|(_, writer)| writer.sink())
    }

    /// Waits until all is written, until this time.
    pub(super) async fn finish(self, until: Instant) -> Result<(), Failure> {
        if let Some((name, writer)) = self.out {
            let failure = Failure::because(format!("{name} could not be written"));
            writer.finish(until).await.map_err(failure)?;
        }
        if let Some(writer) = self.json {
            let failure = Failure::because("standard output could not be written");
            writer.finish(until).await.map_err(failure)?;
        }
        Ok(())
    }
}
