//! The bytes of each connection, in pieces of other sizes than they came, make the recorded messages
//! again, and show protocol and dialect.

use std::time::Duration;

use rpc_proto::Dialect;
use rpc_recording::{
    About, Conversation, Direction, Kind, Message, Protocol, Recorder, RecorderLimits,
};

use crate::traces;

/// Directions that hold what is no message and that the recorder called one: scenario and connection.
const NO_MESSAGE: &[(&str, usize, Direction)] = &[
    ("fake_server_replies", 0, Direction::S2c),
    ("handshake_bad", 0, Direction::C2s),
    ("handshake_bad", 1, Direction::C2s),
    // A packet of two bytes.
    ("malformed_packets", 15, Direction::C2s),
    ("proxy_mismatch_duplicate", 7, Direction::C2s),
    ("tracker_errors", 16, Direction::C2s),
];

fn spoken(conversation: &Conversation) -> impl Iterator<Item = usize> + '_ {
    let connections = conversation.connections.iter();
    let spoken = connections.filter(|connection| connection.proto != Protocol::Ws);
    spoken.map(|connection| connection.id)
}

/// What is compared of a message.
fn said(message: &Message) -> (Kind, &[u8]) {
    (message.kind, &message.bytes)
}

#[test]
fn pieces_make_the_recorded_messages() {
    let mut compared = 0;
    for (name, conversation) in traces() {
        let scenario = name.split_once('/').unwrap().1;
        for id in spoken(&conversation) {
            for direction in [Direction::C2s, Direction::S2c] {
                let messages = conversation.messages.iter();
                let messages: Vec<_> = messages
                    .filter(|message| (message.conn, message.dir) == (id, direction))
                    .collect();
                let recorded: Vec<_> = messages.iter().map(|message| said(message)).collect();
                for size in [1, 7, 4096] {
                    let again = in_pieces(&messages, direction, size);
                    let again: Vec<_> = again.messages.iter().map(said).collect();
                    let differs = NO_MESSAGE.contains(&(scenario, id, direction));
                    let place = format!("{name} {id} {direction:?} {size}");
                    assert_eq!(
                        again != recorded,
                        differs,
                        "{place}:\n{again:?}\n{recorded:?}"
                    );
                    compared += again.len();
                }
            }
        }
    }
    assert_eq!(compared, 18105);
}

fn in_pieces(messages: &[&Message], direction: Direction, size: usize) -> Conversation {
    let bytes: Vec<u8> = messages
        .iter()
        .flat_map(|message| message.bytes.clone())
        .collect();
    let mut recorder = Recorder::new(About::default(), RecorderLimits::default());
    let connection = recorder.connect("", None, None);
    for piece in bytes.chunks(size) {
        recorder.pass(connection, direction, piece, Duration::ZERO);
    }
    if messages.iter().any(|message| message.kind == Kind::Close) {
        recorder.end(connection, direction, Duration::ZERO);
    }
    recorder.conversation()
}

#[test]
fn protocol_and_dialect_are_found_out() {
    let mut found = [(Dialect::Ffi, 0), (Dialect::Legacy, 0)];
    let mut unknown = 0;
    for (name, conversation) in traces() {
        let mut recorder = Recorder::new(About::default(), RecorderLimits::default());
        for connection in &conversation.connections {
            recorder.connect(&connection.link, None, None);
        }
        for message in &conversation.messages {
            recorder.pass(message.conn, message.dir, &message.bytes, Duration::ZERO);
        }
        let again = recorder.conversation();
        for id in spoken(&conversation) {
            let (ours, recorded) = (&again.connections[id], &conversation.connections[id]);
            // Of those that began with something else nothing can be found out.
            unknown += usize::from(ours.proto == Protocol::Unknown);
            assert!(
                [recorded.proto, Protocol::Unknown].contains(&ours.proto),
                "{name} {id}: {:?}",
                ours.proto
            );
            if let Some(dialect) = ours.dialect {
                assert_eq!(Some(dialect), recorded.dialect, "{name} {id}");
                for (counted, count) in &mut found {
                    *count += usize::from(*counted == dialect);
                }
            }
        }
    }
    assert_eq!(found, [(Dialect::Ffi, 130), (Dialect::Legacy, 126)]);
    assert_eq!(unknown, 12);
}
