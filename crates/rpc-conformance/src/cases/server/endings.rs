//! How sessions end: `SRV-END-`.

use rpc_proto::codes::PacketCode;
use rpc_proto::{DataType, Packet};

use super::by_hand::{self, int, packet, texts};
use crate::case::{Case, Level, Tag};
use crate::roles::Server;
use crate::roles::packets::encode;
use crate::roles::server::introduction;
use crate::stage::{Outcome, Stop};

pub(super) const CASES: &[Case] = &[
    Case::server("SRV-END-001", Level::Must, "8.1.1", shutdown).about(
        "After a shutdown the server closes the connection, and answers nothing.",
        "A client that waits for the end knows that its work is done.",
    ),
    Case::server("SRV-END-002", Level::Must, "8.1.1", shutdown_before_init).about(
        "A shutdown is taken also before the init packet.",
        "A client that changes its mind says so.",
    ),
    Case::server("SRV-END-003", Level::Must, "8.1.2", end_without_shutdown).about(
        "The end of the connection between two packets ends the session; the next client is served.",
        "Processes end without saying so.",
    ),
    Case::server("SRV-END-004", Level::Must, "8.1.3", requests_before_shutdown)
        .about(
            "Requests that came in one piece with the shutdown behind them are answered.",
            "What was asked for is done.",
        )
        .functions(&["testing.echo"]),
    Case::server("SRV-END-005", Level::Should, "8.1.5", half_closed)
        .about(
            "A client that has ended what it sends still gets the replies.",
            "A script that pipes its requests does that.",
        )
        .functions(&["testing.echo"]),
    Case::server("SRV-END-006", Level::Must, "8.1.4", one_after_the_other).about(
        "Twenty sessions in a row are all served.",
        "A tuning job has hundreds.",
    ),
    Case::server("SRV-END-007", Level::Must, "8.2.1", reset)
        .about(
            "After a connection that was reset, the next client is served.",
            "That is how a client looks that was killed.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-END-008", Level::Must, "8.2.2", end_in_a_length)
        .about(
            "After a connection that ended in the length of a packet, the next client is served.",
            "Processes are killed while they write.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-END-009", Level::Must, "8.2.2", end_in_a_packet)
        .about(
            "After a connection that ended in a packet, the next client is served.",
            "Processes are killed while they write.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-END-010", Level::Must, "8.2.2", end_in_a_copy)
        .about(
            "After a connection that ended in the bytes of a copy, the next client is served.",
            "Large copies are where connections break.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-END-011", Level::Must, "8.2.1", end_before_the_reply)
        .about(
            "After a connection that was reset before its replies were read, the next client is served.",
            "Writing to nobody is an error that a server has to expect.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-END-012", Level::Must, "8.2.1", reset_at_once)
        .about(
            "After connections that were reset before and behind the handshake, the next client is served.",
            "That is how a client looks that was killed.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-END-013", Level::Should, "8.2.5", memory_comes_back)
        .about(
            "Eight sessions that each leave 32 MiB behind are served, and the server has no more memory after them.",
            "Memory that a session keeps is missing in the next ones.",
        )
        .tags(&[Tag::Large, Tag::Alone]),
    Case::server("SRV-END-014", Level::Must, "8.1.1", shutdown_in_pieces).about(
        "A shutdown may be cut into two pieces at every byte.",
        "Where a stream is cut is not in the hands of who writes to it.",
    ),
    Case::server("SRV-END-015", Level::Must, "8.1.6", in_the_queue)
        .about(
            "A client that comes during a session is served, at the latest when that has ended.",
            "Clients that share a key wait for each other in the server's queue.",
        )
        .tags(&[Tag::Alone]),
    Case::server("SRV-END-016", Level::Must, "8.1.1", nothing_behind_shutdown)
        .about(
            "What comes behind a shutdown is not answered.",
            "The session has ended, and with it what a request could ask for.",
        )
        .functions(&["testing.echo"]),
];

fn shutdown(server: &Server) -> Outcome {
    server.session()?.shut_down()
}

fn shutdown_before_init(server: &Server) -> Outcome {
    let mut packets = server.shaken("")?;
    packets.send(&Packet::Shutdown)?;
    packets.expect_end("shutdown").map(drop)
}

fn end_without_shutdown(server: &Server) -> Outcome {
    let mut session = server.session()?;
    session.packets.wire.finish();
    session.packets.expect_end("ended")?;
    drop(server.session()?);
    server.expect_alive()
}

fn requests_before_shutdown(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let echo = session.function("testing.echo")?;
    let calls: Vec<_> = (0..3)
        .map(|number| by_hand::call(echo, &[int(number)]))
        .collect();
    let shutdown = packet(PacketCode::SHUTDOWN, &[]);
    session
        .packets
        .wire
        .send_whole(&[calls.concat(), shutdown].concat());
    for number in 0..3 {
        let expected = [by_hand::result(by_hand::INT, int(number))];
        session.expect_bytes(&format!("reply-{number}"), "its number", &expected)?;
    }
    session.packets.expect_end("shutdown").map(drop)
}

fn half_closed(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let echo = session.function("testing.echo")?;
    session.packets.wire.send(&by_hand::call(
        echo,
        &[texts("last words").swap_remove(0).1],
    ));
    session.packets.wire.finish();
    session.expect_bytes("reply", "the text", &by_hand::text_results("last words"))?;
    session.packets.expect_end("ended").map(drop)
}

fn one_after_the_other(server: &Server) -> Outcome {
    (0..20).try_for_each(|_| server.session()?.shut_down())
}

fn reset(server: &Server) -> Outcome {
    for _ in 0..3 {
        server.session()?.packets.wire.reset();
        server.expect_alive()?;
    }
    Ok(())
}

fn cut_off(server: &Server, bytes: &[u8]) -> Outcome {
    let mut session = server.session()?;
    session.packets.wire.send_whole(bytes);
    drop(session);
    server.expect_alive()
}

fn end_in_a_length(server: &Server) -> Outcome {
    let call = by_hand::call(1, &[int(1)]);
    [1, 4, 7]
        .into_iter()
        .try_for_each(|cut| cut_off(server, &call[..cut]))
}

fn end_in_a_packet(server: &Server) -> Outcome {
    let call = by_hand::call(1, &[int(1)]);
    [8, 10, 12, 20, call.len() - 1]
        .into_iter()
        .try_for_each(|cut| cut_off(server, &call[..cut]))
}

fn end_in_a_copy(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let tensor = session.allocate(&[1 << 20], DataType::UINT8)?;
    let copy = Packet::CopyTo {
        tensor,
        nbytes: 1 << 20,
    };
    let bytes = encode(&copy, &vec![1; 1 << 20], server.dialect)?;
    session.packets.wire.send_whole(&bytes[..bytes.len() / 2]);
    drop(session);
    server.expect_alive()
}

fn end_before_the_reply(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let tensor = session.allocate(&[8 << 20], DataType::UINT8)?;
    for _ in 0..4 {
        session.packets.send(&Packet::CopyFrom {
            tensor: tensor.clone(),
            nbytes: 8 << 20,
        })?;
    }
    session.packets.wire.reset();
    server.expect_alive()
}

fn reset_at_once(server: &Server) -> Outcome {
    server.connect()?.wire.reset();
    server.expect_alive()?;
    server.shaken("")?.wire.reset();
    server.expect_alive()
}

fn memory_comes_back(server: &Server) -> Outcome {
    const LEN: usize = 32 << 20;
    const SESSIONS: u64 = 8;
    // Half of what they leave behind: allocators keep some for the next time.
    const MOST: u64 = SESSIONS * (LEN as u64 >> 10) / 2;
    let filling = vec![1; LEN];
    let leave_behind = || {
        let mut session = server.session()?;
        let tensor = session.allocate(&[LEN.try_into().unwrap_or(i64::MAX)], DataType::UINT8)?;
        session.upload("written", &tensor, &filling)?;
        session.shut_down()
    };
    // Who served once has what it needs for that.
    leave_behind()?;
    let before = server.running.used();
    (0..SESSIONS).try_for_each(|_| leave_behind())?;
    let Some((before, after)) = before.zip(server.running.used()) else {
        let why = "what a process has is known of one that the suite has started, on Linux";
        return Err(Stop::Unsupported(why.to_owned()));
    };
    let grown = after.memory.saturating_sub(before.memory);
    server.stage.check(
        "memory-comes-back",
        grown < MOST,
        format_args!("less than {MOST} KiB more"),
        format_args!("{grown} KiB more"),
    )
}

fn shutdown_in_pieces(server: &Server) -> Outcome {
    let shutdown = packet(PacketCode::SHUTDOWN, &[]);
    for cut in 1..shutdown.len() {
        let mut session = server.session()?;
        session.packets.wire.send_split(&shutdown, cut);
        session.packets.expect_end(&format!("cut-at-{cut}"))?;
    }
    Ok(())
}

fn in_the_queue(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let key = server.client_key("");
    let mut next = server.connect()?;
    next.wire.send_whole(&introduction(key.as_bytes()));
    session.look_up("conformance.no_such_function")?;
    session.shut_down()?;
    next.expect_accepted("next-is-accepted")?;
    let mut next = super::malformed::opened(next, "next-is-served")?;
    next.shut_down()
}

fn nothing_behind_shutdown(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let echo = session.function("testing.echo")?;
    let shutdown = packet(PacketCode::SHUTDOWN, &[]);
    let call = by_hand::call(echo, &[int(7)]);
    session.packets.wire.send_whole(&[shutdown, call].concat());
    session.packets.expect_end("shutdown").map(drop)
}
