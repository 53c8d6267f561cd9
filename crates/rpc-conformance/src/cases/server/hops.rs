//! Sessions on the next server: how they begin and end: `SRV-HOP-0`.

use std::time::Duration;

use rpc_proto::codes::{HandshakeCode, SESSION_TIMEOUT_PREFIX};
use rpc_proto::{OwnedValue, Packet, Value, Values};

use super::hop::{Hop, open, to_next};
use crate::case::{Case, Level, Tag};
use crate::roles::Server;
use crate::roles::server::Session;
use crate::stage::{Outcome, Stop};

pub(super) const CASES: &[Case] = &[
    Case::server("SRV-HOP-001", Level::Must, "6.3.1", next_is_asked).about(
        "`rpc.Connect` opens a session on the next server, as a client with that key.",
        "Devices behind a gateway are reached so.",
    ),
    Case::server("SRV-HOP-002", Level::Must, "6.3.2", options_behind_the_key).about(
        "A session timeout behind the match key reaches the next server.",
        "The limit is that of the device, wherever it is.",
    ),
    Case::server("SRV-HOP-003", Level::Must, "6.3.2", whole_key).about(
        "Whatever stands behind the match key reaches the next server.",
        "Options that this server does not know may be known there.",
    ),
    Case::server("SRV-HOP-004", Level::Must, "6.3.3", constructor_for_next).about(
        "What stands behind the fourth argument is what the next server is asked to construct.",
        "A chain has as many servers as one likes.",
    ),
    Case::server("SRV-HOP-005", Level::Must, "6.3.4", answer_waits).about(
        "The init packet is answered after the next server has answered.",
        "A client that is told too early sends requests to nobody.",
    ),
    Case::server("SRV-HOP-006", Level::Must, "6.3.5", nobody_there).about(
        "A next server that cannot be reached is told by an exception.",
        "Addresses are wrong, and devices are switched off.",
    ),
    Case::server("SRV-HOP-007", Level::Must, "6.3.5", refused_by_next).about(
        "A next server that refuses the handshake is told by an exception.",
        "Keys are wrong, and devices are taken.",
    ),
    Case::server("SRV-HOP-008", Level::Must, "6.3.5", failed_in_next).about(
        "An exception of the next server's constructor is told, with its text.",
        "It says what is wrong at the far end of the chain.",
    ),
    Case::server("SRV-HOP-009", Level::Must, "6.3.5", closed_by_next)
        .about(
            "A next server that closes instead of answering is told by an exception.",
            "Devices crash.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-HOP-010", Level::Must, "6.3.13", goodbye_passes).about(
        "When the client says that it shuts down, the next server's session ends.",
        "Else the device stays taken.",
    ),
    Case::server("SRV-HOP-011", Level::Must, "6.3.13", end_passes).about(
        "When the client goes without a word, the next server's session ends.",
        "Else the device stays taken.",
    ),
    Case::server("SRV-HOP-012", Level::Should, "6.3.14", next_vanishes)
        .about(
            "When the next server goes while it has a request, the client gets an exception or the end.",
            "A client that waits for an answer must not wait for ever.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-HOP-013", Level::Must, "6.3.12", timeout_is_told).about(
        "The exception by which the next server ends a session at its time limit keeps its first words.",
        "Clients know that exception by them.",
    ),
    Case::server("SRV-HOP-014", Level::May, "6.3.15", through_itself)
        .about(
            "A server can be the next server of itself, twice.",
            "Three sessions on one server show that a chain is only sessions.",
        )
        .functions(&["testing.echo"])
        .tags(&[Tag::Alone]),
    Case::server("SRV-HOP-015", Level::Should, "6.3.16", wrong_arguments)
        .about(
            "`rpc.Connect` with arguments of the wrong type, or too few, is answered by an exception.",
            "A client with a mistake must learn of it.",
        )
        .tags(&[Tag::Hostile]),
];

fn next_is_asked(server: &Server) -> Outcome {
    let next = server.listening("the next server")?;
    let mut session = open(server, to_next(&next, "next-key", vec![]))?;
    let arrived = next.arrival("connects")?;
    arrived.expect_key("key", "client:next-key")?;
    let mut served = arrived.accept("next-key");
    let constructor = served.init("init")?;
    let found = format!("{constructor:?}");
    server
        .stage
        .check("local", constructor.is_empty(), "no constructor", found)?;
    served.void()?;
    session.expect_void("opened")
}

/// The key with which the next server is asked.
fn key_at_next(server: &Server, key: &str) -> Outcome<crate::roles::served::Arrived> {
    let next = server.listening("the next server")?;
    let _session = open(server, to_next(&next, key, vec![]))?;
    next.arrival("connects")
}

fn options_behind_the_key(server: &Server) -> Outcome {
    for (option, seconds) in [("-timeout=60", 60.0), ("-timeout=0.5", 0.5)] {
        let arrived = key_at_next(server, &format!("next-key {option}"))?;
        let stage = &server.stage;
        let found = arrived.match_key();
        stage.check(
            "match-key",
            found == Some("next-key"),
            "next-key",
            format_args!("{found:?}"),
        )?;
        let given = arrived.options().into_iter().find_map(|option| {
            let number: f64 = option.strip_prefix("-timeout=")?.parse().ok()?;
            Some(number)
        });
        let holds = given.is_some_and(|given| (given - seconds).abs() < 1e-9);
        stage.check(option, holds, option, format_args!("{:?}", arrived.key))?;
    }
    Ok(())
}

fn whole_key(server: &Server) -> Outcome {
    let arrived = key_at_next(server, "next-key -color=red -timeout=60")?;
    arrived.expect_key("all-of-it", "client:next-key -color=red -timeout=60")
}

fn constructor_for_next(server: &Server) -> Outcome {
    let chains: [Vec<OwnedValue>; 3] = [
        vec!["rpc.LocalSession".into()],
        vec![
            "rpc.Connect".into(),
            "10.1.2.3".into(),
            9090.into(),
            "third".into(),
            false.into(),
        ],
        vec![
            "conformance.Session".into(),
            Value::None,
            (-5).into(),
            2.5.into(),
            true.into(),
            "text".into(),
            "a longer text".into(),
            vec![1, 2, 3].into(),
            vec![7; 30].into(),
        ],
    ];
    for chain in chains {
        let next = server.listening("the next server")?;
        let mut session = open(server, to_next(&next, "next-key", chain.clone()))?;
        let mut served = next.shaken("connects", "next-key")?;
        let found = served.init("init")?;
        let holds = *found == *chain;
        let expected = format!("{chain:?}");
        server
            .stage
            .check("as-given", holds, expected, format_args!("{found:?}"))?;
        served.void()?;
        session.expect_void("opened")?;
    }
    Ok(())
}

fn answer_waits(server: &Server) -> Outcome {
    let next = server.listening("the next server")?;
    let mut session = open(server, to_next(&next, "next-key", vec![]))?;
    let arrived = next.arrival("connects")?;
    session.packets.expect_quiet("before-the-handshake")?;
    let mut served = arrived.accept("next-key");
    served.init("init")?;
    session.packets.expect_quiet("before-the-answer")?;
    served.void()?;
    session.expect_void("opened")
}

fn nobody_there(server: &Server) -> Outcome {
    // A port on which nobody listens any more.
    let next = server.listening("nobody")?;
    let constructor = to_next(&next, "next-key", vec![]);
    drop(next);
    let mut session = open(server, constructor)?;
    session.expect_exception("told").map(drop)
}

fn refused_by_next(server: &Server) -> Outcome {
    let codes = [
        HandshakeCode::MISMATCH,
        HandshakeCode::DUPLICATE,
        HandshakeCode(7),
    ];
    for code in codes {
        let next = server.listening("the next server")?;
        let mut session = open(server, to_next(&next, "next-key", vec![]))?;
        next.arrival("connects")?.refuse(code);
        session.expect_exception(&format!("told-of-{:#x}", code.0))?;
    }
    Ok(())
}

fn failed_in_next(server: &Server) -> Outcome {
    let next = server.listening("the next server")?;
    let mut session = open(server, to_next(&next, "next-key", vec!["no.Such".into()]))?;
    let mut served = next.shaken("connects", "next-key")?;
    served.init("init")?;
    served.exception("there is no such constructor here")?;
    let text = session.expect_exception("told")?;
    let holds = text.contains("there is no such constructor here");
    server
        .stage
        .check("its-text", holds, "the text of the next server", text)
}

fn closed_by_next(server: &Server) -> Outcome {
    let next = server.listening("the next server")?;
    let mut session = open(server, to_next(&next, "next-key", vec![]))?;
    drop(next.arrival("connects")?);
    session.expect_exception("in-the-handshake")?;
    drop(session);
    let mut session = open(server, to_next(&next, "next-key", vec![]))?;
    let mut served = next.shaken("connects-again", "next-key")?;
    served.init("init")?;
    drop(served);
    session.expect_exception("at-init").map(drop)
}

fn goodbye_passes(server: &Server) -> Outcome {
    let mut hop = Hop::new(server)?;
    hop.session.packets.send(&Packet::Shutdown)?;
    hop.next.expect_end("next-session-ends")?;
    hop.session.packets.expect_end("session-ends").map(drop)
}

fn end_passes(server: &Server) -> Outcome {
    let (session, mut next) = Hop::new(server)?.into_ends();
    drop(session);
    next.expect_end("next-session-ends").map(drop)
}

fn call_of(function: u64, argument: i64) -> Packet<'static> {
    Packet::Call {
        function,
        args: Values::from_iter([Value::Int(argument)]),
        bulk: None,
    }
}

fn next_vanishes(server: &Server) -> Outcome {
    let mut hop = Hop::new(server)?;
    hop.expect_passed("call", &call_of(7, 1), &[])?;
    let (mut session, next) = hop.into_ends();
    drop(next);
    session.expect_refused("told").map(drop)
}

fn timeout_is_told(server: &Server) -> Outcome {
    let mut hop = Hop::new(server)?;
    let text = format!("{SESSION_TIMEOUT_PREFIX}Your session has expired");
    hop.expect_passed("call", &call_of(7, 1), &[])?;
    hop.next.exception(&text)?;
    let found = hop.session.expect_exception("told")?;
    let holds = found.starts_with(&text);
    server.stage.check("first-words", holds, text, found)
}

/// Whether it serves several sessions at a time. Where it does not, asking it for a session on itself
/// would make it wait for itself.
fn serves_many(server: &Server) -> Outcome<bool> {
    let mut first = server.session()?;
    let second = server.apart(Duration::from_millis(500));
    let many = second.session().is_ok();
    first.shut_down()?;
    Ok(many)
}

fn through_itself(server: &Server) -> Outcome {
    if !serves_many(server)? {
        return Err(Stop::Unsupported(
            "it serves one session at a time".to_owned(),
        ));
    }
    let host = server.addr().ip().to_string();
    let hop = || -> Vec<OwnedValue> {
        let port = i64::from(server.addr().port());
        let key = Value::from(server.key.clone());
        vec![
            "rpc.Connect".into(),
            Value::from(host.clone()),
            port.into(),
            key,
            false.into(),
        ]
    };
    let chain = [hop(), hop()].concat();
    let mut session = open(server, Values::from_iter(chain))?;
    session.expect_void("opened")?;
    let echo = session.function("testing.echo")?;
    session.expect_call("through-two", echo, vec!["far".into()], &Value::from("far"))?;
    session.free("freed", echo)?;
    session.shut_down()
}

/// Asks for a next server in a way that cannot be.
fn expect_not_asked(server: &Server, check: &str, args: Vec<OwnedValue>) -> Outcome {
    let named = std::iter::once(Value::from("rpc.Connect"));
    let mut session: Session = open(server, named.chain(args).collect())?;
    session.expect_exception(check).map(drop)
}

fn wrong_arguments(server: &Server) -> Outcome {
    // Somebody listens there, so that nothing but the arguments can be refused.
    let next = server.listening("the next server")?;
    let [host, port] = [next.host().into(), Value::Int(next.port().into())];
    let key = || Value::from("next-key");
    let no = || Value::Bool(false);
    expect_not_asked(
        server,
        "host-is-a-number",
        vec![1.into(), port.clone(), key(), no()],
    )?;
    expect_not_asked(
        server,
        "port-is-a-text",
        vec![host.clone(), "x".into(), key(), no()],
    )?;
    expect_not_asked(
        server,
        "key-is-none",
        vec![host.clone(), port.clone(), Value::None, no()],
    )?;
    expect_not_asked(
        server,
        "port-is-too-high",
        vec![host.clone(), 70_000.into(), key(), no()],
    )?;
    expect_not_asked(server, "no-key", vec![host.clone(), port])?;
    expect_not_asked(server, "no-port", vec![host])?;
    expect_not_asked(server, "nothing", vec![])
}
