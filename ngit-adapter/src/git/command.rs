//! The installed git, run so that nothing of its surroundings leaks in.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use tokio::process::Command;

use super::version::GitVersion;

/// The installed git: found and checked once, at start. Cheap to clone.
///
/// Whatever part of git runs here is started by [`command`](Self::command), so that neither the
/// user's nor the system's settings decide what it does.
#[derive(Clone, Debug)]
pub struct Git {
    program: Arc<PathBuf>,
    version: GitVersion,
}

/// The oldest git that is used: older ones do not know options that the checks here rely on.
const OLDEST: GitVersion = GitVersion::new(2, 37, 0);

/// How long git may take to say its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

/// What every git that is run here is told, whatever configuration it would find.
const SETTINGS: &[&str] = &[
    // No program of the user's or a stranger's choice.
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "credential.helper=",
    "core.askPass=",
    // No transport: what is run here reads pipes and files, never the network.
    "protocol.allow=never",
    // Nothing that starts on its own and outlives what was asked for.
    "gc.auto=0",
    "maintenance.auto=false",
    "receive.autogc=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
];

/// The whole environment of a git that is run here.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("LC_ALL", "C"),
    ("LANGUAGE", "C"),
    ("HOME", "/dev/null"),
    ("XDG_CONFIG_HOME", "/dev/null"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    // Settings cannot override this one: no transport at all.
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_PROTOCOL_FROM_USER", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "/bin/false"),
    ("SSH_ASKPASS", "/bin/false"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"),
    // An object is what its name says, and a missing one is missing.
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
];

impl Git {
    /// The git that is first on `PATH`.
    ///
    /// # Errors
    ///
    /// [`GitError`] if there is none, if it cannot be run, or if it is older than 2.37.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the process that was asked for its version ends.
    pub async fn find() -> Result<Self, GitError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let program = std::env::split_paths(&path)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join("git"))
            .find(|candidate| is_executable(candidate))
            .ok_or(GitError::NotFound)?;
        Self::at(program).await
    }

    /// The git at this path.
    ///
    /// # Errors
    ///
    /// As for [`find`](Self::find).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe, as [`find`](Self::find) is.
    pub async fn at(program: impl Into<PathBuf>) -> Result<Self, GitError> {
        let program = Arc::new(program.into());
        let run = hermetic(&program, &[], "version").stdout(Stdio::piped()).output();
        let output = tokio::time::timeout(VERSION_TIMEOUT, run)
            .await
            .map_err(|_| GitError::Silent { program: program.to_path_buf() })?
            .map_err(|source| GitError::Run { program: program.to_path_buf(), source })?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = GitVersion::parse(&text)
            .filter(|_| output.status.success())
            .ok_or_else(|| GitError::NoVersion { program: program.to_path_buf() })?;
        if version < OLDEST {
            return Err(GitError::TooOld { program: program.to_path_buf(), version });
        }
        if version.has_known_holes() {
            tracing::warn!(
                program = %program.display(), %version,
                "this git has known security holes, unless its distribution has mended them"
            );
        }
        Ok(Self { program, version })
    }

    /// Its version.
    pub fn version(&self) -> GitVersion {
        self.version
    }

    /// Its path.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// A hermetic `git <subcommand>`, to which arguments can be added.
    ///
    /// It runs in the C locale with an environment of its own, without the user's or system's
    /// configuration, prompts, credential helpers, hooks, transports or maintenance. Its three
    /// standard streams are closed until the caller says otherwise, it leads a process group of its
    /// own, and it is killed when its handle is dropped. Values from outside belong behind
    /// `--end-of-options` or on its standard input.
    pub fn command(&self, subcommand: &str) -> Command {
        self.command_with(&[], subcommand)
    }

    /// As [`command`](Self::command), with further settings like `core.bare=true`.
    pub fn command_with(&self, settings: &[String], subcommand: &str) -> Command {
        hermetic(&self.program, settings, subcommand)
    }
}

fn hermetic(program: &Path, settings: &[String], subcommand: &str) -> Command {
    let mut command = Command::new(program);
    command.env_clear().envs(ENVIRONMENT.iter().copied());
    command.current_dir("/").process_group(0).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let own = settings.iter().map(String::as_str);
    for setting in SETTINGS.iter().copied().chain(own) {
        command.arg("-c").arg(setting);
    }
    command.arg(OsStr::new(subcommand));
    command
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Why the installed git cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// There is none.
    #[error("no git on PATH: install git {OLDEST} or newer, or say where it is")]
    NotFound,
    /// It could not be started.
    #[error("cannot run {}", program.display())]
    Run {
        /// What was run.
        program: PathBuf,
        /// Why it did not start.
        source: std::io::Error,
    },
    /// It did not answer.
    #[error("{} does not say its version", program.display())]
    Silent {
        /// What was run.
        program: PathBuf,
    },
    /// It is something else.
    #[error("{} does not look like git", program.display())]
    NoVersion {
        /// What was run.
        program: PathBuf,
    },
    /// It is too old.
    #[error("{} is git {version}: git {OLDEST} or newer is needed", program.display())]
    TooOld {
        /// What was run.
        program: PathBuf,
        /// What it says it is.
        version: GitVersion,
    },
}
