//! Packs made by hand, right and wrong.

#![allow(dead_code, reason = "each test uses a part of this")]

use std::io::Write;

use flate2::{Compression, write::ZlibEncoder};
use purgatory_sync::Oid;

/// A pack under construction.
#[derive(Clone, Debug, Default)]
pub(crate) struct PackBuilder {
    objects: Vec<u8>,
    count: u32,
}

/// The types of objects, as packs number them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Commit = 1,
    Tree = 2,
    Blob = 3,
    Tag = 4,
    RefDelta = 7,
}

impl PackBuilder {
    /// Adds an object. Gives its id.
    pub(crate) fn add(&mut self, kind: Kind, content: &[u8]) -> Oid {
        self.entry(kind, content.len(), &[], content);
        object_id(kind, content)
    }

    /// Adds a delta on another object.
    pub(crate) fn add_delta(&mut self, base: Oid, delta: &[u8]) {
        self.entry(Kind::RefDelta, delta.len(), base.as_bytes(), delta);
    }

    /// Adds the head of an object that claims to be `size` long, and compressed bytes after it.
    pub(crate) fn add_raw(&mut self, kind: Kind, size: usize, compressed: &[u8]) {
        self.head(kind, size);
        self.objects.extend_from_slice(compressed);
        self.count += 1;
    }

    /// The pack.
    pub(crate) fn finish(&self) -> Vec<u8> {
        self.finish_claiming(self.count)
    }

    /// The pack, with another number of objects in its head.
    pub(crate) fn finish_claiming(&self, count: u32) -> Vec<u8> {
        let mut pack = b"PACK\0\0\0\x02".to_vec();
        pack.extend_from_slice(&count.to_be_bytes());
        pack.extend_from_slice(&self.objects);
        let trailer = sha1(&[&pack]);
        pack.extend_from_slice(&trailer);
        pack
    }

    fn entry(&mut self, kind: Kind, size: usize, base: &[u8], content: &[u8]) {
        self.head(kind, size);
        self.objects.extend_from_slice(base);
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(content).expect("memory takes all");
        self.objects.extend(zlib.finish().expect("memory takes all"));
        self.count += 1;
    }

    fn head(&mut self, kind: Kind, size: usize) {
        let mut byte = (kind as u8) << 4 | low(size, 4);
        let mut rest = size >> 4;
        while rest > 0 {
            self.objects.push(byte | 0x80);
            byte = low(rest, 7);
            rest >>= 7;
        }
        self.objects.push(byte);
    }
}

/// A delta on `from` bytes that makes `copies` times the first 64 KiB of them, and `tail` after that.
pub(crate) fn bomb(from: usize, copies: usize, tail: &[u8]) -> Vec<u8> {
    let mut delta = varint(from);
    delta.extend(varint(copies * 0x1_0000 + tail.len()));
    // Copy, offset 0, and no size, which means 64 KiB.
    delta.extend(std::iter::repeat_n(0x80, copies));
    for part in tail.chunks(0x7f) {
        delta.push(low(part.len(), 7));
        delta.extend_from_slice(part);
    }
    delta
}

/// The id of an object.
pub(crate) fn object_id(kind: Kind, content: &[u8]) -> Oid {
    let name = match kind {
        Kind::Commit => "commit",
        Kind::Tree => "tree",
        Kind::Blob => "blob",
        Kind::Tag => "tag",
        Kind::RefDelta => unreachable!("a delta has no id of its own"),
    };
    Oid::sha1(sha1(&[format!("{name} {}\0", content.len()).as_bytes(), content]))
}

/// A tree with these entries: mode and name, and object.
pub(crate) fn tree(entries: &[(&str, Oid)]) -> Vec<u8> {
    let mut tree = Vec::new();
    for (name, oid) in entries {
        tree.extend_from_slice(name.as_bytes());
        tree.push(0);
        tree.extend_from_slice(oid.as_bytes());
    }
    tree
}

/// A commit of a tree.
pub(crate) fn commit(tree: Oid, parents: &[Oid]) -> Vec<u8> {
    let mut text = format!("tree {tree}\n");
    for parent in parents {
        text.push_str(&format!("parent {parent}\n"));
    }
    text.push_str("author A U Thor <author@example.org> 1700000000 +0000\n");
    text.push_str("committer A U Thor <author@example.org> 1700000000 +0000\n\nmade by hand\n");
    text.into_bytes()
}

fn varint(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push(low(number, 7) | 0x80);
        number >>= 7;
    }
    bytes.push(low(number, 7));
    bytes
}

fn low(number: usize, bits: u32) -> u8 {
    u8::try_from(number & ((1 << bits) - 1)).expect("at most seven bits")
}

fn sha1(parts: &[&[u8]]) -> [u8; 20] {
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    for part in parts {
        hasher.update(part);
    }
    let id = hasher.try_finalize().expect("no collision here");
    id.as_bytes().try_into().expect("a SHA-1 has 20 bytes")
}
