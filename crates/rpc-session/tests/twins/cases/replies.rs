//! What the server answers, or fails to.

use rpc_proto::{DataType, Packet, Syscall, Value, Values};
use rpc_session::{SessionError, args};

use super::session::{finish, open};
use super::{Output, RemoteSession, bisync, twin_test};
use crate::support::talk::{encoded, encoded_returned};
use crate::support::{Server, Talk};

const FUNCTION: u64 = 10;

#[bisync]
#[twin_test]
async fn an_exception_costs_its_call_only() {
    let server = Server::start(|talk| {
        talk.function("f", FUNCTION);
        for text in ["abc", "ValueError: l1\nl2 é", ""] {
            talk.called(FUNCTION, []);
            talk.exception(text);
        }
        talk.called(FUNCTION, []);
        talk.value(1);
        talk.goodbye();
    });
    let session = open(&server).await;
    let function = session.function("f").await.unwrap();
    for text in ["abc", "ValueError: l1\nl2 é", ""] {
        let error = function.call(&[]).await.unwrap_err();
        assert_eq!(error.remote().unwrap().text(), text);
        assert!(!error.is_fatal());
    }
    assert!(matches!(function.call(&[]).await, Ok(Output::Int(1))));
    session.close().await;
    finish(server).await;
}

#[bisync]
#[twin_test]
async fn an_answer_that_cannot_be_understood_costs_its_call_only() {
    let two_values = Values::from_iter([Value::Int(1), Value::Int(2)]);
    let bad_answers = [
        // Nothing at all, as the result of a call.
        encoded(&Packet::void()),
        encoded(&Packet::Return(Values::default())),
        // An integer that is followed by something else.
        encoded(&Packet::Return(Values::from_iter([
            Value::Int(1),
            Value::Int(1),
            Value::Int(1),
        ]))),
        // Text that is none.
        encoded_returned(&rpc_proto::Returned::Value("x\u{e9}".into()))
            .iter()
            .map(|&byte| if byte == 0xc3 { 0xff } else { byte })
            .collect(),
    ];
    let count = bad_answers.len();
    let server = Server::start(move |talk| {
        talk.function("f", FUNCTION);
        for answer in bad_answers {
            talk.called(FUNCTION, []);
            talk.send(&answer);
        }
        let name = "g".into();
        talk.expect(&Packet::Syscall(Syscall::GetGlobalFunc { name }));
        talk.answer(&Packet::Return(two_values));
        talk.called(FUNCTION, []);
        talk.value(1);
        talk.goodbye();
    });
    let session = open(&server).await;
    let function = session.function("f").await.unwrap();
    for _ in 0..count {
        let error = function.call(&[]).await.unwrap_err();
        assert!(matches!(error, SessionError::Answer(_)), "{error:?}");
    }
    let found = session.get_function("g").await;
    assert!(matches!(found, Err(SessionError::Answer(_))), "{found:?}");
    assert!(matches!(function.call(&[]).await, Ok(Output::Int(1))));
    session.close().await;
    finish(server).await;
}

#[bisync]
#[twin_test]
async fn text_that_is_none_costs_its_call_only_also_as_a_payload() {
    let server = Server::start(|talk| {
        talk.function("f", FUNCTION);
        talk.called(FUNCTION, []);
        let mut answer = encoded_returned(&rpc_proto::Returned::Value("x".repeat(70_000).into()));
        *answer.last_mut().unwrap() = 0xff;
        talk.send(&answer);
        talk.called(FUNCTION, []);
        talk.value(1);
        talk.goodbye();
    });
    let session = open(&server).await;
    let function = session.function("f").await.unwrap();
    let error = function.call(&[]).await.unwrap_err();
    assert!(matches!(error, SessionError::Answer(_)), "{error:?}");
    assert!(matches!(function.call(&[]).await, Ok(Output::Int(1))));
    session.close().await;
    finish(server).await;
}

#[bisync]
#[twin_test]
async fn a_result_of_another_type_is_told_and_freed() {
    let server = Server::start(|talk| {
        talk.function("f", FUNCTION);
        talk.called(FUNCTION, []);
        talk.value(Value::Module(24));
        talk.called(FUNCTION, []);
        talk.value(1);
        talk.goodbye()
    });
    let session = open(&server).await;
    let function = session.function("f").await.unwrap();
    let error = i64::try_from(function.call(&[]).await.unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected an integer, the function returned a module"
    );
    function.call(&[]).await.unwrap();
    session.close().await;
    assert_eq!(finish(server).await, [24]);
}

/// What becomes of a session whose server sends `answer` to a copy of 8 bytes.
#[bisync]
async fn broken_by(answer: Vec<u8>) -> SessionError {
    let server = Server::start(move |talk| {
        talk.request();
        talk.pointer(0x2000);
        talk.function("tvm.rpc.server.GetCRTMaxPacketSize", 0);
        talk.request();
        talk.send(&answer);
        // The client closes the connection at once, and does not wait for its session to be dropped.
        talk.end();
    });
    let session = open(&server).await;
    let cpu = session.cpu(0);
    let tensor = cpu.empty(&[2], DataType::FLOAT32).await.unwrap();
    let error = tensor.copy_into(&mut [0.0_f32; 2]).await.unwrap_err();
    finish(server).await;
    assert!(error.is_fatal(), "{error}");
    // The session keeps its reason.
    let next = cpu.sync().await.unwrap_err();
    assert_eq!(next.to_string(), error.to_string());
    error
}

fn source(error: &SessionError) -> String {
    std::error::Error::source(error).unwrap().to_string()
}

#[bisync]
#[twin_test]
async fn a_copy_of_another_length_ends_the_session() {
    for nbytes in [7_u8, 9] {
        let mut answer = encoded(&Packet::CopyAck {
            nbytes: nbytes.into(),
        });
        answer.extend(vec![0; nbytes.into()]);
        let error = broken_by(answer).await;
        assert!(matches!(error, SessionError::Protocol { .. }), "{error:?}");
        assert_eq!(
            source(&error),
            format!("the peer sent {nbytes} bytes of a tensor, where 8 were asked for")
        );
    }
}

#[bisync]
#[twin_test]
async fn a_packet_that_answers_nothing_ends_the_session() {
    let error = broken_by(encoded(&Packet::void())).await;
    assert_eq!(
        source(&error),
        "unexpected return packet from the peer, where a copy ack or an exception was due"
    );
    let request = encoded(&Packet::init(Values::default()));
    let error = broken_by(request).await;
    assert!(matches!(error, SessionError::Protocol { .. }), "{error:?}");
}

#[bisync]
#[twin_test]
async fn bytes_that_are_no_packet_end_the_session() {
    for answer in [
        // An unknown code; no room for a code; more than anybody allows.
        &[4, 0, 0, 0, 0, 0, 0, 0, 99, 0, 0, 0][..],
        &[3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0],
        &[0xff; 12],
    ] {
        let error = broken_by(answer.to_vec()).await;
        assert!(matches!(error, SessionError::Protocol { .. }), "{error:?}");
    }
}

#[bisync]
#[twin_test]
async fn a_shutdown_packet_in_place_of_an_answer_ends_the_session() {
    let error = broken_by(encoded(&Packet::Shutdown)).await;
    assert!(matches!(error, SessionError::Ended { .. }), "{error:?}");
    assert!(error.to_string().ends_with(" ended the session"), "{error}");
}

#[bisync]
#[twin_test]
async fn empty_packets_mean_nothing() {
    let server = Server::start(|talk| {
        talk.send(&[0; 8]);
        talk.function("f", FUNCTION);
        talk.called(FUNCTION, []);
        talk.send(&[0; 16]);
        talk.value(1);
        talk.goodbye();
    });
    let session = open(&server).await;
    let function = session.function("f").await.unwrap();
    assert!(matches!(function.call(&[]).await, Ok(Output::Int(1))));
    session.close().await;
    finish(server).await;
}

/// A server that sends the first `cut` bytes of its answer, and then closes the connection.
fn server_that_leaves(answer: &[u8], cut: usize) -> Server<()> {
    let answer = answer[..cut].to_vec();
    Server::start(move |talk| {
        talk.function("f", FUNCTION);
        talk.called(FUNCTION, []);
        talk.send(&answer);
        talk.shutdown();
        talk.end();
    })
}

#[bisync]
async fn call_cut_off(answer: &[u8], cut: usize) {
    let server = server_that_leaves(answer, cut);
    let session: RemoteSession = open(&server).await;
    let function = session.function("f").await.unwrap();
    let error = function.call(&[]).await.unwrap_err();
    let peer = session.peer().to_owned();
    assert_eq!(
        error.to_string(),
        format!("{peer} closed the connection while we were waiting for a reply"),
        "after {cut} bytes"
    );
    assert!(error.is_fatal() && !error.is_session_timeout());
    finish(server).await;
    drop((function, session));
}

#[bisync]
#[twin_test]
async fn an_end_within_an_answer_is_told_as_such() {
    let small = encoded_returned(&rpc_proto::Returned::Value("abc".into()));
    for cut in 0..small.len() {
        call_cut_off(&small, cut).await;
    }
    // Text that comes as a payload.
    let large = encoded_returned(&rpc_proto::Returned::Value("x".repeat(70_000).into()));
    for cut in (0..48).chain([1000, 65_536, large.len() - 1]) {
        call_cut_off(&large, cut).await;
    }
}

#[bisync]
#[twin_test]
async fn answers_may_come_in_any_pieces() {
    let script = |chunk| {
        move |talk: &mut Talk| {
            talk.chunk = chunk;
            talk.function("f", FUNCTION);
            for number in 0..20 {
                talk.called(FUNCTION, [Value::Int(number)]);
                talk.value(number + 1);
            }
            talk.goodbye();
        }
    };
    for chunk in [1, 2, 3, 7, 11, 13] {
        let server = Server::start(script(chunk));
        let session = open(&server).await;
        let function = session.function("f").await.unwrap();
        for number in 0..20_i64 {
            let next = function.call(args![number]).await.unwrap();
            assert_eq!(i64::try_from(next).unwrap(), number + 1);
        }
        session.close().await;
        finish(server).await;
    }
}

#[bisync]
#[twin_test]
async fn an_exception_may_have_any_text() {
    const TEXTS: [&str; 4] = [
        "\u{201c}ValueError: x\u{201d}",
        "\u{2026}Error: ",
        "é: KeyError: x",
        "\0",
    ];
    let server = Server::start(|talk| {
        talk.function("f", 5);
        for text in TEXTS {
            talk.called(5, []);
            talk.exception(text);
        }
        talk.called(5, []);
        talk.value(1);
        talk.goodbye()
    });
    let session = open(&server).await;
    let function = session.function("f").await.unwrap();
    for text in TEXTS {
        let error = function.call(&[]).await.unwrap_err();
        assert_eq!(error.remote().unwrap().text(), text);
    }
    assert!(matches!(function.call(&[]).await, Ok(Output::Int(1))));
    drop(function);
    session.close().await;
    finish(server).await;
}
