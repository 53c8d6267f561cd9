use std::borrow::Cow;

use proptest::prelude::*;

use super::*;
use crate::packet::tests::strategies as any_of;
use crate::{BulkKind, DataType, Device, Shape, Syscall, TensorView, Values};

const LIMITS: fn() -> Limits = Limits::default;

fn endpoint() -> ServerEndpoint {
    ServerEndpoint::new(Dialect::Ffi, LIMITS())
}

fn open_endpoint() -> ServerEndpoint {
    let mut endpoint = endpoint();
    endpoint.open();
    endpoint
}

fn encoded(packet: &Packet<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    packet.encode(Dialect::Ffi, LIMITS(), &mut out).unwrap();
    out
}

fn init() -> Vec<u8> {
    encoded(&Packet::init(Values::default()))
}

fn refusal(endpoint: &ServerEndpoint, input: &[u8]) -> String {
    match endpoint.receive(input) {
        Ok(Asked::Refused { refusal, .. }) => refusal.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_session_is_opened_once() {
    let endpoint = endpoint();
    let lookup = encoded(&Packet::Syscall(Syscall::GetGlobalFunc {
        name: "f".into(),
    }));
    assert_eq!(
        refusal(&endpoint, &lookup),
        "get global function packet before the session was opened by an init packet"
    );
    // A session that could not be made can be asked for again.
    assert!(matches!(
        endpoint.receive(&init()),
        Ok(Asked::Request { consumed: 29, .. })
    ));
    assert!(matches!(
        endpoint.receive(&init()),
        Ok(Asked::Request { consumed: 29, .. })
    ));
    let endpoint = open_endpoint();
    assert!(matches!(
        endpoint.receive(&lookup),
        Ok(Asked::Request { .. })
    ));
    assert_eq!(
        refusal(&endpoint, &init()),
        "the session is open already, and cannot be opened again"
    );
}

#[test]
fn another_version_is_refused() {
    let other = encoded(&Packet::Init {
        version: Cow::Borrowed("0.7.0"),
        constructor: Values::default(),
    });
    assert_eq!(
        refusal(&endpoint(), &other),
        "the server speaks version 0.8.0 of the protocol, the client \"0.7.0\""
    );
}

#[test]
fn what_is_refused_says_what_to_skip() {
    let upload = encoded(&Packet::Call {
        function: 1,
        args: Values::default(),
        bulk: Some(Bulk::bytes(100_000)),
    });
    let Ok(Asked::Refused {
        consumed, payload, ..
    }) = endpoint().receive(&upload)
    else {
        panic!("a call before the session");
    };
    assert_eq!((consumed, payload), (upload.len(), 100_000));
}

#[test]
fn a_wrong_argument_costs_its_request_only() {
    // The name of a function is an integer.
    let lookup = [
        &20_u64.to_le_bytes()[..],
        &9_i32.to_le_bytes(),
        &1_i32.to_le_bytes(),
        &1_i32.to_le_bytes(),
        &7_i64.to_le_bytes(),
    ]
    .concat();
    assert_eq!(
        refusal(&open_endpoint(), &lookup),
        "argument #0 of get global function: expected a text, found an integer"
    );
}

#[test]
fn answers_are_no_requests() {
    for packet in [Packet::void(), Packet::CopyAck { nbytes: 0 }] {
        let error = open_endpoint().receive(&encoded(&packet)).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "unexpected {} packet from the peer, where a request was due",
                packet.code()
            )
        );
    }
}

#[test]
fn large_results_are_lent_and_small_ones_copied() {
    for length in [0, 7, 8, BORROW - 1, BORROW, 100_000] {
        let text = "x".repeat(length);
        let returned = Returned::Value(Value::from(text.as_str()));
        let mut out = Vec::new();
        let behind = open_endpoint().answer_call(&returned, &mut out).unwrap();
        assert_eq!(behind.len(), if length < BORROW { 0 } else { length });
        out.extend_from_slice(behind);
        let mut whole = Vec::new();
        encode_returned(Dialect::Ffi, &returned, LIMITS(), &mut whole).unwrap();
        assert!(out == whole, "a text of {length}");
    }
}

#[test]
fn a_long_exception_is_cut_at_a_character() {
    let limits = LIMITS().with_packet(28 + 10);
    let endpoint = ServerEndpoint::new(Dialect::Ffi, limits);
    let mut out = Vec::new();
    endpoint.answer_exception("123456789\u{e9}", &mut out);
    assert_eq!(&out[28..], b"123456789");
    out.clear();
    endpoint.answer_exception("12345678\u{e9}", &mut out);
    assert_eq!(&out[28..], "12345678\u{e9}".as_bytes());
}

#[test]
fn the_last_argument_of_a_large_call_is_not_needed_to_read_it() {
    for kind in [BulkKind::Text, BulkKind::Bytes] {
        let packet = Packet::Call {
            function: 9,
            args: ["lib.so".into(), Value::Int(1)].into_iter().collect(),
            bulk: Some(Bulk {
                kind,
                nbytes: 1 << 35,
            }),
        };
        let head = encoded(&packet);
        let consumed = head.len();
        assert_eq!(
            open_endpoint().receive(&head),
            Ok(Asked::Request { consumed, packet })
        );
    }
}

/// A client sends no more than what is waited for, so that all of it has to be looked at again.
#[test]
fn a_call_is_looked_at_a_few_times_however_slowly_it_comes() {
    let tensor = TensorView {
        data: 1,
        device: Device::cpu(0),
        dtype: DataType::FLOAT32,
        shape: Shape::from_iter([1; 64]),
        byte_offset: 0,
    };
    for (value, most) in [
        (Value::None, 10),
        (Value::Int(1), 40),
        (Value::Tensor(tensor), 1500),
    ] {
        let packet = Packet::Call {
            function: 1,
            args: Values::from_iter(vec![value; 4095]),
            bulk: Some(Bulk::bytes(1 << 30)),
        };
        let head = encoded(&packet);
        let endpoint = open_endpoint();
        let (mut there, mut looks) = (0, 0);
        let consumed = loop {
            looks += 1;
            match endpoint.receive(&head[..there]).unwrap() {
                Asked::Incomplete { needed, .. } => there = usize::try_from(needed).unwrap(),
                Asked::Request { consumed, .. } => break consumed,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(consumed, head.len());
        assert!(looks <= most, "{looks} looks at {} bytes", head.len());
    }
}

proptest! {
    #[test]
    fn requests_come_as_they_were_sent(packet in any_of::request()) {
        let head = encoded(&packet);
        let expected = match packet {
            Packet::Shutdown => Asked::Ended,
            Packet::Init { .. } => return Ok(()),
            packet => Asked::Request { consumed: head.len(), packet },
        };
        prop_assert_eq!(open_endpoint().receive(&head), Ok(expected));
    }

    #[test]
    fn a_prefix_asks_for_more(packet in any_of::request(), empty in 0..3_usize) {
        let whole = [vec![0; 8 * empty], encoded(&packet)].concat();
        for length in 0..whole.len() {
            match open_endpoint().receive(&whole[..length]) {
                Ok(Asked::Incomplete { consumed, needed }) => {
                    prop_assert!(consumed as u64 + needed > length as u64);
                    prop_assert!(consumed as u64 + needed <= whole.len() as u64);
                }
                other => prop_assert!(false, "{other:?} at {length}"),
            }
        }
    }

    #[test]
    fn arbitrary_bytes_are_harmless(bytes: Vec<u8>) {
        let _ = endpoint().receive(&bytes);
        let _ = open_endpoint().receive(&bytes);
    }
}
