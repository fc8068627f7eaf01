//! Nothing that a server sends is taken without limit.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use flate2::{Compression, write::ZlibEncoder};
use ngit_adapter::git::{Limits, SmartHttpFetcherBuilder};
use purgatory_sync::{FetchErrorKind as Kind, Oid};

use crate::{
    fetch_packs::{Kind as Is, PackBuilder, bomb, object_id},
    fetch_server::{
        ADVERTISEMENT, RESULT, ScriptedServer, capabilities, endless_head, ok, pack_answer, packet,
        serves_pack,
    },
    fetch_support::{Here, absent},
};

const MIB: u64 = 1 << 20;

async fn with(setup: impl FnOnce(SmartHttpFetcherBuilder) -> SmartHttpFetcherBuilder) -> Here {
    Here::with(|builder| setup(builder.allow_private_networks(true))).await
}

/// Fails one fetch, and sees that nothing of it is left.
async fn fails(here: &Here, server: &ScriptedServer, want: Oid) -> Kind {
    let kind = here.fails(&server.url(), &[want]).await;
    assert!(here.quarantined().is_empty(), "{kind:?}");
    kind
}

/// A server whose advertisement is honest, and whose pack answer is written by `write`.
fn writes(
    write: impl Fn(&mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
) -> ScriptedServer {
    ScriptedServer::start(move |request, stream| {
        if request.is_discovery() {
            return ok(stream, ADVERTISEMENT, &capabilities("fetch=wait-for-done\n"));
        }
        endless_head(stream, RESULT)?;
        write(stream)
    })
}

/// G4: the defaults are those of the contract.
#[test]
fn defaults_are_as_promised() {
    let limits = Limits::default();
    assert_eq!(limits.connect_timeout, Duration::from_secs(10));
    assert_eq!(limits.idle_timeout, Duration::from_secs(30));
    assert_eq!(limits.overall_timeout, Duration::from_secs(600));
    assert_eq!(limits.pack_bytes, 2_048 * MIB);
    assert_eq!(limits.object_bytes, 512 * MIB);
    assert_eq!(limits.memory_bytes, 1_000_000 * 1_024);
}

/// G4: a head, an advertisement and a list that never end.
#[tokio::test]
async fn endless_answers_are_too_large() {
    let head = ScriptedServer::start_raw(|mut stream| {
        let _ = stream.read(&mut [0; 4_096]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        while stream.write_all(b"X-More: and more and more and more\r\n").is_ok() {}
    });
    let advertisement = ScriptedServer::start(|_, stream| {
        endless_head(stream, ADVERTISEMENT)?;
        stream.write_all(&packet("version 2\n"))?;
        loop {
            stream.write_all(&packet("more\n"))?;
        }
    });
    let acknowledgments = ScriptedServer::start(|request, stream| {
        if request.is_discovery() {
            return ok(stream, ADVERTISEMENT, &capabilities("fetch=wait-for-done\n"));
        }
        if request.wants() {
            return ok(stream, RESULT, &packet("ERR no\n"));
        }
        endless_head(stream, RESULT)?;
        stream.write_all(&packet("acknowledgments\n"))?;
        let lines = packet(format!("ACK {}\n", absent(1))).repeat(100);
        loop {
            stream.write_all(&lines)?;
        }
    });
    let here = with(|builder| builder).await;
    for server in [head, advertisement, acknowledgments] {
        assert_eq!(fails(&here, &server, absent(1)).await, Kind::TooLarge);
    }
}

/// G4: text for people is not asked for, and a flood of it ends the fetch.
#[tokio::test]
async fn endless_progress_is_too_large() {
    let server = writes(|stream| {
        stream.write_all(&packet("packfile\n"))?;
        let text = packet([&b"\x02"[..], &[b'x'; 60_000]].concat());
        loop {
            stream.write_all(&text)?;
        }
    });
    let here = with(|builder| builder).await;
    assert_eq!(fails(&here, &server, absent(1)).await, Kind::TooLarge);
}

/// G4: a pack that never ends is cut off at the limit, not a portion later.
#[tokio::test]
async fn an_endless_pack_is_too_large() {
    let server = writes(|stream| {
        stream.write_all(&packet("packfile\n"))?;
        let mut pack = PackBuilder::default();
        // Stored blocks of zeros: as long as zlib is told that there is more, there is more.
        pack.add_raw(Is::Blob, 1 << 40, b"\x78\x01");
        let start = pack.finish();
        stream.write_all(&packet([&b"\x01"[..], &start[..start.len() - 20]].concat()))?;
        let block = [&b"\x00\xff\x3f\x00\xc0"[..], &[0; 0x3fff]].concat();
        let line = packet([&b"\x01"[..], &block].concat());
        loop {
            stream.write_all(&line)?;
        }
    });
    // The object limit would be met first.
    let here = with(|builder| builder.pack_limit(4 * MIB).object_limit(1 << 50)).await;
    let error = here.fetch(&server.url(), &[absent(1)]).await.expect_err("it never ends");
    assert_eq!(error.kind(), Kind::TooLarge);
    let here = with(|builder| builder).await;
    assert_eq!(fails(&here, &server, absent(1)).await, Kind::TooLarge);
}

/// G4: the limit on packs is a setting.
#[tokio::test]
async fn the_pack_limit_is_a_setting() {
    let mut pack = PackBuilder::default();
    let noise: Vec<u8> =
        (0..50_000_u32).flat_map(|x| x.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
    let want = pack.add(Is::Blob, &noise);
    let pack = pack.finish();
    let size = pack.len() as u64;
    let server = serves_pack(pack_answer(&pack));
    let here = with(|builder| builder.pack_limit(size - 1)).await;
    assert_eq!(fails(&here, &server, want).await, Kind::TooLarge);
    let here = with(|builder| builder.pack_limit(size)).await;
    assert_eq!(here.fetch(&server.url(), &[want]).await.expect("it fits").received, [want]);
}

/// A pack of a small base and a delta on it that makes `mib` MiB.
fn delta_bomb(mib: usize) -> Vec<u8> {
    let mut pack = PackBuilder::default();
    let base = pack.add(Is::Blob, &[0; 0x1_0000]);
    pack.add_delta(base, &bomb(0x1_0000, mib * 16, b"boom"));
    pack.finish()
}

/// G4: a delta of a few bytes that makes an object of 1 GiB.
#[tokio::test]
async fn a_delta_bomb_is_too_large() {
    let pack = delta_bomb(1_024);
    assert!(pack.len() < 2_000, "{} bytes", pack.len());
    let server = serves_pack(pack_answer(&pack));
    let here = with(|builder| builder).await;
    assert_eq!(fails(&here, &server, absent(1)).await, Kind::TooLarge);
}

/// G4: an object under its limit still has to fit into the memory of the child.
#[tokio::test]
async fn more_memory_than_allowed_is_too_large() {
    let server = serves_pack(pack_answer(&delta_bomb(300)));
    let here = with(|builder| builder.memory_limit(200 * MIB)).await;
    assert_eq!(fails(&here, &server, absent(1)).await, Kind::TooLarge);
    let mut pack = PackBuilder::default();
    pack.add(Is::Blob, b"text");
    let server = serves_pack(pack_answer(&pack.finish_claiming(4_000_000_000)));
    assert_eq!(fails(&here, &server, absent(1)).await, Kind::TooLarge);
}

/// G4: the limit on objects holds for plain ones too, however well they compress.
#[tokio::test]
async fn the_object_limit_is_a_setting() {
    let content = vec![0; 2 << 20];
    let mut pack = PackBuilder::default();
    let want = pack.add(Is::Blob, &content);
    let server = serves_pack(pack_answer(&pack.finish()));
    let here = with(|builder| builder.object_limit(2 * MIB - 1)).await;
    assert_eq!(fails(&here, &server, want).await, Kind::TooLarge);
    let here = with(|builder| builder.object_limit(3 * MIB)).await;
    assert_eq!(here.fetch(&server.url(), &[want]).await.expect("it fits").received, [want]);
}

/// G4: an object that is longer than it says.
#[tokio::test]
async fn an_object_that_lies_about_its_size_is_refused() {
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
    zlib.write_all(&vec![0; 8 << 20]).expect("memory takes all");
    let zlib = zlib.finish().expect("memory takes all");
    let mut pack = PackBuilder::default();
    pack.add_raw(Is::Blob, 4, &zlib);
    let server = serves_pack(pack_answer(&pack.finish()));
    let here = with(|builder| builder).await;
    assert_eq!(fails(&here, &server, object_id(Is::Blob, &[0; 4])).await, Kind::Corrupt);
}

/// G4: small deltas that take much work.
#[tokio::test]
async fn more_processor_time_than_allowed_is_too_large() {
    let mut pack = PackBuilder::default();
    let base = pack.add(Is::Blob, &[0; 0x1_0000]);
    for number in 0..200_u8 {
        pack.add_delta(base, &bomb(0x1_0000, 200 * 16, &[number]));
    }
    let server = serves_pack(pack_answer(&pack.finish()));
    let here = with(|builder| builder.cpu_limit(Duration::from_secs(1))).await;
    let begun = Instant::now();
    assert_eq!(fails(&here, &server, absent(1)).await, Kind::TooLarge);
    // 200 objects of 200 MiB: without the limit this takes minutes.
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

/// G4: the overall deadline ends the work on a pack as well as the wait for one.
#[tokio::test]
async fn the_deadline_ends_the_child() {
    let mut pack = PackBuilder::default();
    let base = pack.add(Is::Blob, &[0; 0x1_0000]);
    for number in 0..200_u8 {
        pack.add_delta(base, &bomb(0x1_0000, 200 * 16, &[number]));
    }
    let server = serves_pack(pack_answer(&pack.finish()));
    let here = with(|builder| builder.overall_timeout(Duration::from_millis(500))).await;
    assert_eq!(fails(&here, &server, absent(1)).await, Kind::Timeout);
}
