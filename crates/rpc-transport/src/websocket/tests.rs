//! Both directions together, and with what peers may send and must not.

use std::io::IoSlice;

use proptest::collection::vec;
use proptest::prelude::*;

use super::violation::Violation;
use super::{Inbound, Next, Outbound, Role};

/// What came out of a direction.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    payload: Vec<u8>,
    pings: Vec<Vec<u8>>,
    close: Option<Option<u16>>,
    violation: Option<Violation>,
}

impl Seen {
    /// Takes all that is in `wire`, into targets of `target` bytes; `false` when the stream is over.
    fn take(&mut self, inbound: &mut Inbound, mut wire: &[u8], target: usize) -> bool {
        let mut target = vec![0; target];
        loop {
            match inbound.next(&mut target) {
                Ok(Next::Payload(count)) => self.payload.extend(&target[..count]),
                Ok(Next::Ping(payload)) => self.pings.push(payload),
                Ok(Next::Close(code)) => self.close = Some(code),
                Ok(Next::End) => return false,
                Ok(Next::More | Next::Straight(_)) if wire.is_empty() => return true,
                Ok(Next::More) => {
                    let room = inbound.room();
                    let count = room.len().min(wire.len());
                    room[..count].copy_from_slice(&wire[..count]);
                    inbound.came(count);
                    wire = &wire[count..];
                }
                Ok(Next::Straight(most)) => {
                    let count = most.min(wire.len());
                    target[..count].copy_from_slice(&wire[..count]);
                    inbound.came_straight(&mut target[..count]);
                    self.payload.extend(&target[..count]);
                    wire = &wire[count..];
                }
                Err(violation) => {
                    self.violation = Some(violation);
                    return false;
                }
            }
        }
    }
}

/// What comes in at `ours` if `wire` comes in one piece.
fn seen(ours: Role, wire: &[u8]) -> Seen {
    let mut seen = Seen::default();
    seen.take(&mut Inbound::new(ours, &[]), wire, 100);
    seen
}

/// A frame as RFC 6455, section 5.2, draws it, from the other end of `ours`; the length in as many bytes as
/// `wide` says.
fn frame(ours: Role, first: u8, length: u64, wide: usize, payload: &[u8]) -> Vec<u8> {
    let mask = [0xa1, 0x02, 0x93, 0xf4];
    let masked = if ours == Role::Server { 0x80 } else { 0 };
    let mut frame = vec![first];
    match wide {
        0 => frame.push(masked | u8::try_from(length).unwrap()),
        2 => {
            frame.push(masked | 126);
            frame.extend(u16::try_from(length).unwrap().to_be_bytes());
        }
        _ => {
            frame.push(masked | 127);
            frame.extend(length.to_be_bytes());
        }
    }
    if masked == 0 {
        frame.extend(payload);
    } else {
        frame.extend(mask);
        frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(a, b)| a ^ b));
    }
    frame
}

fn whole(ours: Role, first: u8, payload: &[u8]) -> Vec<u8> {
    let wide = match payload.len() {
        0..126 => 0,
        126..65536 => 2,
        _ => 8,
    };
    frame(ours, first, payload.len() as u64, wide, payload)
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count)
        .map(|index| (index * 7 % 251).to_le_bytes()[0])
        .collect()
}

/// Frames of all kinds and forms, and what is to be seen of them.
fn all_kinds(ours: Role) -> (Vec<u8>, Seen) {
    let payload = bytes(1000);
    let wire = [
        whole(ours, 0x82, &payload[..10]),
        whole(ours, 0x82, &[]),
        whole(ours, 0x89, b"one"),
        // A message in four parts, with a ping and a pong inside.
        whole(ours, 0x02, &payload[10..135]),
        whole(ours, 0x89, &[]),
        whole(ours, 0x00, &payload[135..300]),
        whole(ours, 0x00, &[]),
        whole(ours, 0x8a, b"unasked"),
        whole(ours, 0x80, &payload[300..301]),
        // Lengths in more bytes than they need.
        frame(ours, 0x82, 99, 2, &payload[301..400]),
        frame(ours, 0x82, 600, 8, &payload[400..]),
        whole(ours, 0x89, &payload[..125]),
        whole(ours, 0x88, &[0x03, 0xe9, b'b', b'y', b'e']),
    ];
    let seen = Seen {
        pings: vec![b"one".to_vec(), vec![], payload[..125].to_vec()],
        payload,
        close: Some(Some(1001)),
        violation: None,
    };
    (wire.concat(), seen)
}

const ROLES: [Role; 2] = [Role::Client, Role::Server];

#[test]
fn frames_may_be_split_at_any_byte() {
    for ours in ROLES {
        let (wire, expected) = all_kinds(ours);
        for cut in 0..=wire.len() {
            let mut seen = Seen::default();
            let mut inbound = Inbound::new(ours, &[]);
            let (first, second) = wire.split_at(cut);
            assert_eq!(seen.take(&mut inbound, first, 100), cut < wire.len());
            seen.take(&mut inbound, second, 100);
            assert_eq!(seen, expected, "split at {cut}");
        }
    }
}

#[test]
fn bytes_may_come_one_by_one_and_be_taken_so() {
    for ours in ROLES {
        let (wire, expected) = all_kinds(ours);
        for target in [1, 2, 7, 1 << 20] {
            let mut seen = Seen::default();
            let mut inbound = Inbound::new(ours, &[]);
            for byte in wire.chunks(1) {
                seen.take(&mut inbound, byte, target);
            }
            assert_eq!(seen, expected, "into targets of {target}");
        }
    }
}

#[test]
fn what_was_read_with_the_handshake_comes_first() {
    for ours in ROLES {
        let (wire, expected) = all_kinds(ours);
        for cut in 0..=wire.len() {
            let mut seen = Seen::default();
            let (first, second) = wire.split_at(cut);
            seen.take(&mut Inbound::new(ours, first), second, 100);
            assert_eq!(seen, expected, "split at {cut}");
        }
    }
}

#[cfg(feature = "async")]
#[test]
fn another_direction_can_go_on_at_any_byte() {
    for ours in ROLES {
        let (wire, expected) = all_kinds(ours);
        for cut in 0..wire.len() {
            let mut seen = Seen::default();
            let mut inbound = Inbound::new(ours, &[]);
            let (first, second) = wire.split_at(cut);
            seen.take(&mut inbound, first, 100);
            // Some payload of what comes next is not taken.
            let (unread, second) = second.split_at(second.len().min(20));
            let room = inbound.room();
            room[..unread.len()].copy_from_slice(unread);
            inbound.came(unread.len());
            let unread = inbound.into_unread();
            seen.take(&mut Inbound::new(ours, &unread), second, 100);
            assert_eq!(seen, expected, "handed over at {cut}");
        }
    }
}

#[test]
fn a_frame_of_any_length_is_taken_as_it_comes() {
    const GIB: u64 = 1 << 30;
    const MOST: u64 = i64::MAX.unsigned_abs();
    for ours in ROLES {
        for length in [GIB, MOST] {
            let wire = frame(ours, 0x82, length, 8, b"the begin");
            let mut inbound = Inbound::new(ours, &[]);
            let mut seen = Seen::default();
            assert!(seen.take(&mut inbound, &wire, 1 << 20));
            assert_eq!(seen.payload, b"the begin");
            // What else comes goes past the buffer, which stays as it was.
            assert_eq!(
                inbound.next(&mut vec![0; 1 << 20]),
                Ok(Next::Straight(1 << 20))
            );
            assert_eq!(inbound.room().len(), 8 << 10);
        }
    }
}

#[test]
fn what_is_no_websocket_of_binary_messages_is_refused_for_good() {
    use Violation::*;
    for ours in ROLES {
        let text = |first, payload: &[u8]| whole(ours, first, payload);
        let other = match ours {
            Role::Client => Role::Server,
            Role::Server => Role::Client,
        };
        let mask = match ours {
            Role::Client => Masked,
            Role::Server => Unmasked,
        };
        for (wire, violation, code) in [
            (text(0xc2, b"x"), ReservedBits(0xc2), 1002),
            (text(0xa2, b"x"), ReservedBits(0xa2), 1002),
            (text(0x92, b"x"), ReservedBits(0x92), 1002),
            (text(0x83, b"x"), Opcode(3), 1002),
            (text(0x8b, b"x"), Opcode(11), 1002),
            (text(0x81, b"x"), Text, 1003),
            (text(0x01, b"x"), Text, 1003),
            (text(0x80, b"x"), Continuation, 1002),
            (
                [text(0x02, b"x"), text(0x82, b"x")].concat(),
                Interrupted,
                1002,
            ),
            (text(0x09, b"x"), FragmentedControl, 1002),
            (frame(ours, 0x89, 126, 2, &[0; 126]), LongControl(126), 1002),
            (
                frame(ours, 0x88, 1 << 40, 8, &[]),
                LongControl(1 << 40),
                1002,
            ),
            (frame(ours, 0x82, 1 << 63, 8, &[]), Length(1 << 63), 1002),
            (text(0x88, &[3]), CloseReason, 1002),
            (whole(other, 0x82, b"x"), mask, 1002),
        ] {
            let mut inbound = Inbound::new(ours, &[]);
            let mut seen = Seen::default();
            assert!(!seen.take(&mut inbound, &wire, 100), "{violation:?}");
            assert_eq!(seen.violation, Some(violation));
            assert_eq!(inbound.next(&mut [0]), Err(violation));
            assert_eq!(violation.code(), code);
            // The whole text fits into a close frame, whatever numbers are in it.
            assert!(violation.to_string().len() < 110, "{violation}");
        }
    }
}

#[test]
fn the_end_of_the_connection_is_the_end_wherever_it_is() {
    for ours in ROLES {
        let (wire, _) = all_kinds(ours);
        for cut in 0..wire.len() {
            let mut inbound = Inbound::new(ours, &[]);
            Seen::default().take(&mut inbound, &wire[..cut], 100);
            match inbound.next(&mut [0; 100]) {
                Ok(Next::More) => inbound.came(0),
                Ok(Next::Straight(_)) => inbound.came_straight(&mut []),
                next => panic!("{next:?} at {cut}"),
            }
            assert_eq!(inbound.next(&mut [0]), Ok(Next::End));
        }
    }
}

/// The other end of a direction.
fn other(ours: Role) -> Role {
    match ours {
        Role::Client => Role::Server,
        Role::Server => Role::Client,
    }
}

/// Takes all that is to be sent, in pieces of `most`.
fn drain(outbound: &mut Outbound, most: usize) -> Vec<u8> {
    let mut wire = Vec::new();
    loop {
        let unsent = outbound.unsent().unwrap();
        if unsent.is_empty() {
            return wire;
        }
        let piece = &unsent[..most.min(unsent.len())];
        wire.extend(piece);
        let count = piece.len();
        outbound.sent(count);
    }
}

#[test]
fn frames_have_a_bounded_length_and_a_key_each_if_a_client_sends_them() {
    let large = bytes(1 << 20);
    for ours in ROLES {
        let mut outbound = Outbound::new(ours);
        let mut wire = Vec::new();
        let mut keys = Vec::new();
        let mut rest = &large[..];
        while !rest.is_empty() {
            let count = outbound
                .put(&[IoSlice::new(&rest[..1]), IoSlice::new(&rest[1..])])
                .unwrap();
            assert_eq!(count, (64 << 10).min(rest.len()));
            rest = &rest[count..];
            let frame = drain(&mut outbound, 1000);
            let head = if ours == Role::Client { 14 } else { 10 };
            assert_eq!(frame.len(), count + head);
            keys.push(frame[10..14].to_vec());
            wire.extend(frame);
        }
        let seen = seen(other(ours), &wire);
        assert_eq!(seen.violation, None);
        assert!(seen.payload == large);
        if ours == Role::Client {
            keys.sort();
            keys.dedup();
            assert!(keys.len() > 14, "keys are drawn, not counted: {keys:?}");
        }
    }
}

#[test]
fn an_answer_goes_between_frames_and_the_last_ping_counts() {
    for ours in ROLES {
        let mut outbound = Outbound::new(ours);
        assert_eq!(outbound.put(&[IoSlice::new(b"one")]).unwrap(), 3);
        let mut wire = outbound.unsent().unwrap()[..2].to_vec();
        outbound.sent(2);
        for ping in 0..100 {
            outbound.pong(vec![ping]);
        }
        wire.extend(drain(&mut outbound, 1));
        outbound.put(&[IoSlice::new(b"two")]).unwrap();
        wire.extend(drain(&mut outbound, 100));
        let pong = [0x8a, 0x01, 99];
        if ours == Role::Server {
            assert_eq!(wire[5..8], pong);
        }
        assert_eq!(seen(other(ours), &wire).payload, b"onetwo");
    }
}

#[test]
fn a_close_frame_is_the_last_one_and_the_first_reason_counts() {
    for ours in ROLES {
        let mut outbound = Outbound::new(ours);
        outbound.put(&[IoSlice::new(b"last")]).unwrap();
        outbound.close(Some(1000));
        outbound.refuse(Violation::Text);
        outbound.pong(b"too late".to_vec());
        let wire = drain(&mut outbound, 3);
        let seen = seen(other(ours), &wire);
        assert_eq!(
            (&seen.payload[..], seen.close),
            (&b"last"[..], Some(Some(1000)))
        );
        let error = outbound.put(&[IoSlice::new(b"more")]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
        assert!(outbound.unsent().unwrap().is_empty());
    }
}

#[test]
fn a_refusal_says_why() {
    let mut outbound = Outbound::new(Role::Server);
    outbound.refuse(Violation::Text);
    let wire = drain(&mut outbound, 1000);
    assert_eq!(wire[2..4], 1003_u16.to_be_bytes());
    assert_eq!(
        wire[4..],
        *b"expected binary messages, found a text message"
    );
    let mut outbound = Outbound::new(Role::Server);
    outbound.close(None);
    assert_eq!(drain(&mut outbound, 1000), [0x88, 0]);
}

proptest! {
    /// Whatever is written in whatever pieces, that comes, however it is cut on its way.
    #[test]
    fn bytes_arrive_in_order(
        pieces in vec(vec(any::<u8>(), 0..300), 0..20),
        pings in vec(0..20_usize, 0..5),
        takes in 1..400_usize,
        comes in 1..400_usize,
        target in 1..400_usize,
    ) {
        for ours in ROLES {
            let mut outbound = Outbound::new(ours);
            let mut wire = Vec::new();
            for (index, piece) in pieces.iter().enumerate() {
                let (head, tail) = piece.split_at(piece.len() / 3);
                let slices = [IoSlice::new(head), IoSlice::new(tail)];
                prop_assert_eq!(outbound.put(&slices).unwrap(), piece.len());
                if pings.contains(&index) {
                    outbound.pong(vec![0; index]);
                }
                wire.extend(drain(&mut outbound, takes));
            }
            let mut seen = Seen::default();
            let mut inbound = Inbound::new(other(ours), &[]);
            for piece in wire.chunks(comes) {
                prop_assert!(seen.take(&mut inbound, piece, target));
            }
            prop_assert_eq!(seen.payload, pieces.concat());
        }
    }

    /// Bytes of any kind are no reason to panic.
    #[test]
    fn any_bytes_are_taken_or_refused(wire in vec(any::<u8>(), 0..2000)) {
        for ours in ROLES {
            seen(ours, &wire);
        }
    }
}
