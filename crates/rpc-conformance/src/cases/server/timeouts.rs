//! Session timeouts: `SRV-TIME-`.

use std::time::{Duration, Instant};

use rpc_proto::codes::{PacketCode, SESSION_TIMEOUT_PREFIX};
use rpc_proto::{DataType, Packet, Returned, Syscall, Value};

use crate::case::{Case, Level, Tag};
use crate::roles::Server;
use crate::roles::packets::NoPacket;
use crate::roles::server::Session;
use crate::stage::Outcome;
use crate::wire::Shortfall;

pub(super) const CASES: &[Case] = &[
    Case::server("SRV-TIME-001", Level::Must, "8.3.1", idle_session_ends)
        .about(
            "A session that does nothing ends when its timeout has passed.",
            "A client that hangs must not keep a device for ever.",
        )
        .tags(&[Tag::Slow]),
    Case::server("SRV-TIME-002", Level::Should, "8.3.2", says_why)
        .about(
            "Before it ends, the server says by an exception that the session has timed out.",
            "A client that is told can choose another timeout; one that is cut off looks for other faults.",
        )
        .tags(&[Tag::Slow]),
    Case::server("SRV-TIME-003", Level::Should, "8.3.4", busy_session_ends)
        .about(
            "A session ends at its timeout while a function runs that does not return.",
            "A kernel that hangs must not keep a device for ever.",
        )
        .functions(&["runtime.RPCTimeEvaluator", "rpc.test.addone"])
        .tags(&[Tag::Slow]),
    Case::server("SRV-TIME-004", Level::Must, "8.3.5", next_one_is_served)
        .about(
            "After a session that ended at its timeout the next client is served.",
            "That is what the timeout is for.",
        )
        .tags(&[Tag::Slow]),
    Case::server("SRV-TIME-005", Level::Must, "8.3.6", not_before)
        .about(
            "A session does not end before its timeout has passed.",
            "A measurement that is cut off is lost.",
        )
        .tags(&[Tag::Slow]),
    Case::server("SRV-TIME-006", Level::Must, "8.3.6", used_session_lasts)
        .about(
            "A session with a timeout of a minute serves requests like any other.",
            "Most clients of a farm name a timeout.",
        ),
    Case::server("SRV-TIME-007", Level::May, "8.3.7", zero_is_none).about(
        "A session timeout of 0 is none.",
        "A client whose user sets no limit can say so.",
    ),
    Case::server("SRV-TIME-008", Level::Must, "8.3.3", whole_packets)
        .about(
            "A session that is ended while replies are on their way is ended between two packets.",
            "An exception in the middle of a reply is read as data.",
        )
        .tags(&[Tag::Slow]),
    Case::server("SRV-TIME-009", Level::Should, "3.3.3", fractions)
        .about(
            "A session timeout of half a second is kept.",
            "Clients write what their users give them.",
        )
        .tags(&[Tag::Slow]),
    Case::server("SRV-TIME-010", Level::Must, "8.3.1", before_the_session)
        .about(
            "A connection without an init packet ends when its timeout has passed.",
            "A client that hangs between the two keeps a device as any other.",
        )
        .tags(&[Tag::Slow]),
    Case::server("SRV-TIME-011", Level::Must, "8.3.1", requests_do_not_help)
        .about(
            "A session in which request follows request ends when its timeout has passed.",
            "The timeout is the turn of one client, and others wait for theirs.",
        )
        .tags(&[Tag::Slow]),
    Case::server("SRV-TIME-012", Level::Should, "8.3.2", replies_come_first)
        .about(
            "Requests that were answered in time have their replies ahead of the exception.",
            "What was measured before the end is worth having.",
        )
        .functions(&["runtime.RPCTimeEvaluator", "rpc.test.addone"])
        .tags(&[Tag::Slow]),
    Case::server("SRV-TIME-013", Level::Should, "8.3.8", nothing_behind)
        .about(
            "Behind the exception that ends a session nothing comes but perhaps a shutdown.",
            "A client reads it as the last word.",
        )
        .tags(&[Tag::Slow]),
];

/// A timeout of a second, or more where the server is to be given more time.
fn seconds(server: &Server) -> u64 {
    (server.stage.conditions.step.as_secs() / 5).max(1)
}

fn timeout(server: &Server) -> String {
    format!(" -timeout={}", seconds(server))
}

/// Reads until the session ends; gives the text of the last exception.
fn expect_end(session: &mut Session, check: &str) -> Outcome<Option<String>> {
    let stage = session.stage();
    let mut last = None;
    loop {
        match session.packets.receive() {
            Ok(came) => {
                if let Packet::Exception { text } = came.packet {
                    last = Some(text.into_owned());
                }
            }
            Err(NoPacket::Short(Shortfall::Ended(_))) => {
                stage.passes(check)?;
                return Ok(last);
            }
            Err(none) => return Err(stage.fail(check, "the end of the session", none)),
        }
    }
}

fn idle_session_ends(server: &Server) -> Outcome {
    let mut session = server.constructed(&timeout(server), Vec::new())?;
    expect_end(&mut session, "ended").map(drop)
}

fn expect_reason(session: &mut Session) -> Outcome {
    let text = expect_end(session, "ended")?;
    let holds = text
        .as_ref()
        .is_some_and(|text| text.starts_with(SESSION_TIMEOUT_PREFIX));
    let expected = format!("an exception that begins with {SESSION_TIMEOUT_PREFIX:?}");
    session
        .stage()
        .check("reason", holds, expected, format_args!("{text:?}"))
}

fn says_why(server: &Server) -> Outcome {
    expect_reason(&mut server.constructed(&timeout(server), Vec::new())?)
}

/// A function that does not return before the session ends.
fn endless_function(session: &mut Session) -> Outcome<u64> {
    let evaluator = session.function("runtime.RPCTimeEvaluator")?;
    // So many runs that nobody lives to see the last one.
    let args = vec![
        Value::None,
        "rpc.test.addone".into(),
        Value::Int(1),
        Value::Int(0),
        Value::Int(i32::MAX.into()),
        Value::Int(1),
        Value::Int(0),
        Value::Int(0),
        Value::Int(0),
        Value::Int(1),
        Value::Int(0),
        "".into(),
    ];
    session.function_of("evaluator", evaluator, args)
}

fn busy_session_ends(server: &Server) -> Outcome {
    let mut session = server.constructed(&timeout(server), Vec::new())?;
    let endless = endless_function(&mut session)?;
    session.send_call(endless, vec![Value::Int(1)])?;
    expect_end(&mut session, "ended").map(drop)
}

fn next_one_is_served(server: &Server) -> Outcome {
    let mut session = server.constructed(&timeout(server), Vec::new())?;
    expect_end(&mut session, "ended")?;
    server.expect_alive()
}

/// Checks that a session ends, and not before its time.
fn expect_lasts(server: &Server, options: &str, least: Duration) -> Outcome {
    let began = Instant::now();
    let mut session = server.constructed(options, Vec::new())?;
    expect_end(&mut session, "ended")?;
    // From before the handshake until after the end: longer than what the server counts.
    let lasted = began.elapsed();
    server.stage.check(
        "lasted",
        lasted >= least,
        format_args!("at least {least:?}"),
        format_args!("{lasted:.2?}"),
    )
}

fn not_before(server: &Server) -> Outcome {
    expect_lasts(server, " -timeout=2", Duration::from_secs(2))
}

fn used_session_lasts(server: &Server) -> Outcome {
    let mut session = server.constructed(" -timeout=60", Vec::new())?;
    for _ in 0..10 {
        session.look_up("conformance.no_such_function")?;
    }
    session.shut_down()
}

fn zero_is_none(server: &Server) -> Outcome {
    let mut session = server.constructed(" -timeout=0", Vec::new())?;
    session.look_up("conformance.no_such_function")?;
    session.packets.expect_quiet("goes-on")?;
    session.shut_down()
}

fn whole_packets(server: &Server) -> Outcome {
    const LEN: u64 = 16 << 20;
    const FILLING: u8 = 0x5a;
    let mut session = server.constructed(&timeout(server), Vec::new())?;
    let tensor = session.allocate(&[LEN.cast_signed()], DataType::UINT8)?;
    session.upload("fill", &tensor, &vec![FILLING; 16 << 20])?;
    // More replies than there is room for: the server is in the middle of one when the time is up.
    for _ in 0..8 {
        session.packets.send(&Packet::CopyFrom {
            tensor: tensor.clone(),
            nbytes: LEN,
        })?;
    }
    std::thread::sleep(Duration::from_millis(seconds(server) * 1000 + 500));
    let is_filling = |bytes: &[u8]| bytes.iter().all(|&byte| byte == FILLING);
    let stage = session.stage();
    loop {
        match session.packets.receive() {
            Ok(came) => {
                let is_right = match came.packet {
                    Packet::CopyAck { nbytes } => nbytes == LEN && is_filling(&came.payload),
                    Packet::Exception { .. } | Packet::Shutdown => true,
                    _ => false,
                };
                let expected = "the bytes as they were written, an exception or a shutdown";
                session
                    .packets
                    .came_check("packet", is_right, expected, None, &came)?;
            }
            // A reply may be cut off by the end, but nothing else may be in it.
            Err(NoPacket::Short(Shortfall::Ended(_))) => {
                let unread = session.packets.wire.unread();
                let is_right = match unread.split_first_chunk::<12>() {
                    Some((head, bytes)) => {
                        head[8..] != PacketCode::COPY_ACK.0.to_le_bytes() || is_filling(bytes)
                    }
                    None => true,
                };
                let expected = "nothing but the bytes in the last reply";
                let found = "something else among them";
                return stage.check("last-packet", is_right, expected, found);
            }
            Err(none) => return Err(stage.fail("ended", "the end of the session", none)),
        }
    }
}

fn fractions(server: &Server) -> Outcome {
    expect_lasts(server, " -timeout=0.5", Duration::from_millis(500))
}

fn before_the_session(server: &Server) -> Outcome {
    let packets = server.shaken(&timeout(server))?;
    expect_end(&mut Session { packets }, "ended").map(drop)
}

fn requests_do_not_help(server: &Server) -> Outcome {
    const PAUSE: Duration = Duration::from_millis(50);
    // Far behind the timeout.
    let long = Duration::from_secs(seconds(server) * 4);
    let began = Instant::now();
    let mut session = server.constructed(&timeout(server), Vec::new())?;
    let stage = session.stage();
    while began.elapsed() < long {
        let name = "conformance.no_such_function".into();
        let request = Packet::Syscall(Syscall::GetGlobalFunc { name });
        session.packets.send(&request)?;
        match session.packets.receive() {
            Ok(came) if matches!(came.packet, Packet::Return(_)) => {}
            Ok(_) => return expect_end(&mut session, "ended").map(drop),
            Err(NoPacket::Short(Shortfall::Ended(_))) => return stage.passes("ended"),
            Err(none) => return Err(session.packets.no_packet("reply", "a packet", None, &none)),
        }
        std::thread::sleep(PAUSE);
    }
    let found = format_args!("replies for {long:?}");
    Err(stage.fail("ended", "the end of the session at its timeout", found))
}

fn replies_come_first(server: &Server) -> Outcome {
    const REPLIES: i64 = 3;
    let mut session = server.constructed(&timeout(server), Vec::new())?;
    let addone = session.function("rpc.test.addone")?;
    let endless = endless_function(&mut session)?;
    // All is asked before the first reply is read.
    for number in 0..REPLIES {
        session.send_call(addone, vec![Value::Int(number)])?;
    }
    session.send_call(endless, vec![Value::Int(1)])?;
    for number in 0..REPLIES {
        let check = format!("reply-{number}");
        let found = session.returned(&check)?;
        let holds = matches!(found, Returned::Value(Value::Int(value)) if value == number + 1);
        let found = format_args!("{found:?}").to_string();
        session.stage().check(&check, holds, number + 1, found)?;
    }
    expect_reason(&mut session)
}

fn nothing_behind(server: &Server) -> Outcome {
    let mut session = server.constructed(&timeout(server), Vec::new())?;
    loop {
        let came = session.packets.packet("packet")?;
        if matches!(came.packet, Packet::Exception { .. }) {
            return session.packets.expect_end("ended").map(drop);
        }
        let is_none = matches!(came.packet, Packet::Shutdown);
        let expected = "an exception";
        session
            .packets
            .came_check("nothing-ahead", is_none, expected, None, &came)?;
    }
}
