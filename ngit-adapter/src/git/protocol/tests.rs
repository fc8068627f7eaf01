use gix_packetline::PacketLineRef;
use proptest::prelude::*;
use purgatory_sync::Oid;

use super::*;

/// The lines in `bytes`, which come in portions of these lengths, and whether they end in nonsense.
fn lines(bytes: &[u8], portions: &[usize]) -> (Vec<Option<Vec<u8>>>, bool) {
    let (mut packets, mut lines) = (Packets::default(), Vec::new());
    let (mut rest, mut portions) = (bytes, portions.iter().cycle());
    while !rest.is_empty() {
        let length = portions.next().map_or(rest.len(), |length| (*length).clamp(1, rest.len()));
        let (portion, after) = rest.split_at(length);
        packets.push(portion);
        rest = after;
        loop {
            match packets.next() {
                Ok(Some(line)) => lines.push(line.as_slice().map(<[u8]>::to_vec)),
                Ok(None) => break,
                Err(_) => return (lines, true),
            }
        }
    }
    (lines, false)
}

/// Bytes that are often packet lines.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        Just(b"0000".to_vec()),
        Just(b"0001".to_vec()),
        Just(b"0002".to_vec()),
        Just(b"0004".to_vec()),
        Just(b"000eversion 2\n".to_vec()),
        Just(b"001e# service=git-upload-pack\n".to_vec()),
        "[a-z =\\n]{1,20}".prop_map(|text| format!("{:04x}{text}", text.len() + 4).into_bytes()),
        proptest::collection::vec(any::<u8>(), 0..8),
    ];
    proptest::collection::vec(line, 0..12).prop_map(|lines| lines.concat())
}

proptest! {
    /// G4: however the bytes of an answer are cut into portions, they are the same lines.
    #[test]
    fn portions_do_not_matter(
        bytes in stream(),
        portions in proptest::collection::vec(1_usize..40, 1..6),
    ) {
        prop_assert_eq!(lines(&bytes, &portions), lines(&bytes, &[usize::MAX]));
    }

    /// G4: no advertisement and no line of an answer panics.
    #[test]
    fn nothing_panics(bytes in stream(), line in proptest::collection::vec(any::<u8>(), 0..80)) {
        let (lines, _) = lines(&bytes, &[usize::MAX]);
        let mut reading = Reading::default();
        for line in &lines {
            let line = line.as_deref().map_or(PacketLineRef::Flush, PacketLineRef::Data);
            if reading.line(line).is_err() {
                break;
            }
        }
        let _ = reading.finish();
        let _ = (section(&line), error_text(&line), band(&line), acknowledged(&line));
        let _ = (listed(&line), pack_objects(&line));
    }

    /// G1: what is sent is made of object ids and nothing else that comes from outside.
    #[test]
    fn requests_are_lines_of_object_ids(hashes in proptest::collection::vec(any::<[u8; 20]>(), 0..20)) {
        let oids: Vec<Oid> = hashes.into_iter().map(Oid::sha1).collect();
        let can = Advertisement::default();
        let (sent, nonsense) = lines(&fetch(can, &oids, &oids), &[usize::MAX]);
        prop_assert!(!nonsense);
        let count = |word: &str| sent.iter().flatten().filter(|line| line.starts_with(word.as_bytes())).count();
        prop_assert_eq!((count("want "), count("have ")), (oids.len(), oids.len()));
        let (sent, _) = lines(&probe(can, &oids), &[usize::MAX]);
        prop_assert!(!sent.iter().flatten().any(|line| line.starts_with(b"want ") || line == b"done\n"));
        prop_assert_eq!(sent.last(), Some(&None));
    }
}

/// G6: what a server says it can do.
#[test]
fn advertisements_are_read() {
    let read = |lines: &[&str]| {
        let mut reading = Reading::default();
        for line in lines {
            let line = match *line {
                "0000" => PacketLineRef::Flush,
                text => PacketLineRef::Data(text.as_bytes()),
            };
            reading.line(line)?;
        }
        reading.finish()
    };
    let said = read(&[
        "# service=git-upload-pack\n",
        "0000",
        "version 2\n",
        "agent=git/2.47\n",
        "ls-refs=unborn\n",
        "fetch=shallow wait-for-done filter\n",
        "object-format=sha1\n",
        "0000",
    ]);
    let said = said.expect("it is all there");
    assert!(said.can_be_probed && said.lists_refs && said.names_object_format);
    // Without the line before it, without line ends, and with a feature that only looks like the one we look for.
    let said = read(&["version 2", "fetch=not-wait-for-done", "0000"]).expect("it is enough");
    assert!(!said.can_be_probed && !said.lists_refs && !said.names_object_format);
    assert_eq!(read(&["version 1\n"]), Err(NotSupported::Version));
    assert_eq!(read(&["version 2\n", "fetch\n"]), Err(NotSupported::Version));
    assert_eq!(read(&["version 2\n", "ls-refs\n", "0000"]), Err(NotSupported::NoFetch));
    let other = ["version 2\n", "fetch\n", "object-format=sha256\n", "0000"];
    assert_eq!(read(&other), Err(NotSupported::Sha256));
}
