use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, BufWriter, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use super::{
    record::{self, Replay},
    shelf::Snapshot,
};
use crate::file_lock::FileLock;

/// The file in which everything that is held outlives the process.
///
/// Changes are appended, and written to the disk before they are acknowledged. When most of the file
/// is of no use any more, it is written anew beside the old one and put in its place in one step.
/// After a failure nothing is known of the file's end, so the next write is such a new file.
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// Up to which line, counted since the start, it is on the disk.
    durable: u64,
    suspect: bool,
    /// Held as long as the journal is: no second process may write it.
    _lock: FileLock,
}

const HEADER: &str = "ngit-purgatory journal 1\n";

/// A journal smaller than this is left as it is, bytes.
const SMALL: u64 = 4 << 20;

impl Journal {
    /// Opens a journal or begins one. `replay` gets what it says, line by line.
    ///
    /// A line that was cut off by a crash was never acknowledged: it goes. A line that is damaged
    /// otherwise is passed over, with a warning.
    pub(super) fn open(path: &Path, replay: impl FnMut(Replay) -> bool) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let lock = lock(&beside(path, "lock"))?;
        let mut file =
            OpenOptions::new().read(true).append(true).create(true).truncate(false).open(path)?;
        let bytes = if file.metadata()?.len() == 0 {
            file.write_all(HEADER.as_bytes())?;
            file.sync_all()?;
            sync_folder(path)?;
            HEADER.len() as u64
        } else {
            let whole = read_all(path, &file, replay)?;
            file.set_len(whole)?;
            file.seek(SeekFrom::End(0))?;
            whole
        };
        Ok(Self { path: path.to_owned(), file, bytes, durable: 0, suspect: false, _lock: lock })
    }

    /// Up to which line it is on the disk.
    pub(super) fn durable(&self) -> u64 {
        self.durable
    }

    /// Whether the next write has to be a new file.
    pub(super) fn wants_rewrite(&self, live_bytes: usize) -> bool {
        self.suspect || self.bytes > SMALL && self.bytes / 3 > live_bytes as u64
    }

    /// Appends lines. They are on the disk when it returns.
    pub(super) fn append(&mut self, lines: &str, upto: u64) -> io::Result<()> {
        self.suspect = true;
        self.file.write_all(lines.as_bytes())?;
        self.file.sync_data()?;
        self.bytes += lines.len() as u64;
        self.done(upto);
        Ok(())
    }

    /// Writes the whole file anew. It is in place and on the disk when it returns.
    pub(super) fn rewrite(&mut self, snapshot: &Snapshot, upto: u64) -> io::Result<()> {
        self.suspect = true;
        let new = beside(&self.path, "new");
        let mut file = BufWriter::new(File::create(&new)?);
        file.write_all(HEADER.as_bytes())?;
        snapshot.write(|lines| file.write_all(lines.as_bytes()))?;
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        sync_folder(&self.path)?;
        self.file = OpenOptions::new().append(true).open(&self.path)?;
        self.bytes = self.file.metadata()?.len();
        self.done(upto);
        Ok(())
    }

    fn done(&mut self, upto: u64) {
        self.suspect = false;
        self.durable = upto;
    }
}

/// Reads every line, and says where the last whole one ends.
fn read_all(path: &Path, file: &File, mut replay: impl FnMut(Replay) -> bool) -> io::Result<u64> {
    let mut file = BufReader::new(file);
    let mut line = Vec::new();
    file.read_until(b'\n', &mut line)?;
    if line != HEADER.as_bytes() {
        // A crash while the first line was written leaves a part of it and nothing else.
        if HEADER.as_bytes().starts_with(&line) {
            fs::write(path, HEADER)?;
            return Ok(HEADER.len() as u64);
        }
        let what = format!("{} is no journal of this version", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    let (mut whole, mut damaged) = (line.len() as u64, 0_u64);
    loop {
        line.clear();
        let bytes = file.read_until(b'\n', &mut line)?;
        let Some(text) = line.strip_suffix(b"\n") else {
            if bytes > 0 {
                tracing::info!(path = %path.display(), bytes, "dropped a line that a crash cut off");
            }
            break;
        };
        whole += bytes as u64;
        if !record::read(text).is_some_and(&mut replay) {
            damaged += 1;
        }
    }
    if damaged > 0 {
        tracing::warn!(path = %path.display(), lines = damaged, "passed over damaged lines");
    }
    Ok(whole)
}

fn lock(path: &Path) -> io::Result<FileLock> {
    FileLock::try_take(path)?.ok_or_else(|| {
        let what = format!("{} is in use by another process", path.display());
        io::Error::new(io::ErrorKind::WouldBlock, what)
    })
}

/// The path with another ending behind its own.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

/// Makes a file's name in its folder durable.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
