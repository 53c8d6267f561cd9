//! Replies as real servers send them, or as the real client takes them: the bytes were recorded from
//! peers of apache-tvm 0.27.0.post1, if a test does not say otherwise.

mod replies;
mod results;

use proptest::prelude::*;

use super::*;
use crate::error::in_full;
use crate::packet::tests::strategies as any_of;
use crate::{
    BulkKind, DataType, Device, DeviceAttr, Returned, Shape, Syscall, TensorView, Value, Values,
};

const VOID: &str = "0c00000000000000 04000000 01000000 00000000";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().filter(|c| !c.is_whitespace()).collect();
    let byte = |pair: &[char]| u8::from_str_radix(&String::from_iter(pair), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn init() -> Packet<'static> {
    Packet::init(Values::default())
}

fn call() -> Packet<'static> {
    Packet::Call {
        function: 0x1000,
        args: Values::default(),
        bulk: None,
    }
}

fn lookup() -> Packet<'static> {
    Packet::Syscall(Syscall::GetGlobalFunc { name: "f".into() })
}

fn sync() -> Packet<'static> {
    Packet::Syscall(Syscall::StreamSync {
        device: Device::cpu(0),
        stream: 0,
    })
}

fn attr() -> Packet<'static> {
    Packet::Syscall(Syscall::GetAttr {
        device: Device::cpu(0),
        attr: DeviceAttr(5),
    })
}

fn f32_2x3() -> TensorView {
    TensorView {
        data: 0x2000,
        device: Device::cpu(0),
        dtype: DataType::FLOAT32,
        shape: Shape::from(&[2, 3][..]),
        byte_offset: 0,
    }
}

fn download(nbytes: u64) -> Packet<'static> {
    Packet::CopyFrom {
        tensor: f32_2x3(),
        nbytes,
    }
}

/// An endpoint that has sent these requests. Their tokens are their numbers, from 0.
fn after(requests: &[Packet<'_>]) -> ClientEndpoint<usize> {
    let mut endpoint = ClientEndpoint::new(Dialect::Ffi, Limits::default());
    for (token, packet) in requests.iter().enumerate() {
        endpoint.request(packet, token, &mut Vec::new()).unwrap();
    }
    endpoint
}

/// What the endpoint makes of `input`, which must be one whole reply without its payload: in one piece,
/// and the same when each byte comes alone.
fn receive<'b>(
    endpoint: &mut ClientEndpoint<usize>,
    input: &'b [u8],
) -> Result<Reply<'b>, EndpointError> {
    for length in 0..input.len() {
        if let Received::Incomplete { consumed, needed } = endpoint.receive(&input[..length])? {
            assert!(needed > (length - consumed) as u64, "{needed} at {length}");
            assert!(
                needed <= (input.len() - consumed) as u64,
                "{needed} at {length}"
            );
        } else {
            panic!("{length} bytes are enough of {}", input.len());
        }
    }
    match endpoint.receive(input)? {
        Received::Reply {
            consumed, reply, ..
        } => {
            assert_eq!(consumed, input.len());
            Ok(reply)
        }
        other => panic!("{other:?}"),
    }
}

/// The reply `hex` to a request; checks that the reply after it is understood.
fn reply_to(request: Packet<'static>, hex: &str) -> Reply<'static> {
    let mut endpoint = after(&[request, sync()]);
    let reply = receive(&mut endpoint, &bytes(hex)).unwrap().into_owned();
    assert_eq!(endpoint.outstanding(), 1);
    assert_eq!(receive(&mut endpoint, &bytes(VOID)), Ok(Reply::Done));
    reply
}

fn malformed(request: Packet<'static>, hex: &str) -> String {
    match reply_to(request, hex) {
        Reply::Malformed(error) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

/// The end of a session by a reply that a request must not have.
fn broken(request: Packet<'static>, hex: &str) -> String {
    let mut endpoint = after(&[request, sync()]);
    let error = endpoint.receive(&bytes(hex)).unwrap_err();
    assert_eq!(endpoint.abandon().collect::<Vec<_>>(), [0, 1]);
    assert_eq!(endpoint.outstanding(), 0);
    in_full(&error)
}

#[test]
fn empty_packets_before_a_reply_are_passed_over() {
    let mut endpoint = after(&[init()]);
    let input = bytes(&format!("{0} {0} {0} {VOID}", "0000000000000000"));
    assert_eq!(receive(&mut endpoint, &input), Ok(Reply::Done));
    // Also when nothing is due.
    let incomplete = Received::Incomplete {
        consumed: 8,
        needed: 8,
    };
    assert_eq!(endpoint.receive(&[0; 11]), Ok(incomplete));
}

#[test]
fn the_end_of_a_session() {
    let shutdown = bytes("0400000000000000 01000000");
    let mut endpoint = after(&[call(), call()]);
    assert_eq!(
        endpoint.receive(&shutdown),
        Ok(Received::Ended { text: None })
    );
    assert_eq!(endpoint.abandon().collect::<Vec<_>>(), [0, 1]);
    assert_eq!(
        after(&[]).receive(&shutdown),
        Ok(Received::Ended { text: None })
    );

    let timeout = bytes(
        "7700000000000000 05000000 01000000 08000000 6300000000000000 \
         52504353657373696f6e54696d656f75744572726f723a20596f757220312e30732073657373696f6e20686173206578706972\
         65642c2074727920746f20696e63726561736520746865202273657373696f6e5f74696d656f7574222076616c75652e",
    );
    let text = "RPCSessionTimeoutError: Your 1.0s session has expired, \
         try to increase the \"session_timeout\" value.";
    let ended = Received::Ended {
        text: Some(text.into()),
    };
    assert_eq!(after(&[]).receive(&timeout), Ok(ended));
    // A call that runs at that moment gets it as its answer.
    assert_eq!(
        receive(&mut after(&[call()]), &timeout),
        Ok(Reply::Exception(text.into()))
    );
}

#[test]
fn what_nobody_asked_for_breaks_the_session() {
    let unasked = |hex: &str| after(&[]).receive(&bytes(hex)).unwrap_err();
    let unasked = |hex: &str| in_full(&unasked(hex));
    assert_eq!(
        unasked(VOID),
        "unexpected return packet from the peer, where nothing was due"
    );
    assert_eq!(
        unasked("1700000000000000 05000000 01000000 08000000 0300000000000000 616263"),
        "unexpected exception packet from the peer, where nothing was due"
    );
    assert_eq!(
        unasked("0400000000000000 63000000"),
        "the peer's packet is malformed: packet code at offset 8: expected a code from 1 to 21, found 99"
    );
    assert_eq!(
        broken(call(), "0400000000000000 63000000"),
        "the peer's packet is malformed: packet code at offset 8: expected a code from 1 to 21, found 99"
    );
    // A request is no answer.
    assert_eq!(
        broken(
            call(),
            "1500000000000000 02000000 0500000000000000 302e382e30 00000000"
        ),
        "unexpected init packet from the peer, where the return of a call or an exception was due"
    );
}

#[test]
fn replies_come_in_the_order_of_the_requests() {
    let mut endpoint = after(&[init(), lookup(), call(), Packet::Shutdown]);
    // A shutdown has no reply.
    assert_eq!(endpoint.outstanding(), 3);
    let input = bytes(&format!(
        "{VOID} 1400000000000000 04000000 01000000 04000000 0010000000000000 \
         2000000000000000 04000000 02000000 01000000 0100000000000000 01000000 0700000000000000 05",
    ));
    let mut at = 0;
    let mut replies = Vec::new();
    while endpoint.outstanding() > 0 {
        let Ok(Received::Reply {
            consumed,
            token,
            reply,
        }) = endpoint.receive(&input[at..])
        else {
            panic!("no reply at {at}");
        };
        at += consumed;
        replies.push((token, reply));
    }
    let seven = Reply::Returned(Returned::Value(Value::Int(7)));
    assert_eq!(
        replies,
        [(0, Reply::Done), (1, Reply::Pointer(0x1000)), (2, seven)]
    );
    assert_eq!(at, input.len() - 1);
    assert_eq!(
        endpoint.receive(&input[at..]),
        Ok(Received::Incomplete {
            consumed: 0,
            needed: 8
        })
    );
}

#[test]
fn limits() {
    let limits = Limits::default().with_packet(80).with_payload(100);
    let receive = |request: Packet<'_>, hex: &str| {
        let mut endpoint = ClientEndpoint::new(Dialect::Ffi, limits);
        endpoint.request(&request, (), &mut Vec::new()).unwrap();
        match endpoint.receive(&bytes(hex)) {
            Ok(Received::Reply { reply, .. }) => Ok(reply.payload()),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(in_full(&error)),
        }
    };
    let over = |what: &str| {
        Err(format!(
            "the peer's packet is malformed: at offset 0: {what}"
        ))
    };
    // A text of 100 and one of 101 bytes: beyond the limit of a packet both are payload.
    let text = "04000000 02000000 01000000 4100000000000000 08000000";
    assert_eq!(
        receive(call(), &format!("8400000000000000 {text} 6400000000000000")),
        Ok(100)
    );
    assert_eq!(
        receive(call(), &format!("8500000000000000 {text} 6500000000000000")),
        over("payload is 101, more than the limit of 100")
    );
    assert_eq!(receive(download(100), "6800000000000000 08000000"), Ok(100));
    assert_eq!(
        receive(download(100), "6900000000000000 08000000"),
        over("payload is 101, more than the limit of 100")
    );
    assert_eq!(
        receive(sync(), "4900000000000000 05000000"),
        over("packet is 81, more than the limit of 80")
    );
    assert_eq!(
        receive(sync(), "b500000000000000 08000000"),
        over("packet length is 181, more than the limit of 180")
    );
}

#[test]
fn requests() {
    let mut endpoint = ClientEndpoint::new(Dialect::Ffi, Limits::default().with_payload(10));
    let mut out = Vec::new();
    endpoint.request(&init(), 0, &mut out).unwrap();
    let init = bytes("1500000000000000 02000000 0500000000000000 302e382e30 00000000");
    assert_eq!(out, init);

    let error = endpoint.request(&Packet::void(), 1, &mut out).unwrap_err();
    assert_eq!(error.to_string(), "a client cannot send return packets");
    let upload = Packet::CopyTo {
        tensor: f32_2x3(),
        nbytes: 11,
    };
    let error = endpoint.request(&upload, 2, &mut out).unwrap_err();
    assert_eq!(
        error.to_string(),
        "payload is 11, more than the limit of 10"
    );
    // The peer would be right to send this much, and the session would end of it.
    let error = endpoint.request(&download(11), 3, &mut out).unwrap_err();
    assert_eq!(
        error.to_string(),
        "bytes to copy is 11, more than the limit of 10"
    );
    assert_eq!((out, endpoint.outstanding()), (init, 1));
    let mut out = Vec::new();
    endpoint.request(&download(10), 4, &mut out).unwrap();
}

proptest! {
    #[test]
    fn no_input_panics(
        requests in prop::collection::vec(any_of::request(), 0..3),
        answers in prop::collection::vec(any_of::answer(), 1..4),
        change in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
        behind: Vec<u8>,
    ) {
        let mut endpoint = after(&requests);
        let mut input = Vec::new();
        for answer in &answers {
            answer.encode(Dialect::Ffi, Limits::default(), &mut input).unwrap();
        }
        if let Some((at, to)) = change {
            let at = at.index(input.len());
            input[at] = to;
        }
        input.extend(behind);
        let mut rest = &input[..];
        let mut outstanding = endpoint.outstanding();
        while let Ok(Received::Reply { consumed, reply, .. }) = endpoint.receive(rest) {
            // Every reply takes one request and at least the code of its packet.
            prop_assert!(consumed >= 12);
            prop_assert_eq!(endpoint.outstanding(), outstanding - 1);
            outstanding -= 1;
            let payload = usize::try_from(reply.payload()).unwrap_or(usize::MAX);
            rest = rest[consumed..].get(payload..).unwrap_or_default();
        }
    }
}
