use std::collections::BTreeMap;

use purgatory_sync::Oid;

use super::report::{flush, line};

/// What this server can do when it is pushed to. Refs are moved all together or not at all, asked for or not.
const CAPABILITIES: &str = concat!(
    "report-status delete-refs side-band-64k atomic ofs-delta object-format=sha1 agent=ngit-purgatory/",
    env!("CARGO_PKG_VERSION")
);

/// The first answer to a push: what is here.
pub(super) fn advertisement(refs: &BTreeMap<String, Oid>) -> Vec<u8> {
    let mut answer = Vec::new();
    line(&mut answer, b"# service=git-receive-pack\n");
    flush(&mut answer);
    let mut capabilities = Some(CAPABILITIES);
    for (name, oid) in refs {
        let text = match capabilities.take() {
            Some(capabilities) => format!("{oid} {name}\0{capabilities}\n"),
            None => format!("{oid} {name}\n"),
        };
        line(&mut answer, text.as_bytes());
    }
    if let Some(capabilities) = capabilities {
        let zeros = "0".repeat(40);
        line(&mut answer, format!("{zeros} capabilities^{{}}\0{capabilities}\n").as_bytes());
    }
    flush(&mut answer);
    answer
}
