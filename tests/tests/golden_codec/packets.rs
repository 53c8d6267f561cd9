//! The packets of sessions, as the client's end of a session sees them.

use std::collections::BTreeMap;

use rpc_proto::endpoint::{Asked, Reply};
use rpc_proto::packet::{Frame, encode_returned, scan};
use rpc_proto::{ClientEndpoint, Dialect, Limits, Packet, Received, ServerEndpoint, Value, Values};

use crate::describe;
use crate::exceptions::{Exception, Verdict};
use crate::odd_packets::{REPLIES, REQUESTS, ffi, legacy};
use crate::vectors::{Direction, FFI, Kind, LEGACY, Message, Peers, Trace};

#[test]
fn requests_of_ffi_peers() {
    requests(FFI, ffi::REQUESTS, 1074);
}

#[test]
fn requests_of_legacy_peers() {
    requests(LEGACY, legacy::REQUESTS, 983);
}

fn requests(peers: Peers, own: &[Exception], reproduced: usize) {
    let mut verdict = Verdict::new(&[REQUESTS, own]);
    for trace in peers.traces() {
        for message in trace.packets().filter(|message| trace.is_request(message)) {
            let outcome = reproduce(message, trace.dialect);
            verdict.add(&trace.file, message.i, outcome);
        }
    }
    verdict.assert(reproduced);
}

// Of all replies (1007, and 904 of legacy peers), those that come after the end of a session or a request
// that no client of ours sends are read as packets only: a client takes the others.

#[test]
fn replies_of_ffi_peers() {
    replies(FFI, ffi::REPLIES, 980, 968);
}

#[test]
fn replies_of_legacy_peers() {
    replies(LEGACY, legacy::REPLIES, 884, 864);
}

fn replies(peers: Peers, own: &[Exception], reproduced: usize, taken: usize) {
    let mut verdict = Verdict::new(&[REPLIES, own]);
    let mut by_a_client = 0;
    for trace in peers.traces() {
        let mut clients: BTreeMap<usize, Client> = BTreeMap::new();
        for message in trace.packets() {
            let client = clients
                .entry(message.conn)
                .or_insert_with(|| Client::new(trace.dialect));
            if trace.is_request(message) {
                client.request(&message.bytes());
            } else {
                by_a_client += usize::from(client.endpoint.is_some());
                let outcome = reproduce(message, trace.dialect).and(client.reply(&message.bytes()));
                verdict.add(&trace.file, message.i, outcome);
            }
        }
    }
    verdict.assert(reproduced);
    assert_eq!(by_a_client, taken, "replies that a client took");
}

// Refused: other versions, requests before the opening, a second one, and wrong arguments. Broken: the
// packets of malformed_packets.json that are so.

#[test]
fn requests_as_a_server_takes_them_of_ffi_peers() {
    assert_eq!(as_a_server_takes_them(FFI), (1074, 13, 24));
}

#[test]
fn requests_as_a_server_takes_them_of_legacy_peers() {
    assert_eq!(as_a_server_takes_them(LEGACY), (975, 13, 24));
}

/// The server's end reads every request as what it is, or refuses it, or ends the session: how many of
/// each there are.
fn as_a_server_takes_them(peers: Peers) -> (usize, usize, usize) {
    let mut servers: BTreeMap<(String, usize), ServerEndpoint> = BTreeMap::new();
    let (mut done, mut refused, mut broken) = (0, 0, 0);
    for trace in peers.traces() {
        for message in trace.packets() {
            let server = servers
                .entry((trace.file.clone(), message.conn))
                .or_insert_with(|| ServerEndpoint::new(trace.dialect, Limits::default()));
            let bytes = message.bytes();
            if !trace.is_request(message) {
                // The first one that is no exception answers the opening of the session.
                if bytes.get(8).is_some_and(|&code| code != 5) {
                    server.open();
                }
                continue;
            }
            match (server.receive(&bytes), read(&bytes, trace.dialect)) {
                (Ok(Asked::Request { consumed, packet }), Ok(Some((same, payload)))) => {
                    assert_eq!(packet, same);
                    assert_eq!(consumed + payload.len(), bytes.len());
                    done += 1;
                }
                (Ok(Asked::Refused { .. }), _) => refused += 1,
                (Ok(Asked::Ended), Ok(Some((Packet::Shutdown, _)))) => done += 1,
                (Ok(Asked::Incomplete { .. }), Ok(None)) => done += 1,
                (Err(_), _) => broken += 1,
                other => panic!("{other:?}"),
            }
        }
    }
    (done, refused, broken)
}

/// Reads a packet, compares what it says with what the recorder understood, and writes it again.
fn reproduce(message: &Message, dialect: Dialect) -> Result<(), String> {
    let bytes = message.bytes();
    let decoded = message
        .decoded
        .as_ref()
        .ok_or("the recorder did not understand it")?;
    let Some((packet, payload)) = read(&bytes, dialect)? else {
        return same(&[0; 8], &bytes);
    };
    if decoded.get("malformed").is_some() {
        return Err("understood, but the recorder says that it is malformed".to_owned());
    }
    let (found, expected) = (describe::packet(&packet), describe::recorded(decoded));
    if found != expected {
        return Err(format!("means {found}, where the recorder says {expected}"));
    }
    same(&write(&packet, payload, dialect), &bytes)
}

/// The packet that `bytes` are, and its payload; or nothing if it is an empty one.
fn read(bytes: &[u8], dialect: Dialect) -> Result<Option<(Packet<'_>, &[u8])>, String> {
    let frame = scan(bytes, dialect, Limits::default()).map_err(|error| error.to_string())?;
    let Frame::Packet { head, payload } = frame else {
        return if frame == Frame::Empty {
            Ok(None)
        } else {
            Err(format!("{frame:?}"))
        };
    };
    let (head, behind) = bytes.split_at(usize::try_from(head).unwrap());
    assert_eq!(behind.len() as u64, payload);
    let packet = Packet::decode(head, payload, dialect, Limits::default());
    packet
        .map(|packet| Some((packet, behind)))
        .map_err(|error| error.to_string())
}

fn write(packet: &Packet<'_>, payload: &[u8], dialect: Dialect) -> Vec<u8> {
    let mut out = Vec::new();
    packet.encode(dialect, Limits::default(), &mut out).unwrap();
    out.extend_from_slice(payload);
    out
}

fn same(written: &[u8], recorded: &[u8]) -> Result<(), String> {
    if written == recorded {
        return Ok(());
    }
    Err(format!(
        "written as {written:02x?}, where the recording has {recorded:02x?}"
    ))
}

/// The client's end of one connection. It is gone once a request cannot be understood or a reply breaks
/// the session.
struct Client {
    dialect: Dialect,
    endpoint: Option<ClientEndpoint<usize>>,
    requests: usize,
    replies: usize,
}

impl Client {
    fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            endpoint: Some(ClientEndpoint::new(dialect, Limits::default())),
            requests: 0,
            replies: 0,
        }
    }

    fn request(&mut self, bytes: &[u8]) {
        match (&mut self.endpoint, read(bytes, self.dialect)) {
            (Some(endpoint), Ok(Some((packet, _)))) => {
                if endpoint
                    .request(&packet, self.requests, &mut Vec::new())
                    .is_ok()
                {
                    self.requests += 1;
                } else {
                    self.endpoint = None;
                }
            }
            (_, Ok(_)) => {}
            (endpoint, Err(_)) => *endpoint = None,
        }
    }

    /// Takes a reply, and writes again what it is told of it.
    fn reply(&mut self, bytes: &[u8]) -> Result<(), String> {
        let dialect = self.dialect;
        let Some(endpoint) = &mut self.endpoint else {
            return Ok(());
        };
        let (consumed, reply) = match endpoint.receive(bytes) {
            Ok(Received::Reply {
                consumed,
                token,
                reply,
            }) => {
                assert_eq!(token, self.replies);
                self.replies += 1;
                (consumed, reply)
            }
            Ok(Received::Ended { text }) => {
                let packet = text.map_or(Packet::Shutdown, |text| Packet::Exception { text });
                self.endpoint = None;
                return same(&write(&packet, &[], dialect), bytes);
            }
            Ok(Received::Incomplete { .. }) => return same(&[0; 8], bytes),
            Err(error) => {
                self.endpoint = None;
                return Err(error.to_string());
            }
            Ok(other) => panic!("{other:?}"),
        };
        let payload = &bytes[consumed..];
        assert_eq!(payload.len() as u64, reply.payload());
        let packet = match reply {
            Reply::Done => Packet::void(),
            Reply::Pointer(address) => Packet::Return(Values::from_iter([Value::Pointer(address)])),
            Reply::Attr(value) => Packet::Return(Values::from_iter([value])),
            Reply::Returned(returned) => {
                let mut out = Vec::new();
                encode_returned(dialect, &returned, Limits::default(), &mut out).unwrap();
                return same(&out, bytes);
            }
            Reply::BulkReturn { kind, nbytes } => Packet::BulkReturn { kind, nbytes },
            Reply::Data { nbytes } => Packet::CopyAck { nbytes },
            Reply::Exception(text) => Packet::Exception { text },
            Reply::Malformed(error) => return Err(error.to_string()),
            other => panic!("{other:?}"),
        };
        same(&write(&packet, payload, dialect), bytes)
    }
}

impl Trace {
    fn packets(&self) -> impl Iterator<Item = &Message> {
        self.messages
            .iter()
            .filter(|message| message.kind == Kind::Packet)
    }

    /// Does it come from the client of a session? A server connects to its proxy itself.
    fn is_request(&self, message: &Message) -> bool {
        let connection = &self.connections[message.conn];
        assert_eq!(connection.id, message.conn);
        let from_client = if connection.link == "server-proxy" {
            Direction::S2c
        } else {
            Direction::C2s
        };
        message.dir == from_client
    }
}
