//! The lines of a server's answers.

use purgatory_sync::Oid;

/// What a line that begins a section says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    /// What the server has of what we said to have.
    Acknowledgments,
    /// Where the server's history is cut.
    ShallowInfo,
    /// The pack, in bands.
    Packfile,
}

/// One line of the pack's section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Band<'a> {
    /// A part of the pack.
    Pack(&'a [u8]),
    /// Text for people.
    Progress(&'a [u8]),
    /// The server gives up.
    Error(&'a [u8]),
}

/// The section that a line begins.
pub(crate) fn section(line: &[u8]) -> Option<Section> {
    match trimmed(line) {
        b"acknowledgments" => Some(Section::Acknowledgments),
        b"shallow-info" => Some(Section::ShallowInfo),
        b"packfile" => Some(Section::Packfile),
        _ => None,
    }
}

/// What the server says if the line is an error.
pub(crate) fn error_text(line: &[u8]) -> Option<&[u8]> {
    line.strip_prefix(b"ERR ")
}

/// The band of a line in the pack's section.
pub(crate) fn band(line: &[u8]) -> Option<Band<'_>> {
    match line.split_first()? {
        (1, rest) => Some(Band::Pack(rest)),
        (2, rest) => Some(Band::Progress(rest)),
        (3, rest) => Some(Band::Error(rest)),
        _ => None,
    }
}

/// The object that a line of acknowledgements names: one that the server has.
pub(crate) fn acknowledged(line: &[u8]) -> Option<Oid> {
    oid(trimmed(line).strip_prefix(b"ACK ")?)
}

/// The object that a line of a list of refs names.
pub(crate) fn listed(line: &[u8]) -> Option<Oid> {
    oid(line.split(|byte| *byte == b' ').next()?)
}

/// How many objects a pack has, by its first bytes.
pub(crate) fn pack_objects(head: &[u8]) -> Option<u32> {
    let rest = head.strip_prefix(b"PACK")?;
    let count = rest.get(4..8)?;
    Some(u32::from_be_bytes(count.try_into().ok()?))
}

fn trimmed(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}

fn oid(hex: &[u8]) -> Option<Oid> {
    std::str::from_utf8(hex).ok()?.parse().ok()
}
