//! Session timeouts: `SRV-TIME-`.

use std::time::{Duration, Instant};

use rpc_proto::codes::SESSION_TIMEOUT_PREFIX;
use rpc_proto::{Packet, Value};

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
];

const TIMEOUT: &str = " -timeout=1";

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
                stage.check(check, true, "", "")?;
                return Ok(last);
            }
            Err(none) => return Err(stage.fail(check, "the end of the session", none)),
        }
    }
}

fn idle_session_ends(server: &Server) -> Outcome {
    let mut session = server.constructed(TIMEOUT, Vec::new())?;
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
    expect_reason(&mut server.constructed(TIMEOUT, Vec::new())?)
}

fn busy_session_ends(server: &Server) -> Outcome {
    let mut session = server.constructed(TIMEOUT, Vec::new())?;
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
    let timed = session.function_of("evaluator", evaluator, args)?;
    session.send_call(timed, vec![Value::Int(1)])?;
    expect_end(&mut session, "ended").map(drop)
}

fn next_one_is_served(server: &Server) -> Outcome {
    let mut session = server.constructed(TIMEOUT, Vec::new())?;
    expect_end(&mut session, "ended")?;
    server.expect_alive()
}

fn not_before(server: &Server) -> Outcome {
    let began = Instant::now();
    let mut session = server.constructed(" -timeout=2", Vec::new())?;
    expect_end(&mut session, "ended")?;
    // From before the handshake until after the end: longer than what the server counts.
    let lasted = began.elapsed();
    let holds = lasted >= Duration::from_secs(2);
    server.stage.check(
        "lasted",
        holds,
        "at least 2 s",
        format_args!("{lasted:.2?}"),
    )
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
    use rpc_proto::DataType;
    const LEN: u64 = 16 << 20;
    let mut session = server.constructed(TIMEOUT, Vec::new())?;
    let tensor = session.allocate(&[LEN.cast_signed()], DataType::UINT8)?;
    // More replies than there is room for: the server is in the middle of one when the time is up.
    for _ in 0..8 {
        session.packets.send(&Packet::CopyFrom {
            tensor: tensor.clone(),
            nbytes: LEN,
        })?;
    }
    std::thread::sleep(Duration::from_millis(1500));
    let stage = session.stage();
    loop {
        match session.packets.receive() {
            Ok(came) => {
                let whole = match came.packet {
                    Packet::CopyAck { nbytes } => nbytes == LEN,
                    Packet::Exception { .. } | Packet::Shutdown => true,
                    _ => false,
                };
                let expected = "the bytes, an exception or a shutdown";
                session
                    .packets
                    .came_check("packet", whole, expected, None, &came)?;
            }
            // A reply that is cut off by the end is no packet, but nothing else was in it.
            Err(NoPacket::Short(Shortfall::Ended(_))) => return stage.check("ended", true, "", ""),
            Err(none) => return Err(stage.fail("ended", "the end of the session", none)),
        }
    }
}

fn fractions(server: &Server) -> Outcome {
    let mut session = server.constructed(" -timeout=0.5", Vec::new())?;
    expect_end(&mut session, "ended").map(drop)
}
