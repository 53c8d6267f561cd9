//! The handshake: `SRV-HELLO-`.

use rpc_proto::Packet;
use rpc_proto::codes::{HandshakeCode, RPC_MAGIC};

use super::malformed::opened;
use crate::case::{Case, Level, Tag};
use crate::roles::Server;
use crate::roles::packets::{PacketWire, encode};
use crate::roles::server::introduction;
use crate::stage::Outcome;
use crate::wire::Shortfall;

pub(super) const CASES: &[Case] = &[
    Case::server("SRV-HELLO-001", Level::Must, "3.4.1", accepted).about(
        "A client that names the server's key is answered by the code for success and a key.",
        "That is how every session begins.",
    ),
    Case::server("SRV-HELLO-002", Level::Must, "3.4.2", key_of_the_server).about(
        "The server's key begins with `server:`.",
        "Who came by way of a proxy sees that it has met a server.",
    ),
    Case::server("SRV-HELLO-003", Level::Must, "3.4.3", nothing_behind).about(
        "Nothing comes behind the server's key until the client has sent a packet.",
        "Whatever comes is taken for the reply to the first request.",
    ),
    Case::server("SRV-HELLO-004", Level::Must, "3.1.1", wrong_magic)
        .about(
            "A connection that begins otherwise is closed, without a success.",
            "Who came to the wrong port has to notice it.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-HELLO-005", Level::Must, "3.1.2", cut_everywhere).about(
        "The introduction may be cut into two pieces at every byte.",
        "Where a stream is cut is not in the hands of who writes to it.",
    ),
    Case::server("SRV-HELLO-006", Level::Must, "3.1.2", byte_by_byte).about(
        "The introduction may come byte by byte.",
        "Servers in browsers send magic, length and key one by one.",
    ),
    Case::server("SRV-HELLO-007", Level::Should, "3.1.3", with_the_first_packet).about(
        "The init packet may come in one piece with the introduction.",
        "A client that is sure of its key saves a round trip.",
    ),
    Case::server("SRV-HELLO-008", Level::Should, "3.1.4", negative_length)
        .about(
            "A negative length of the key ends the connection, and the next client is served.",
            "A length that is taken for a large one makes a server wait or grow.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-HELLO-009", Level::Should, "3.1.5", huge_length)
        .about(
            "A key that is announced with two gigabytes ends the connection.",
            "Eight bytes must not be enough to fill a server's memory, or to keep it waiting.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-HELLO-010", Level::Must, "3.1.6", long_key).about(
        "A key of 256 bytes is read.",
        "Keys that describe a device in full are long, and options come behind them.",
    ),
    Case::server("SRV-HELLO-011", Level::Must, "3.2.1", own_key).about(
        "The server's own key is the match key of a server without a tracker.",
        "It is how a server is reached that nobody lends.",
    ),
    Case::server("SRV-HELLO-012", Level::Must, "3.2.2", other_key).about(
        "Another match key is refused by the code for a mismatch, and the connection is closed.",
        "A client whose turn is over must not get the session of another.",
    ),
    Case::server("SRV-HELLO-013", Level::Must, "3.2.4", part_of_the_key).about(
        "A match key that is the beginning of the right one, or longer, is refused.",
        "Keys that are compared in part are guessed in parts.",
    ),
    Case::server("SRV-HELLO-014", Level::Must, "3.2.3", not_a_client)
        .about(
            "Keys that do not begin with `client:` are refused.",
            "Another server that came to this port must not be taken for a client.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-HELLO-015", Level::Should, "3.2.5", not_utf8)
        .about(
            "A key that is not UTF-8 is refused, and the next client is served.",
            "It is no reason to stop serving.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-HELLO-016", Level::Should, "3.2.6", empty_and_blank)
        .about(
            "An empty key, and one of blanks, is refused, and the next client is served.",
            "It is no reason to stop serving.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-HELLO-017", Level::Must, "3.3.2", unknown_options).about(
        "Options that the server does not know are ignored.",
        "Clients of later versions have more of them.",
    ),
    Case::server("SRV-HELLO-018", Level::Must, "3.3.1", whole_seconds).about(
        "A session timeout in whole seconds is accepted.",
        "It is what the reference's client sends.",
    ),
    Case::server("SRV-HELLO-019", Level::Should, "3.3.3", decimal_seconds).about(
        "A session timeout is accepted as a decimal number, and with an exponent.",
        "It is what Python prints of small and large numbers.",
    ),
    Case::server("SRV-HELLO-020", Level::Should, "3.3.4", no_seconds)
        .about(
            "A session timeout that is no number, or negative, is refused, and the next client is served.",
            "A session without the limit that was asked for could last for ever.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-HELLO-021", Level::Should, "3.3.5", blanks).about(
        "Blanks ahead of the key, and several between the options, mean nothing.",
        "Options are put together by hand.",
    ),
    Case::server("SRV-HELLO-022", Level::Must, "3.5.1", broken_off)
        .about(
            "After connections that end in every part of the handshake, the next client is served.",
            "Port scans and health checks do just that.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-HELLO-023", Level::Should, "3.5.2", silent_one)
        .about(
            "While a connection says nothing, others are served.",
            "One forgotten connection must not take a device out of a farm.",
        )
        .tags(&[Tag::Alone]),
    Case::server("SRV-HELLO-024", Level::Should, "3.5.2", slow_one)
        .about(
            "While a connection has said half of its introduction, others are served.",
            "One slow client must not take a device out of a farm.",
        )
        .tags(&[Tag::Alone]),
    Case::server("SRV-HELLO-025", Level::Must, "3.1.7", length_in_bytes).about(
        "The length of a key that is not ASCII counts its bytes.",
        "Who counts characters takes the last bytes of the key for a packet.",
    ),
    Case::server("SRV-HELLO-026", Level::Must, "3.1.8", nothing_said).about(
        "A connection that ends without a word is closed without an answer.",
        "Health checks connect, and look no further.",
    ),
];

/// A connection on which these bytes were said.
fn said(server: &Server, bytes: &[u8]) -> Outcome<PacketWire> {
    let mut packets = server.connect()?;
    packets.wire.send_whole(bytes);
    Ok(packets)
}

fn own(server: &Server) -> Vec<u8> {
    introduction(server.client_key("").as_bytes())
}

/// Refused by the code for a mismatch or by an end; in any case the connection ends.
fn expect_refused(mut packets: PacketWire, check: &str) -> Outcome {
    let stage = packets.stage();
    let mismatch = HandshakeCode::MISMATCH.0.to_le_bytes();
    match packets.wire.read(4) {
        Ok(code) => {
            let holds = code == mismatch;
            let found = hex::encode(&code);
            stage.check(check, holds, "the code for a mismatch, or the end", found)?;
            packets.expect_end(check).map(drop)
        }
        Err(Shortfall::Ended(_)) => stage.passes(check),
        Err(short) => Err(stage.fail(check, "the code for a mismatch, or the end", short)),
    }
}

fn expect_ended(mut packets: PacketWire, check: &str) -> Outcome {
    let stage = packets.stage();
    match packets.wire.read(1) {
        Err(Shortfall::Ended(_)) => stage.passes(check),
        Err(short) => Err(stage.fail(check, "the end of the connection", short)),
        Ok(byte) => Err(stage.fail(check, "the end of the connection", hex::encode(byte))),
    }
}

/// A connection that was accepted can be used.
fn expect_session(mut packets: PacketWire) -> Outcome {
    packets.expect_accepted("accepted")?;
    opened(packets, "init")?.shut_down()
}

fn accepted(server: &Server) -> Outcome {
    expect_session(said(server, &own(server))?)
}

fn key_of_the_server(server: &Server) -> Outcome {
    let key = said(server, &own(server))?.expect_accepted("accepted")?;
    let holds = key.starts_with("server:");
    server.stage.check(
        "key",
        holds,
        "a key that begins with server:",
        format_args!("{key:?}"),
    )
}

fn nothing_behind(server: &Server) -> Outcome {
    let mut packets = said(server, &own(server))?;
    packets.expect_accepted("accepted")?;
    packets.expect_quiet("nothing-behind")?;
    packets.send(&Packet::init(std::iter::empty().collect()))?;
    packets.packet("init")?;
    packets.expect_quiet("nothing-behind-init")?;
    packets.send(&Packet::Shutdown)?;
    packets.expect_end("shutdown").map(drop)
}

fn wrong_magic(server: &Server) -> Outcome {
    // Another word, the tracker's, its own the other way round, and HTTP.
    for magic in [
        [0x78, 0x56, 0x34, 0x12],
        [0x71, 0xf2, 0x02, 0],
        [0, 0x0f, 0xf2, 0x71],
        *b"GET ",
    ] {
        let mut bytes = own(server);
        bytes[..4].copy_from_slice(&magic);
        expect_ended(
            said(server, &bytes)?,
            &format!("closed-{}", hex::encode(magic)),
        )?;
    }
    Ok(())
}

fn cut_everywhere(server: &Server) -> Outcome {
    let bytes = own(server);
    for cut in 1..bytes.len() {
        let mut packets = server.connect()?;
        packets.wire.send_split(&bytes, cut);
        packets.expect_accepted(&format!("cut-at-{cut}"))?;
    }
    Ok(())
}

fn byte_by_byte(server: &Server) -> Outcome {
    let mut packets = server.connect()?;
    packets.wire.send_in_pieces(&own(server), 1);
    expect_session(packets)
}

fn with_the_first_packet(server: &Server) -> Outcome {
    let init = Packet::init(std::iter::empty().collect());
    let first = encode(&init, &[], server.dialect)?;
    let mut packets = said(server, &[own(server), first].concat())?;
    packets.expect_accepted("accepted")?;
    packets.packet("init")?;
    packets.send(&Packet::Shutdown)?;
    packets.expect_end("shutdown").map(drop)
}

fn with_length(length: i32) -> Vec<u8> {
    [RPC_MAGIC.to_le_bytes(), length.to_le_bytes()].concat()
}

fn negative_length(server: &Server) -> Outcome {
    expect_refused(said(server, &with_length(-1))?, "refused")?;
    server.expect_alive()
}

fn huge_length(server: &Server) -> Outcome {
    expect_refused(said(server, &with_length(i32::MAX))?, "refused")?;
    server.expect_alive()
}

fn long_key(server: &Server) -> Outcome {
    let key = server.client_key(&format!(" -{}", "x".repeat(200)));
    let padded = format!("{key:x<256}");
    expect_session(said(server, &introduction(padded.as_bytes()))?)
}

fn own_key(server: &Server) -> Outcome {
    server.session()?.shut_down()
}

fn other_key(server: &Server) -> Outcome {
    let mut packets = said(server, &introduction(b"client:another-key"))?;
    packets.expect_code("mismatch", HandshakeCode::MISMATCH)?;
    expect_ended(packets, "closed")
}

fn part_of_the_key(server: &Server) -> Outcome {
    let key = &server.key;
    let mut shorter = key.clone();
    shorter.pop();
    let parts = [
        shorter,
        format!("{key}x"),
        String::new(),
        key.to_uppercase(),
    ];
    for part in parts.into_iter().filter(|part| part != key) {
        let part = format!("client:{part}");
        let packets = said(server, &introduction(part.as_bytes()))?;
        expect_refused(packets, &format!("refused-{part:?}"))?;
    }
    Ok(())
}

fn not_a_client(server: &Server) -> Outcome {
    let key = &server.key;
    for key in [
        key.clone(),
        format!("server:{key}"),
        format!("Client:{key}"),
        format!("client {key}"),
    ] {
        let packets = said(server, &introduction(key.as_bytes()))?;
        expect_refused(packets, &format!("refused-{key:?}"))?;
        server.expect_alive()?;
    }
    Ok(())
}

fn not_utf8(server: &Server) -> Outcome {
    expect_refused(said(server, &introduction(b"client:\xff\xfe"))?, "refused")?;
    server.expect_alive()
}

fn empty_and_blank(server: &Server) -> Outcome {
    for key in [&b""[..], b" ", b"   "] {
        let check = format!("refused-{}-blanks", key.len());
        expect_refused(said(server, &introduction(key))?, &check)?;
        server.expect_alive()?;
    }
    Ok(())
}

fn expect_options(server: &Server, options: &[&str]) -> Outcome {
    options.iter().try_for_each(|options| {
        let key = server.client_key(options);
        expect_session(said(server, &introduction(key.as_bytes()))?)
    })
}

fn unknown_options(server: &Server) -> Outcome {
    expect_options(
        server,
        &[" -color=red", " -x", " word", " -timeout=60 -color=red"],
    )
}

fn whole_seconds(server: &Server) -> Outcome {
    expect_options(server, &[" -timeout=60", " -timeout=1000000"])
}

fn decimal_seconds(server: &Server) -> Outcome {
    expect_options(
        server,
        &[
            " -timeout=60.0",
            " -timeout=7.25",
            " -timeout=1e3",
            " -timeout=1.5e+02",
        ],
    )
}

/// A server may have accepted before it looks at the options.
fn expect_options_refused(mut packets: PacketWire, check: &str) -> Outcome {
    const EXPECTED: &str = "the code for a mismatch, or the end";
    let stage = packets.stage();
    match packets.wire.read(4) {
        Ok(code) if code == HandshakeCode::SUCCESS.0.to_le_bytes() => {
            match packets.wire.read_to_end() {
                Shortfall::Ended(_) => stage.passes(check),
                short => Err(stage.fail(check, "the end behind the server's key", short)),
            }
        }
        Ok(code) => {
            let holds = code == HandshakeCode::MISMATCH.0.to_le_bytes();
            stage.check(check, holds, EXPECTED, hex::encode(&code))?;
            expect_ended(packets, check)
        }
        Err(Shortfall::Ended(_)) => stage.passes(check),
        Err(short) => Err(stage.fail(check, EXPECTED, short)),
    }
}

fn no_seconds(server: &Server) -> Outcome {
    for timeout in ["-1", "abc", "", "nan", "1s"] {
        let key = server.client_key(&format!(" -timeout={timeout}"));
        let packets = said(server, &introduction(key.as_bytes()))?;
        expect_options_refused(packets, &format!("timeout-{timeout:?}"))?;
        expect_session(said(server, &own(server))?)?;
    }
    Ok(())
}

fn blanks(server: &Server) -> Outcome {
    let keys = [
        server.client_key("   -timeout=60   -x "),
        format!("  {}", server.client_key("")),
    ];
    keys.iter()
        .try_for_each(|key| expect_session(said(server, &introduction(key.as_bytes()))?))
}

fn broken_off(server: &Server) -> Outcome {
    let bytes = own(server);
    for end in [0, 2, 4, 6, 8, bytes.len() - 1] {
        drop(said(server, &bytes[..end])?);
        server.expect_alive()?;
    }
    // And one that goes after it was accepted.
    let mut packets = said(server, &bytes)?;
    packets.expect_accepted("accepted")?;
    drop(packets);
    server.expect_alive()
}

fn silent_one(server: &Server) -> Outcome {
    let _silent = server.connect()?;
    server.expect_alive()
}

fn slow_one(server: &Server) -> Outcome {
    let bytes = own(server);
    let _slow = said(server, &bytes[..bytes.len() - 1])?;
    server.expect_alive()
}

fn length_in_bytes(server: &Server) -> Outcome {
    // Four bytes more than there are characters, as many as the length of a packet might be cut by.
    let key = server.client_key(" -größe=größe");
    expect_session(said(server, &introduction(key.as_bytes()))?)?;
    let mut packets = said(server, &introduction("client:größe".as_bytes()))?;
    packets.expect_code("mismatch", HandshakeCode::MISMATCH)?;
    expect_ended(packets, "closed")
}

fn nothing_said(server: &Server) -> Outcome {
    let mut packets = server.connect()?;
    packets.wire.finish();
    expect_ended(packets, "closed")?;
    server.expect_alive()
}
