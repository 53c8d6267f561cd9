//! Packets against themselves and against the limits. What real peers send is in the golden vectors.

mod carried;
mod ffi;
mod legacy;
pub(crate) mod strategies;
mod unwritten;

use proptest::prelude::*;

use self::carried::{carried, carried_result};
use self::strategies as any_of;
use super::*;
use crate::DecodeError;

const LIMITS: fn() -> Limits = Limits::default;

const DIALECTS: [Dialect; 2] = [Dialect::Ffi, Dialect::Legacy];

fn encoded(packet: &Packet<'_>, dialect: Dialect) -> Vec<u8> {
    let mut out = Vec::new();
    packet.encode(dialect, LIMITS(), &mut out).unwrap();
    out
}

fn scanned(input: &[u8], dialect: Dialect) -> Result<Frame, DecodeError> {
    scan(input, dialect, LIMITS())
}

fn decoded(head: &[u8], payload: u64, dialect: Dialect) -> Result<Packet<'_>, DecodeError> {
    Packet::decode(head, payload, dialect, LIMITS())
}

fn assert_reads(head: &[u8], payload: u64, dialect: Dialect, expected: &Packet<'_>) {
    assert_eq!(
        &decoded(head, payload, dialect).unwrap(),
        expected,
        "{dialect:?}"
    );
}

/// Scans and decodes one whole packet, without its payload.
fn read(input: &[u8], dialect: Dialect) -> Result<Packet<'_>, DecodeError> {
    match scanned(input, dialect)? {
        Frame::Packet { head, payload } => {
            decoded(&input[..usize::try_from(head).unwrap()], payload, dialect)
        }
        frame => panic!("{frame:?} of a whole packet"),
    }
}

/// A packet of these bytes behind its length.
fn framed(parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    [&(body.len() as u64).to_le_bytes(), &*body].concat()
}

fn error_of(parts: &[&[u8]], dialect: Dialect) -> String {
    read(&framed(parts), dialect).unwrap_err().to_string()
}

fn int(number: i32) -> [u8; 4] {
    number.to_le_bytes()
}

fn long(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

proptest! {
    #[test]
    fn packets_survive(packet in any_of::packet()) {
        for dialect in DIALECTS {
            let head = encoded(&packet, dialect);
            let payload = packet.payload();
            let frame = Frame::Packet { head: head.len() as u64, payload };
            prop_assert_eq!(scanned(&head, dialect), Ok(frame));
            let carried = carried(packet.clone(), dialect);
            assert_reads(&head, payload, dialect, &carried);
            prop_assert_eq!(encoded(&carried, dialect), head);
        }
    }

    #[test]
    fn results_survive(returned in any_of::returned()) {
        for dialect in DIALECTS {
            let mut out = Vec::new();
            encode_returned(dialect, &returned, LIMITS(), &mut out).unwrap();
            let packet = read(&out, dialect)?;
            let Packet::Return(values) = packet else { panic!("{packet:?}") };
            let carried = carried_result(returned.clone(), dialect);
            prop_assert_eq!(Packet::returned(values, dialect), Ok(carried));
        }
    }

    #[test]
    fn every_byte_is_explained(packet in any_of::packet()) {
        prop_assume!(packet.payload() == 0);
        for dialect in DIALECTS {
            let bytes = encoded(&packet, dialect);
            let explained = explain(&bytes, dialect, LIMITS());
            let mut end = 0;
            for field in &explained.fields {
                prop_assert_eq!(field.offset, end, "{:?}", field);
                end = field.end();
            }
            prop_assert_eq!(end, bytes.len() as u64);
            prop_assert_eq!(explained.result, Ok(Some(carried(packet.clone(), dialect))));
        }
    }

    #[test]
    fn packets_outlive_their_bytes(packet in any_of::packet()) {
        for dialect in DIALECTS {
            let head = encoded(&packet, dialect);
            let owned: Packet<'static> = decoded(&head, packet.payload(), dialect)?.into_owned();
            drop(head);
            prop_assert_eq!(owned, carried(packet.clone(), dialect));
        }
    }

    #[test]
    fn a_payload_is_the_last_argument(
        args in any_of::values(),
        kind in any_of::bulk_kind(),
        length in 0..20_usize,
    ) {
        for dialect in DIALECTS {
            let text = "7".repeat(length);
            let bulk = Some(Bulk { kind, nbytes: length as u64 });
            let call = Packet::Call { function: 1, args: args.clone(), bulk };
            let mut whole = encoded(&call, dialect);
            whole.extend_from_slice(text.as_bytes());
            let last = match kind {
                BulkKind::Text => Value::from(text),
                BulkKind::Bytes => Value::from(text.into_bytes()),
            };
            let args = args.clone().into_iter().chain([last]).collect();
            let call = Packet::Call { function: 1, args, bulk: None };
            assert_reads(&whole, 0, dialect, &carried(call, dialect));
        }
    }

    #[test]
    fn a_prefix_asks_for_more_but_not_for_too_much(packet in any_of::packet()) {
        for dialect in DIALECTS {
            let whole = encoded(&packet, dialect);
            for length in 0..whole.len() {
                match scanned(&whole[..length], dialect) {
                    Ok(Frame::Incomplete { needed }) => {
                        prop_assert!(needed > length as u64, "{needed} at {length}");
                        prop_assert!(needed <= whole.len() as u64, "{needed} of {}", whole.len());
                    }
                    other => prop_assert!(false, "{other:?} at {length}"),
                }
            }
        }
    }

    #[test]
    fn a_packet_that_ends_too_early_is_no_packet(packet in any_of::packet()) {
        for dialect in DIALECTS {
            let body = encoded(&packet, dialect).split_off(LENGTH_LEN);
            for length in 4..body.len() {
                let cut = framed(&[&body[..length]]);
                let read = match scanned(&cut, dialect) {
                    Ok(Frame::Packet { head, payload }) => {
                        decoded(&cut[..usize::try_from(head).unwrap()], payload, dialect)
                    }
                    Ok(frame) => panic!("{frame:?} of a whole packet"),
                    Err(error) => Err(error),
                };
                prop_assert!(read.is_err(), "{read:?} of {length} bytes of {packet:?}");
            }
        }
    }

    #[test]
    fn what_follows_a_packet_does_not_matter(packet in any_of::packet(), behind: Vec<u8>) {
        for dialect in DIALECTS {
            let head = encoded(&packet, dialect);
            let more = [&*head, &behind].concat();
            prop_assert_eq!(scanned(&more, dialect), scanned(&head, dialect));
        }
    }

    #[test]
    fn arbitrary_bytes_are_harmless(bytes: Vec<u8>, code in 0..23_u8, payload in 0..3_u64) {
        for dialect in DIALECTS {
            let _ = scanned(&bytes, dialect);
            let _ = decoded(&bytes, payload, dialect);
            let packet = framed(&[&[code, 0, 0, 0], &bytes]);
            let _ = read(&packet, dialect);
            let _ = decoded(&packet, payload, dialect);
        }
    }

    #[test]
    fn changed_packets_are_harmless(packet in any_of::packet(), at: prop::sample::Index, to: u8) {
        for dialect in DIALECTS {
            let mut bytes = encoded(&packet, dialect);
            let at = at.index(bytes.len());
            bytes[at] = to;
            for limits in [LIMITS(), LIMITS().with_payload(u64::MAX), LIMITS().with_packet(40)] {
                if let Ok(Frame::Packet { head, payload }) = scan(&bytes, dialect, limits) {
                    prop_assert!(head <= limits.packet && payload <= limits.payload);
                    let head = &bytes[..usize::try_from(head).unwrap()];
                    let packet = Packet::decode(head, payload, dialect, limits);
                    if let Ok(Packet::Return(values)) = packet {
                        let _ = Packet::returned(values, dialect);
                    }
                }
            }
        }
    }
}

#[test]
fn lengths_of_packets() {
    let of = |nbytes: u64| scanned(&nbytes.to_le_bytes(), Dialect::Ffi);
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
fn a_short_packet_is_not_completed_by_the_next_one() {
    // A copy to remote of 4 bytes, behind which a packet whose bytes look like a number of dimensions.
    let short = framed(&[&int(7)]);
    let both = [&*short, &[0xff; 100]].concat();
    for dialect in DIALECTS {
        assert_eq!(scanned(&both, dialect), scanned(&short, dialect));
        assert_eq!(
            scanned(&short, dialect).unwrap_err().to_string(),
            "packet at offset 0 needs 32 bytes, but only 12 are left in the message"
        );
    }
}
