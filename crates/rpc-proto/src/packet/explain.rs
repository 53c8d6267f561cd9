//! What the bytes of a packet say, field by field.

use super::{LENGTH, Packet, START, Syscall, scan};
use crate::codes::PacketCode;
use crate::explain::{Explanation, Extent, Field, FieldValue};
use crate::tensor;
use crate::wire::Reader;
use crate::{DecodeError, Dialect, Limits};

/// How long the packet is of which these are the first bytes.
///
/// # Errors
/// A length that is too short for a packet or over its limit.
pub fn extent(packet: &[u8], limits: Limits) -> Result<Extent, DecodeError> {
    scan::extent(&mut Reader::new(packet, 0), limits)
}

/// Explains the packet that `bytes` begin with; what stands behind it is not looked at.
///
/// The payload is a field like any other: the data of a copy, and also text and bytes of any size, which
/// are values here. A packet of no bytes at all, which means nothing, is `None`.
///
/// ```
/// use rpc_proto::{Dialect, Limits, packet};
///
/// let bytes = [4, 0, 0, 0, 0, 0, 0, 0, 99, 0, 0, 0];
/// let explained = packet::explain(&bytes, Dialect::Ffi, Limits::default());
/// let fields = explained.fields.iter().map(|field| format!("{} {}", field.name, field.value));
/// assert_eq!(fields.collect::<Vec<_>>(), ["packet length 4", "packet code 99"]);
/// assert_eq!(explained.stop(), Some(8));
/// assert_eq!(
///     explained.result.unwrap_err().to_string(),
///     "packet code at offset 8: expected a code from 1 to 21, found 99"
/// );
/// ```
#[must_use]
pub fn explain(
    bytes: &[u8],
    dialect: Dialect,
    limits: Limits,
) -> Explanation<'_, Option<Packet<'_>>> {
    match extent(bytes, limits) {
        Ok(Extent::Exactly(total)) if total > LENGTH => explain_body(bytes, total, dialect, limits),
        extent => {
            let mut reader = Reader::noting(bytes);
            let length = reader.u64("packet length");
            Explanation {
                fields: reader.into_fields(),
                result: extent.and(length).map(|_| None),
            }
        }
    }
}

fn explain_body(
    bytes: &[u8],
    total: u64,
    dialect: Dialect,
    limits: Limits,
) -> Explanation<'_, Option<Packet<'_>>> {
    let available = usize::try_from(total).map_or(bytes, |total| &bytes[..total.min(bytes.len())]);
    let copy = copy_head(available, limits);
    let (head, data) = available.split_at(copy.unwrap_or(available.len()));
    let payload = copy.map_or(0, |head| total - head as u64);

    let mut reader = Reader::noting(head);
    let mut result = Packet::read(&mut reader, head, payload, dialect, limits);
    let read = reader.offset();
    let mut fields = reader.into_fields();
    if let Ok(packet) = &result {
        name_codes(&mut fields, packet, dialect);
        // Real peers ignore what stands behind the text of an exception.
        let behind = &head[usize::try_from(read).unwrap_or(head.len())..];
        put_bytes("ignored", read, behind, &mut fields);
        put_bytes("data", head.len() as u64, data, &mut fields);
        if (available.len() as u64) < total {
            result = Err(DecodeError::Truncated {
                field: "packet",
                offset: 0,
                needed: total,
                available: available.len() as u64,
            });
        }
    }
    let result = result.map(Some);
    Explanation { fields, result }
}

/// Bytes before the data of a copy, if it is one and they are there.
fn copy_head(packet: &[u8], limits: Limits) -> Option<usize> {
    let mut reader = Reader::new(packet, 0);
    reader.u64("packet length").ok()?;
    let head = match PacketCode(reader.i32("packet code").ok()?) {
        PacketCode::COPY_ACK => START,
        PacketCode::COPY_TO_REMOTE => START + tensor::len(reader, limits).ok()? + 8,
        _ => return None,
    };
    let head = usize::try_from(head).ok()?;
    (head <= packet.len()).then_some(head)
}

fn put_bytes<'a>(name: &'static str, offset: u64, bytes: &'a [u8], fields: &mut Vec<Field<'a>>) {
    if !bytes.is_empty() {
        fields.push(Field {
            name,
            item: None,
            offset,
            len: bytes.len() as u64,
            value: FieldValue::Bytes(bytes),
            meaning: None,
        });
    }
}

/// Says what integers mean that are codes.
fn name_codes(fields: &mut [Field<'_>], packet: &Packet<'_>, dialect: Dialect) {
    let item = match packet {
        // The result of a call: its type, and the value.
        Packet::Return(values) if values.len() >= 2 => 0,
        Packet::Syscall(Syscall::GetAttr { .. } | Syscall::FreeHandle { .. }) => 1,
        _ => return,
    };
    let is_it = |field: &&mut Field<'_>| field.item == Some(item) && field.name == "integer";
    let Some(field) = fields.iter_mut().find(is_it) else {
        return;
    };
    let FieldValue::Int(code) = field.value else {
        return;
    };
    let meaning = match packet {
        Packet::Syscall(Syscall::GetAttr { attr, .. }) => attr.name(),
        _ => dialect.type_name(code),
    };
    field.meaning = meaning.map(Into::into);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::tests::strategies as any_of;
    use proptest::prelude::*;

    fn explained(bytes: &[u8]) -> Explanation<'_, Option<Packet<'_>>> {
        explain(bytes, Dialect::Ffi, Limits::default())
    }

    /// Fields as `offset+len name value`, with the meaning in brackets and the number of the value.
    fn lines(explanation: &Explanation<'_, Option<Packet<'_>>>) -> Vec<String> {
        let line = |field: &Field<'_>| {
            let item = field
                .item
                .map(|item| format!("#{item} "))
                .unwrap_or_default();
            let meaning = field.meaning.as_deref();
            let meaning = meaning
                .map(|meaning| format!(" ({meaning})"))
                .unwrap_or_default();
            let Field {
                name,
                offset,
                len,
                value,
                ..
            } = field;
            format!("{offset}+{len} {item}{name} {value}{meaning}")
        };
        explanation.fields.iter().map(line).collect()
    }

    #[test]
    fn every_byte_of_a_packet_belongs_to_a_field() {
        // The data of this copy are the two last bytes.
        let copy = b"\x36\0\0\0\0\0\0\0\x07\0\0\0\0\x20\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\x01\x08\x01\0\
            \x02\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\xab\xcd";
        let explained = explained(copy);
        assert_eq!(
            lines(&explained),
            [
                "0+8 packet length 54",
                "8+4 packet code 7 (copy to remote)",
                "12+8 data pointer 0x2000",
                "20+4 device type 1 (cpu)",
                "24+4 device id 0",
                "28+4 number of dimensions 1",
                "32+1 type code 1",
                "33+1 bits of a lane 8",
                "34+2 lanes 1 (uint8)",
                "36+8 size of a dimension 2",
                "44+8 byte offset 5",
                "52+8 bytes to copy 2",
                "60+2 data abcd",
            ]
        );
        assert!(matches!(
            explained.result,
            Ok(Some(Packet::CopyTo { nbytes: 2, .. }))
        ));
    }

    #[test]
    fn values_are_numbered_and_codes_have_names() {
        let result = b"\x27\0\0\0\0\0\0\0\x04\0\0\0\x02\0\0\0\x01\0\0\0\x0b\0\0\0\0\0\0\0\
            \x08\0\0\0\x07\0\0\0\0\0\0\0abc\x1bdef";
        assert_eq!(
            lines(&explained(result)),
            [
                "0+8 packet length 39",
                "8+4 packet code 4 (return)",
                "12+4 number of values 2",
                "16+4 #0 type index 1 (Int)",
                "20+8 #0 integer 11 (SmallStr)",
                "28+4 #1 type index 8 (RawStr)",
                "32+8 #1 length 7",
                "40+7 #1 text \"abc\\u{1b}def\"",
            ]
        );
    }

    #[test]
    fn a_stop_is_told_with_all_that_was_read_before_it() {
        let name = b"\x17\0\0\0\0\0\0\0\x09\0\0\0\x01\0\0\0\x08\0\0\0\xe8\x03\0\0\0\0\0\0abc";
        let explained = explained(name);
        assert_eq!(explained.fields.len(), 5);
        assert_eq!((explained.stop(), explained.understood()), (Some(28), 28));

        // A wrong argument is found when all of it was read.
        let wrong = b"\x14\0\0\0\0\0\0\0\x09\0\0\0\x01\0\0\0\x01\0\0\0\x07\0\0\0\0\0\0\0";
        let explained = super::tests::explained(wrong);
        assert_eq!((explained.stop(), explained.understood()), (Some(16), 28));
    }

    #[test]
    fn a_part_of_a_packet_is_explained_as_far_as_it_goes() {
        assert_eq!(
            explained(b"").result,
            Err(DecodeError::Truncated {
                field: "packet length",
                offset: 0,
                needed: 8,
                available: 0,
            })
        );
        assert_eq!(explained(&[0; 8]).result, Ok(None));
        // All but the last of 16 bytes of data.
        let ack = b"\x14\0\0\0\0\0\0\0\x08\0\0\0abcdefghijklmno";
        let explained = explained(ack);
        assert_eq!(
            lines(&explained)[2],
            "12+15 data 6162636465666768696a6b6c6d6e6f"
        );
        assert_eq!(
            explained.result.unwrap_err().to_string(),
            "packet at offset 0 needs 28 bytes, but only 27 are left in the message"
        );
    }

    #[test]
    fn what_an_exception_has_behind_its_text_is_ignored() {
        let text = b"\x17\0\0\0\0\0\0\0\x05\0\0\0\x02\0\0\0\x08\0\0\0\x01\0\0\0\0\0\0\0a\x01\x02";
        assert_eq!(lines(&explained(text))[6], "29+2 ignored 0102");
    }

    proptest! {
        #[test]
        fn what_is_explained_is_what_is_decoded(packet in any_of::packet(), payload: Vec<u8>) {
            let mut bytes = Vec::new();
            packet.encode(Dialect::Ffi, Limits::default(), &mut bytes).unwrap();
            prop_assume!(packet.payload() == 0);
            let end = bytes.len();
            bytes.extend(payload);
            let explained = explained(&bytes);
            prop_assert_eq!(explained.understood(), end as u64);
            let mut at = 0;
            for field in &explained.fields {
                prop_assert_eq!(field.offset, at, "{:?}", field);
                at = field.end();
            }
            prop_assert_eq!(explained.result, Ok(Some(packet)));
        }

        #[test]
        fn arbitrary_bytes_are_harmless(bytes: Vec<u8>, code in 0..23_u8, cut: prop::sample::Index) {
            let _ = explained(&bytes).stop();
            let length = (bytes.len() as u64 + 4).to_le_bytes();
            let packet = [&length[..], &[code, 0, 0, 0], &bytes].concat();
            let cut = &packet[..cut.index(packet.len())];
            for packet in [&packet[..], cut] {
                let explained = explained(packet);
                prop_assert!(explained.understood() <= packet.len() as u64);
                let _ = explained.stop();
            }
        }
    }
}
