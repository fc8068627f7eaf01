use std::{fs::File, io, os::unix::fs::MetadataExt, path::Path};

use tokio::time::Instant;

use crate::cli::{
    Failure,
    args::Input,
    line_writer::{LineSink, LineWriter},
};

/// Where the run writes: JSON lines to stdout, released events to a file, each if it is wanted.
pub(super) struct Writers {
    json: Option<LineWriter>,
    out: Option<(String, LineWriter)>,
}

impl Writers {
    /// Makes the file anew, unless it is the one that is read.
    pub(super) fn open(json: bool, out: Option<&Path>, input: &Input) -> Result<Self, Failure> {
        let json = json.then(|| LineWriter::spawn(io::stdout())).transpose();
        let json = json.map_err(Failure::because("no thread can be started"))?;
        let out = out.map(|path| {
            let name = path.display().to_string();
            if same_file(path, input) {
                return Err(Failure(format!(
                    "{name} is the input: it would be lost as the output"
                )));
            }
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

/// Whether both are one regular file, whatever they are called.
fn same_file(out: &Path, input: &Input) -> bool {
    let input = match input {
        Input::File(path) => path.metadata(),
        Input::Stdin => Path::new("/dev/stdin").metadata(),
    };
    let (Ok(input), Ok(out)) = (input, out.metadata()) else { return false };
    out.is_file() && (input.dev(), input.ino()) == (out.dev(), out.ino())
}
