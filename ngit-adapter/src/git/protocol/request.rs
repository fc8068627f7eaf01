//! The three requests that are made.

use gix_packetline::blocking_io::encode::{delim_to_write, flush_to_write, text_to_write};
use purgatory_sync::Oid;

use super::Advertisement;

/// How we name ourselves to servers.
const AGENT: &str = concat!("agent=ngit-adapter/", env!("CARGO_PKG_VERSION"));

/// Asks for `wants`, with all their history but what `haves` reach.
///
/// - `thin-pack`: deltas against what we have; `ofs-delta`: shorter references in the pack.
/// - `no-progress`: text for people would be thrown away.
/// - `done`: no rounds of negotiation. One request, one answer.
pub(crate) fn fetch(server: Advertisement, wants: &[Oid], haves: &[Oid]) -> Vec<u8> {
    let mut body = command("fetch", server);
    for feature in ["thin-pack", "ofs-delta", "no-progress"] {
        line(&mut body, feature);
    }
    oids(&mut body, "want", wants);
    oids(&mut body, "have", haves);
    line(&mut body, "done");
    end(body)
}

/// Asks which of `oids` the server has, and for nothing else.
///
/// The server acknowledges what it has of what we say to have. Without `done`, and with the promise to wait for
/// it, it does not begin a pack.
pub(crate) fn probe(server: Advertisement, asked: &[Oid]) -> Vec<u8> {
    let mut body = command("fetch", server);
    line(&mut body, "wait-for-done");
    oids(&mut body, "have", asked);
    end(body)
}

/// Asks for the server's refs.
pub(crate) fn list_refs(server: Advertisement) -> Vec<u8> {
    end(command("ls-refs", server))
}

fn command(name: &str, server: Advertisement) -> Vec<u8> {
    let mut body = Vec::new();
    line(&mut body, &format!("command={name}"));
    line(&mut body, AGENT);
    if server.names_object_format {
        line(&mut body, "object-format=sha1");
    }
    delim_to_write(&mut body).expect("writing to memory does not fail");
    body
}

fn oids(body: &mut Vec<u8>, word: &str, oids: &[Oid]) {
    for oid in oids {
        line(body, &format!("{word} {oid}"));
    }
}

fn line(body: &mut Vec<u8>, text: &str) {
    text_to_write(text.as_bytes(), body).expect("writing a short line to memory does not fail");
}

fn end(mut body: Vec<u8>) -> Vec<u8> {
    flush_to_write(&mut body).expect("writing to memory does not fail");
    body
}
