//! Packets against themselves and against the limits. What real peers send is in the golden vectors.

pub(crate) mod strategies;
mod unwritten;

use proptest::prelude::*;

use self::strategies as any_of;
use super::*;
use crate::DecodeError;

const LIMITS: fn() -> Limits = Limits::default;

fn encoded(packet: &Packet<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    packet.encode(Dialect::Ffi, LIMITS(), &mut out).unwrap();
    out
}

fn scanned(input: &[u8]) -> Result<Frame, DecodeError> {
    scan(input, Dialect::Ffi, LIMITS())
}

fn decoded(head: &[u8], payload: u64) -> Result<Packet<'_>, DecodeError> {
    Packet::decode(head, payload, Dialect::Ffi, LIMITS())
}

fn assert_reads(head: &[u8], payload: u64, expected: &Packet<'_>) {
    assert_eq!(&decoded(head, payload).unwrap(), expected);
}

/// Scans and decodes one whole packet, without its payload.
fn read(input: &[u8]) -> Result<Packet<'_>, DecodeError> {
    match scanned(input)? {
        Frame::Packet { head, payload } => {
            decoded(&input[..usize::try_from(head).unwrap()], payload)
        }
        frame => panic!("{frame:?} of a whole packet"),
    }
}

/// A packet of these bytes behind its length.
fn framed(parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    [&(body.len() as u64).to_le_bytes(), &*body].concat()
}

fn error_of(parts: &[&[u8]]) -> String {
    read(&framed(parts)).unwrap_err().to_string()
}

proptest! {
    #[test]
    fn packets_survive(packet in any_of::packet()) {
        let head = encoded(&packet);
        let payload = packet.payload();
        prop_assert_eq!(scanned(&head), Ok(Frame::Packet { head: head.len() as u64, payload }));
        assert_reads(&head, payload, &packet);
    }

    #[test]
    fn results_survive(returned in any_of::returned()) {
        let mut out = Vec::new();
        encode_returned(Dialect::Ffi, &returned, LIMITS(), &mut out).unwrap();
        let packet = read(&out)?;
        let Packet::Return(values) = packet else { panic!("{packet:?}") };
        let same = match returned {
            // The kind "object" is the type index of a remote object; a tensor has a handle.
            Returned::Value(Value::Object(handle)) => Returned::Object { type_index: 115, handle },
            Returned::Value(Value::Tensor(tensor)) => Returned::Tensor { tensor, handle: 0 },
            same => same,
        };
        prop_assert_eq!(Packet::returned(values, Dialect::Ffi), Ok(same));
    }

    #[test]
    fn packets_outlive_their_bytes(packet in any_of::packet()) {
        let head = encoded(&packet);
        let owned: Packet<'static> = decoded(&head, packet.payload())?.into_owned();
        drop(head);
        prop_assert_eq!(owned, packet);
    }

    #[test]
    fn a_payload_is_the_last_argument(
        args in any_of::values(),
        kind in any_of::bulk_kind(),
        length in 0..20_usize,
    ) {
        let text = "7".repeat(length);
        let bulk = Some(Bulk { kind, nbytes: length as u64 });
        let mut whole = encoded(&Packet::Call { function: 1, args: args.clone(), bulk });
        whole.extend_from_slice(text.as_bytes());
        let last = match kind {
            BulkKind::Text => Value::from(text),
            BulkKind::Bytes => Value::from(text.into_bytes()),
        };
        let args = args.into_iter().chain([last]).collect();
        assert_reads(&whole, 0, &Packet::Call { function: 1, args, bulk: None });
    }

    #[test]
    fn a_prefix_asks_for_more_but_not_for_too_much(packet in any_of::packet()) {
        let whole = encoded(&packet);
        for length in 0..whole.len() {
            match scanned(&whole[..length]) {
                Ok(Frame::Incomplete { needed }) => {
                    prop_assert!(needed > length as u64, "{needed} at {length}");
                    prop_assert!(needed <= whole.len() as u64, "{needed} of {}", whole.len());
                }
                other => prop_assert!(false, "{other:?} at {length}"),
            }
        }
    }

    #[test]
    fn what_follows_a_packet_does_not_matter(packet in any_of::packet(), behind: Vec<u8>) {
        let head = encoded(&packet);
        prop_assert_eq!(scanned(&[&*head, &behind].concat()), scanned(&head));
    }

    #[test]
    fn arbitrary_bytes_are_harmless(bytes: Vec<u8>, code in 0..23_u8, payload in 0..3_u64) {
        let _ = scanned(&bytes);
        let _ = decoded(&bytes, payload);
        let packet = framed(&[&[code, 0, 0, 0], &bytes]);
        let _ = read(&packet);
        let _ = decoded(&packet, payload);
    }

    #[test]
    fn changed_packets_are_harmless(packet in any_of::packet(), at: prop::sample::Index, to: u8) {
        let mut bytes = encoded(&packet);
        let at = at.index(bytes.len());
        bytes[at] = to;
        for limits in [LIMITS(), LIMITS().with_payload(u64::MAX), LIMITS().with_packet(40)] {
            if let Ok(Frame::Packet { head, payload }) = scan(&bytes, Dialect::Ffi, limits) {
                prop_assert!(head <= limits.packet && payload <= limits.payload);
                let head = &bytes[..usize::try_from(head).unwrap()];
                if let Ok(Packet::Return(values)) = Packet::decode(head, payload, Dialect::Ffi, limits) {
                    let _ = Packet::returned(values, Dialect::Ffi);
                }
            }
        }
    }
}

#[test]
fn lengths_of_packets() {
    let of = |nbytes: u64| scanned(&nbytes.to_le_bytes());
    assert_eq!(of(0), Ok(Frame::Empty));
    assert_eq!(of(4), Ok(Frame::Incomplete { needed: 12 }));
    for short in 1..4 {
        let error = of(short).unwrap_err().to_string();
        let expected = "packet length at offset 0: expected 0, or at least 4 for the code, found ";
        assert_eq!(error, format!("{expected}{short}"));
    }
    let longest = (64 << 30) + (16 << 20);
    assert!(of(longest).is_ok());
    for long in [longest + 1, 1 << 62, u64::MAX] {
        let error = of(long).unwrap_err().to_string();
        let expected =
            format!("at offset 0: packet length is {long}, more than the limit of {longest}");
        assert_eq!(error, expected);
    }
}

#[test]
fn no_length_is_too_long_to_add_to() {
    let limits = LIMITS().with_payload(u64::MAX);
    let copy_ack = |nbytes: u64| [&nbytes.to_le_bytes()[..], &8_i32.to_le_bytes()].concat();
    let of = |nbytes| scan(&copy_ack(nbytes), Dialect::Ffi, limits);
    let payload = u64::MAX - 12;
    assert_eq!(of(u64::MAX - 8), Ok(Frame::Packet { head: 12, payload }));
    assert!(matches!(of(u64::MAX), Err(DecodeError::OverLimit { .. })));

    let mut out = Vec::new();
    let packet = Packet::CopyAck { nbytes: u64::MAX };
    let error = packet.encode(Dialect::Ffi, limits, &mut out).unwrap_err();
    assert_eq!((error.field, error.found), ("payload", u64::MAX));
    assert!(out.is_empty());
}

#[test]
fn huge_counts_and_lengths_are_named() {
    let count = i32::MAX.to_le_bytes();
    let code = |code: i32| code.to_le_bytes();
    let length = (1_u64 << 63).to_le_bytes();
    let values = "number of values is 2147483647, more than the limit of 4096";
    assert_eq!(
        error_of(&[&code(4), &count]),
        format!("at offset 12: {values}")
    );
    assert_eq!(
        error_of(&[&code(9), &count]),
        format!("at offset 12: {values}")
    );
    assert_eq!(
        error_of(&[&code(3), &[0; 8], &count]),
        format!("at offset 20: {values}")
    );
    assert_eq!(
        error_of(&[&code(5), &count]),
        format!("at offset 12: {values}")
    );

    // Data pointer and device, then the number of dimensions, in each place where a tensor may be.
    let tensor = [&[0; 16][..], &count, &[0; 12]].concat();
    let dimensions = "number of dimensions is 2147483647, more than the limit of 64";
    for copy in [6, 7] {
        assert_eq!(
            error_of(&[&code(copy), &tensor]),
            format!("at offset 28: {dimensions}")
        );
    }
    let argument = [&code(1)[..], &code(7), &tensor].concat();
    assert_eq!(
        error_of(&[&code(4), &argument]),
        format!("at offset 36: {dimensions}")
    );
    // The same where the packet is too short for what it announces, but within the limit.
    let tensor = [&[0; 16][..], &code(64), &[0; 12]].concat();
    assert_eq!(
        error_of(&[&code(7), &tensor]),
        "packet at offset 0 needs 564 bytes, but only 44 are left in the message"
    );

    let needs = "needs 9223372036854775808 bytes, but only";
    let text = [&code(1)[..], &code(8), &length, b"ab"].concat();
    for with_text in [4, 5, 9] {
        assert_eq!(
            error_of(&[&code(with_text), &text]),
            format!("text at offset 28 {needs} 2 are left in the message")
        );
    }
    let bytes = [&code(1)[..], &code(66), &code(66), &length].concat();
    assert_eq!(
        error_of(&[&code(4), &bytes]),
        format!("bytes at offset 32 {needs} 0 are left in the message")
    );
    assert_eq!(
        error_of(&[&code(2), &length, b"0.8.0"]),
        format!("version at offset 20 {needs} 5 are left in the message")
    );
    // A count that is within its limit, but of values that are not there.
    assert_eq!(
        error_of(&[&code(4), &code(4096)]),
        "type index at offset 16 needs 4 bytes, but only 0 are left in the message"
    );
    assert_eq!(
        error_of(&[&code(4), &code(-1)]),
        "number of values at offset 12: expected a count of at least 0, found -1"
    );
}

#[test]
fn errors_say_where() {
    let code = |code: i32| code.to_le_bytes();
    for unknown in [0, 22, 99, -1] {
        assert_eq!(
            error_of(&[&code(unknown)]),
            format!("packet code at offset 8: expected a code from 1 to 21, found {unknown}")
        );
    }
    for index in [-1, 10, 13, 50, 63, 70] {
        let error = error_of(&[&code(9), &code(1), &code(index), &[0; 8]]);
        assert!(
            error.starts_with("type index at offset 16: expected an index"),
            "{error}"
        );
        assert!(error.ends_with(&format!(", found {index}")), "{error}");
    }
    assert_eq!(
        error_of(&[&code(9), &code(1), &code(69), &code(999), &[0; 8]]),
        "inner type index at offset 20: expected 115 inside an object, found 999"
    );
    assert_eq!(
        error_of(&[&code(9), &code(1), &code(8), &2_u64.to_le_bytes(), b"a\xff"]),
        "text at offset 29 is not UTF-8"
    );
    assert_eq!(
        error_of(&[&code(1), &[0; 4]]),
        "packet ends at offset 12, but 4 more bytes follow"
    );
    assert_eq!(
        error_of(&[&code(9), &code(1), &code(1), &[0; 8]]),
        "argument #0 of get global function: expected a text, found an integer"
    );
    assert_eq!(
        error_of(&[&code(13), &code(1), &code(6), &[0; 8]]),
        "argument #1 of allocate data: expected an integer, found no argument"
    );
    // A broken packet is no wrong argument, even if it has one.
    assert_eq!(
        error_of(&[&code(9), &code(1), &code(1), &[0; 8], &[0; 4]]),
        "packet ends at offset 28, but 4 more bytes follow"
    );
    let tensor_of_nothing = [0; 32];
    assert_eq!(
        error_of(&[&code(7), &tensor_of_nothing, &5_u64.to_le_bytes(), b"abcd"]),
        "bytes to copy at offset 44: expected the length of the data that follows, found 5 before 4 bytes"
    );
}

#[test]
fn a_syscall_takes_bytes_for_a_text() {
    let code = |code: i32| code.to_le_bytes();
    let bytes = |bytes: &[u8]| {
        let length = (bytes.len() as u64).to_le_bytes();
        [&code(66)[..], &code(66), &length, bytes].concat()
    };
    let look_up = framed(&[&code(9), &code(1), &bytes("é".as_bytes())]);
    let name = "é".into();
    let expected = Packet::Syscall(Syscall::GetGlobalFunc { name });
    assert_eq!(read(&look_up), Ok(expected));

    let tensor = [&code(7)[..], &[0; 32]].concat();
    let allocate = framed(&[&code(17), &code(2), &tensor, &bytes(b"global")]);
    let packet = read(&allocate).unwrap();
    let Packet::Syscall(Syscall::AllocDataWithScope { scope, .. }) = packet else {
        panic!("{packet:?}");
    };
    assert_eq!(scope.as_deref(), Some("global"));

    assert_eq!(
        error_of(&[&code(17), &code(2), &tensor, &bytes(b"\xff")]),
        "argument #1 of allocate data with scope: expected a text or none, \
         found bytes that are not UTF-8"
    );
}

#[test]
fn a_short_packet_is_not_completed_by_the_next_one() {
    // A copy to remote of 4 bytes, behind which a packet whose bytes look like a number of dimensions.
    let short = framed(&[&7_i32.to_le_bytes()]);
    let both = [&*short, &[0xff; 100]].concat();
    assert_eq!(scanned(&both), scanned(&short));
    assert_eq!(
        scanned(&short).unwrap_err().to_string(),
        "packet at offset 0 needs 32 bytes, but only 12 are left in the message"
    );
}
