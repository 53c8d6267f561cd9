//! Which protocol and dialect bytes are of, where nobody says.

use rpc_proto::codes::{HandshakeCode, PacketCode, RPC_MAGIC, TRACKER_MAGIC};
use rpc_proto::explain::{Extent, FieldValue};
use rpc_proto::tracker::Request;
use rpc_proto::{DecodeError, Dialect, Limits, handshake, packet, tracker};

use crate::Direction;
use crate::cut::Stage;

/// The dialect in which these packets of one session are written, if they show one: the first that can be
/// read in one dialect alone decides.
///
/// Packets without values, and a request that opens a session without arguments, are the same in both.
pub fn dialect<'a>(packets: impl IntoIterator<Item = &'a [u8]>) -> Option<Dialect> {
    packets.into_iter().find_map(|bytes| {
        let can_read = |dialect| can_read(bytes, dialect);
        match (can_read(Dialect::Ffi), can_read(Dialect::Legacy)) {
            (true, false) => Some(Dialect::Ffi),
            (false, true) => Some(Dialect::Legacy),
            _ => None,
        }
    })
}

fn can_read(bytes: &[u8], dialect: Dialect) -> bool {
    match packet::explain(bytes, dialect, Limits::default()).result {
        // Such a packet was read to its end.
        Ok(_) | Err(DecodeError::Argument { .. }) => true,
        Err(_) => false,
    }
}

/// Where in a conversation bytes begin, and who sent them, as far as they tell.
///
/// Whose first bytes are no greeting, handshake, packet or frame is unknown.
#[must_use]
pub fn beginning(bytes: &[u8]) -> (Stage, Option<Direction>) {
    let first = bytes.first_chunk().map(|first| i32::from_le_bytes(*first));
    match first {
        Some(TRACKER_MAGIC) => {
            // Greetings are the same in both directions, and what follows is not.
            let (_, direction) = beginning_of_frame(&bytes[4..]).unzip();
            return (Stage::Beginning, direction);
        }
        Some(code) if HandshakeCode(code).name().is_some() => {
            return (Stage::Beginning, side_of_handshake(code, bytes));
        }
        _ => {}
    }
    let found = beginning_of_packet(bytes).or_else(|| beginning_of_frame(bytes));
    match found {
        Some((stage, direction)) => (stage, Some(direction)),
        None => {
            let why = "the first bytes are no greeting, handshake, packet or frame";
            (Stage::Unknown(why.to_owned()), None)
        }
    }
}

fn side_of_handshake(code: i32, bytes: &[u8]) -> Option<Direction> {
    if code != RPC_MAGIC {
        return Some(Direction::S2c);
    }
    let explained = handshake::explain_answer(bytes, Limits::default());
    let key = explained
        .fields
        .iter()
        .find_map(|field| match &field.value {
            FieldValue::Text(key) => Some(key),
            _ => None,
        })?;
    Some(match key.starts_with("server:") {
        true => Direction::S2c,
        false => Direction::C2s,
    })
}

fn beginning_of_packet(bytes: &[u8]) -> Option<(Stage, Direction)> {
    packet::extent(bytes, Limits::default()).ok()?;
    let explained = packet::explain(bytes, Dialect::default(), Limits::default());
    let code = explained
        .fields
        .iter()
        .find_map(|field| match field.value {
            FieldValue::Int(code) if field.name == "packet code" => i32::try_from(code).ok(),
            _ => None,
        })?;
    let code = PacketCode(code);
    code.name()?;
    let direction = match code {
        PacketCode::RETURN | PacketCode::EXCEPTION | PacketCode::COPY_ACK => Direction::S2c,
        _ => Direction::C2s,
    };
    Some((Stage::Packets, direction))
}

fn beginning_of_frame(bytes: &[u8]) -> Option<(Stage, Direction)> {
    let limit = Limits::default().tracker_reply;
    let Ok(Extent::Exactly(total)) = tracker::frame_extent(bytes, limit) else {
        return None;
    };
    let text = bytes.get(4..usize::try_from(total).ok()?)?;
    let direction = match Request::decode(text) {
        Ok(_) => Direction::C2s,
        Err(_) => Direction::S2c,
    };
    // What is no JSON at all may still begin as a frame does.
    let json = text
        .first()
        .is_some_and(|first| b"[{-0123456789".contains(first));
    json.then_some((Stage::Frames, direction))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialects_are_told_apart() {
        let init_reply = |code: u8| {
            [
                &[12, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0][..],
                &[code, 0, 0, 0],
            ]
            .concat()
        };
        let lookup = |code: u8| {
            [
                &b"\x17\0\0\0\0\0\0\0\x09\0\0\0\x01\0\0\0"[..],
                &[code, 0, 0, 0],
                b"\x03\0\0\0\0\0\0\0abc",
            ]
            .concat()
        };
        let exception = |code: u8| {
            let mut exception = lookup(code);
            exception[8] = 5;
            exception
        };
        let neutral = b"\x15\0\0\0\0\0\0\0\x02\0\0\0\x05\0\0\0\0\0\0\x000.8.0\0\0\0\0";
        for (dialect, of_none, of_text) in [(Dialect::Ffi, 0, 8), (Dialect::Legacy, 4, 11)] {
            let packets = [init_reply(of_none), lookup(of_text), exception(of_text)];
            for packet in &packets {
                let packets = [&neutral[..], packet];
                assert_eq!(super::dialect(packets), Some(dialect), "{packet:?}");
            }
        }
        assert_eq!(super::dialect([&neutral[..]]), None);
    }

    #[test]
    fn beginnings_are_told_apart() {
        let of = |bytes: &[u8]| {
            let (stage, direction) = beginning(bytes);
            let stage = match stage {
                Stage::Beginning => "beginning",
                Stage::Frames => "frames",
                Stage::Packets => "packets",
                Stage::Unknown(_) => "unknown",
            };
            (stage, direction)
        };
        let (c2s, s2c) = (Some(Direction::C2s), Some(Direction::S2c));
        assert_eq!(of(b"\x71\xf2\x02\0"), ("beginning", None));
        assert_eq!(of(b"\x71\xf2\x02\0\x03\0\0\0[1]"), ("beginning", c2s));
        assert_eq!(of(b"\x71\xf2\x02\0\x01\0\0\x000"), ("beginning", s2c));
        assert_eq!(of(b"\x71\xf2\x0f\0\x09\0\0\0client:x1"), ("beginning", c2s));
        assert_eq!(of(b"\x71\xf2\x0f\0\x09\0\0\0server:x1"), ("beginning", s2c));
        assert_eq!(of(b"\x72\xf2\x0f\0"), ("beginning", s2c));
        assert_eq!(of(b"\x04\0\0\0\0\0\0\0\x01\0\0\0"), ("packets", c2s));
        assert_eq!(
            of(b"\x08\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0"),
            ("packets", s2c)
        );
        assert_eq!(of(b"\x02\0\0\0-1"), ("frames", s2c));
        assert_eq!(of(b"\x11\0\0\0[4, \"dev\", \"\", 1]"), ("frames", c2s));
        assert_eq!(of(b"GET / HTTP/1.1\r\n"), ("unknown", None));
        assert_eq!(of(b""), ("unknown", None));
    }
}
