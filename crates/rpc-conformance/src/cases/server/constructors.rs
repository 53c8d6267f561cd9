//! How a session is opened: `SRV-INIT-`.

use rpc_proto::codes::PROTOCOL_VERSION;
use rpc_proto::{DataType, Device, Packet, Shape, Syscall, TensorView, Value};

use super::by_hand as hand;
use super::exchange::Refused;
use crate::case::{Case, Level, Tag};
use crate::roles::Server;
use crate::roles::server::Session;
use crate::stage::Outcome;

const LOCAL: &str = "rpc.LocalSession";

pub(super) const CASES: &[Case] = &[
    Case::server("SRV-INIT-001", Level::Must, "6.1.1", without_constructor).about(
        "An init packet without a constructor opens a session of the server itself.",
        "So nearly all clients begin.",
    ),
    Case::server("SRV-INIT-002", Level::Must, "6.2.1", local_by_name).about(
        "`rpc.LocalSession` by name opens the same session, in each spelling of the text.",
        "Clients name it where they build a chain of constructors.",
    ),
    Case::server("SRV-INIT-003", Level::Must, "6.1.2", other_version).about(
        "An init packet of another version is answered by an exception.",
        "What would follow cannot be read.",
    ),
    Case::server("SRV-INIT-004", Level::Must, "6.1.3", right_version_after).about(
        "After an init packet of another version, one of the right version opens the session.",
        "A client that knows several versions tries one after the other.",
    ),
    Case::server("SRV-INIT-005", Level::Must, "6.1.4", only_once).about(
        "A second init packet is answered by an exception, and the session goes on as it was.",
        "A session that starts anew has forgotten the client's handles.",
    )
    .functions(&["rpc.test.add_to_lhs"]),
    Case::server("SRV-INIT-006", Level::Must, "6.1.5", syscalls_before).about(
        "Syscalls before the session is open are refused, and it can be opened afterwards.",
        "There is nothing yet that could do them.",
    ),
    Case::server("SRV-INIT-007", Level::Should, "6.1.6", calls_before)
        .about(
            "Calls and copies before the session is open are refused by an exception, and it can be opened.",
            "A client that is out of step has to learn why.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-INIT-008", Level::Must, "6.2.2", unknown_constructor).about(
        "A constructor that the server does not have is answered by an exception.",
        "A client must not go on in a session of another kind.",
    ),
    Case::server("SRV-INIT-009", Level::Should, "6.2.3", name_is_told).about(
        "The exception names the constructor that there is not.",
        "It is one of several in a chain.",
    ),
    Case::server("SRV-INIT-010", Level::Should, "6.2.4", again_after_failure).about(
        "After a constructor that failed, another init packet on the same connection is taken.",
        "A client can fall back to a local session.",
    ),
    Case::server("SRV-INIT-011", Level::Must, "6.2.5", too_many_arguments).about(
        "Arguments that a constructor does not take are answered by an exception.",
        "What a client asks for and does not get, it has to know.",
    ),
    Case::server("SRV-INIT-012", Level::Must, "6.2.6", no_name).about(
        "A constructor whose name is no text is refused.",
        "A number or nothing names no constructor.",
    ),
    Case::server("SRV-INIT-013", Level::Must, "6.2.2", ordinary_function)
        .about(
            "A function that makes no session is no constructor, and is answered by an exception.",
            "A session without anything behind it fails at its first request.",
        )
        .functions(&["rpc.test.addone"]),
    Case::server("SRV-INIT-014", Level::Must, "6.1.1", nothing_unasked).about(
        "Nothing comes before the init packet is sent, and one answer after it.",
        "Whatever comes first is taken for the answer.",
    ),
    Case::server("SRV-INIT-015", Level::Should, "6.2.8", no_program)
        .about(
            "`rpc.PopenSession` with a program that there is not is answered by an exception.",
            "A client that waits for an answer must not wait for ever.",
        )
        .tags(&[Tag::Hostile]),
];

fn open(server: &Server) -> Outcome<Session> {
    let packets = server.shaken("")?;
    Ok(Session { packets })
}

fn init(session: &mut Session, constructor: &[Vec<u8>]) {
    session
        .packets
        .wire
        .send(&hand::init(PROTOCOL_VERSION, constructor));
}

fn expect_open(session: &mut Session, check: &str) -> Outcome {
    session.expect_void(check)?;
    session.expect_goes_on(check)
}

fn text(text: &str) -> Vec<u8> {
    hand::boxed(hand::STR, hand::STR, text.as_bytes())
}

fn without_constructor(server: &Server) -> Outcome {
    let mut session = open(server)?;
    init(&mut session, &[]);
    expect_open(&mut session, "opened")?;
    session.shut_down()
}

fn local_by_name(server: &Server) -> Outcome {
    for (spelling, name) in hand::texts(LOCAL) {
        let mut session = open(server)?;
        init(&mut session, &[name]);
        expect_open(&mut session, spelling)?;
        session.shut_down()?;
    }
    Ok(())
}

const VERSIONS: [&str; 5] = ["0.7.0", "", "0.8.0-extra", "0.8.", "1"];

fn other_version(server: &Server) -> Outcome {
    for version in VERSIONS {
        let mut session = open(server)?;
        session.packets.wire.send(&hand::init(version, &[]));
        session.expect_exception(&format!("version-{version:?}"))?;
    }
    Ok(())
}

fn right_version_after(server: &Server) -> Outcome {
    let mut session = open(server)?;
    for version in VERSIONS {
        session.packets.wire.send(&hand::init(version, &[]));
        session.expect_exception(&format!("version-{version:?}"))?;
    }
    init(&mut session, &[]);
    expect_open(&mut session, "opened")
}

fn only_once(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let maker = session.function("rpc.test.add_to_lhs")?;
    let add_ten = session.function_of("made", maker, vec![10.into()])?;
    init(&mut session, &[]);
    session.expect_exception("second-init")?;
    init(&mut session, &[text(LOCAL)]);
    session.expect_exception("third-init")?;
    session.expect_call("handle-stays", add_ten, vec![1.into()], &Value::Int(11))
}

fn syscalls_before(server: &Server) -> Outcome {
    let mut session = open(server)?;
    let device = Device::cpu(0);
    let requests = [
        (
            "look-up",
            Syscall::GetGlobalFunc {
                name: "testing.echo".into(),
            },
        ),
        (
            "attribute",
            Syscall::GetAttr {
                device,
                attr: rpc_proto::DeviceAttr::EXIST,
            },
        ),
        ("stream", Syscall::CreateStream { device }),
    ];
    for (check, request) in requests {
        session.packets.send(&Packet::Syscall(request))?;
        session.expect_exception(check)?;
    }
    init(&mut session, &[]);
    expect_open(&mut session, "opened")
}

fn calls_before(server: &Server) -> Outcome {
    let tensor = TensorView {
        data: 0,
        device: Device::cpu(0),
        dtype: DataType::UINT8,
        shape: Shape::from(&[4][..]),
        byte_offset: 0,
    };
    let call = hand::call(1, &[]);
    let mut session = open(server)?;
    session.packets.wire.send(&call);
    session.expect_exception("call")?;
    let nbytes = 4;
    let from = Packet::CopyFrom {
        tensor: tensor.clone(),
        nbytes,
    };
    session.packets.send(&from)?;
    session.expect_exception("copy-from")?;
    session
        .packets
        .send_with(&Packet::CopyTo { tensor, nbytes }, &[1, 2, 3, 4])?;
    session.expect_exception("copy-to")?;
    init(&mut session, &[]);
    expect_open(&mut session, "opened")
}

const UNKNOWN: &str = "conformance.NoSuchSession";

fn unknown_constructor(server: &Server) -> Outcome {
    let named = [text(UNKNOWN), hand::int(1), text("an argument")];
    for (check, constructor) in [("unknown", &named[..]), ("empty-name", &[text("")])] {
        let mut session = open(server)?;
        init(&mut session, constructor);
        session.expect_exception(check)?;
    }
    Ok(())
}

fn name_is_told(server: &Server) -> Outcome {
    let mut session = open(server)?;
    init(&mut session, &[text(UNKNOWN)]);
    let why = session.expect_exception("refused")?;
    session
        .stage()
        .check("named", why.contains(UNKNOWN), "the name", why)
}

fn again_after_failure(server: &Server) -> Outcome {
    let mut session = open(server)?;
    init(&mut session, &[text(UNKNOWN)]);
    session.expect_exception("refused")?;
    init(&mut session, &[text(LOCAL), hand::int(1)]);
    session.expect_exception("refused-again")?;
    init(&mut session, &[]);
    expect_open(&mut session, "opened")
}

fn too_many_arguments(server: &Server) -> Outcome {
    for (check, extra) in [("integer", hand::int(1)), ("text", text("x"))] {
        let mut session = open(server)?;
        init(&mut session, &[text(LOCAL), extra]);
        session.expect_exception(check)?;
    }
    Ok(())
}

fn no_name(server: &Server) -> Outcome {
    for (check, value) in [("integer", hand::int(1)), ("none", hand::none())] {
        let mut session = open(server)?;
        init(&mut session, &[value]);
        let refused = session.expect_refused(check)?;
        if let Refused::Exception(_) = refused {
            // Then it has no session, and says so.
            session
                .packets
                .send(&Packet::Syscall(Syscall::GetGlobalFunc {
                    name: "testing.echo".into(),
                }))?;
            session.expect_refused(&format!("{check}-opened-nothing"))?;
        }
    }
    Ok(())
}

fn ordinary_function(server: &Server) -> Outcome {
    let mut session = open(server)?;
    init(&mut session, &[text("rpc.test.addone"), hand::int(1)]);
    session.expect_exception("refused").map(drop)
}

fn nothing_unasked(server: &Server) -> Outcome {
    let mut session = open(server)?;
    session.packets.expect_quiet("before-init")?;
    init(&mut session, &[]);
    session.expect_void("opened")?;
    session.expect_goes_on("opened")?;
    session.packets.expect_quiet("one-answer")
}

fn no_program(server: &Server) -> Outcome {
    let mut session = open(server)?;
    init(
        &mut session,
        &[text("rpc.PopenSession"), text("/no/such/program")],
    );
    session.expect_exception("told").map(drop)
}
