//! Whether all that an object reaches is here.

use purgatory_sync::Oid;
use tokio::{io::AsyncWriteExt, process::ChildStdin};

use super::{Git, Limits, Quarantine, failure::Failure, index_pack::run};

/// Checks that `tips` are in the quarantine, or in the repository that it borrows from, with all they
/// reach, down to what `known` reaches.
///
/// The walk of `index-pack --strict` looks at each object of the pack and at what it names; this one begins at
/// what was asked for. Each sees what the other would miss if one of them erred.
pub(super) async fn check(
    git: &Git,
    quarantine: &Quarantine,
    limits: &Limits,
    tips: &[Oid],
    known: &[Oid],
) -> Result<(), Failure> {
    let settings = ["core.packedGitWindowSize=16m", "core.packedGitLimit=128m"];
    let mut command = git.command_with(&settings.map(str::to_owned), "rev-list");
    command.args(["--objects", "--quiet", "--stdin"]);
    let mut lines = String::new();
    for tip in tips {
        lines.push_str(&format!("{tip}\n"));
    }
    for tip in known {
        lines.push_str(&format!("^{tip}\n"));
    }
    run(command, quarantine, limits, async move |mut stdin: ChildStdin| {
        // If it ended early, its exit status says why.
        let _ = stdin.write_all(lines.as_bytes()).await;
        Ok(())
    })
    .await
}
