//! Packets on a raw connection, in both directions.

use std::sync::Arc;

use rpc_proto::packet::{Frame, scan};
use rpc_proto::{Dialect, Limits, Packet};

use crate::stage::{Outcome, Stage, Stop};
use crate::transcript::End;
use crate::wire::{Shortfall, Wire};

/// Bytes of a packet's length.
const LENGTH: usize = 8;
/// The longest packet that the suite takes, in bytes.
const LONGEST: u64 = 128 << 20;

/// A connection on which packets pass.
#[derive(Debug)]
pub(crate) struct PacketWire {
    pub(crate) wire: Wire,
    pub(crate) dialect: Dialect,
}

/// A packet that came, whole.
#[derive(Debug, Clone)]
pub(crate) struct Came {
    pub(crate) packet: Packet<'static>,
    pub(crate) payload: Vec<u8>,
    /// All of it, as it came.
    pub(crate) bytes: Vec<u8>,
}

/// What came instead of a packet.
#[derive(Debug)]
pub(crate) enum NoPacket {
    /// Fewer bytes.
    Short(Shortfall),
    /// Bytes that are none, and why.
    Malformed(Vec<u8>, String),
}

impl std::fmt::Display for NoPacket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Short(short) => short.fmt(f),
            Self::Malformed(_, why) => write!(f, "bytes that are no packet: {why}"),
        }
    }
}

impl PacketWire {
    pub(crate) fn stage(&self) -> Arc<Stage> {
        Arc::clone(self.wire.stage())
    }

    /// Sends a packet without payload.
    pub(crate) fn send(&mut self, packet: &Packet<'_>) -> Outcome {
        self.send_with(packet, &[])
    }

    /// Sends a packet, and its payload behind it.
    pub(crate) fn send_with(&mut self, packet: &Packet<'_>, payload: &[u8]) -> Outcome {
        let bytes = encode(packet, payload, self.dialect)?;
        self.wire.send(&bytes);
        Ok(())
    }

    /// Takes the next packet.
    pub(crate) fn receive(&mut self) -> Result<Came, NoPacket> {
        loop {
            let length = self.wire.peek(LENGTH).map_err(NoPacket::Short)?;
            let length = u64::from_le_bytes(length.try_into().unwrap_or_default());
            if length > LONGEST {
                let unread = self.wire.unread().to_vec();
                let why = format!("a length of {length}");
                return Err(NoPacket::Malformed(unread, why));
            }
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let bytes = self.wire.read(LENGTH + length).map_err(NoPacket::Short)?;
            // A packet of no bytes means nothing.
            if length > 0 {
                return decode(bytes, self.dialect);
            }
        }
    }

    /// Takes the next packet, which has to come.
    pub(crate) fn packet(&mut self, check: &str) -> Outcome<Came> {
        match self.receive() {
            Ok(came) => {
                self.stage().passes(check)?;
                Ok(came)
            }
            Err(none) => Err(self.no_packet(check, "a packet", None, &none)),
        }
    }

    /// Checks that the next packet is this one, byte for byte.
    pub(crate) fn expect(&mut self, check: &str, expected: &Packet<'_>) -> Outcome {
        self.expect_with(check, expected, &[])
    }

    /// Checks that the next packet is this one with this payload, byte for byte.
    pub(crate) fn expect_with(
        &mut self,
        check: &str,
        expected: &Packet<'_>,
        payload: &[u8],
    ) -> Outcome {
        let bytes = encode(expected, payload, self.dialect)?;
        let words = format!("{expected:?}");
        match self.receive() {
            Ok(came) => self.came_check(check, came.bytes == bytes, &words, Some(&bytes), &came),
            Err(none) => Err(self.no_packet(check, &words, Some(&bytes), &none)),
        }
    }

    /// Checks something of a packet that came.
    pub(crate) fn came_check(
        &self,
        check: &str,
        holds: bool,
        expected: &str,
        expected_bytes: Option<&[u8]>,
        came: &Came,
    ) -> Outcome {
        let stage = self.wire.stage();
        if holds {
            return stage.passes(check);
        }
        let found = format!("{:?}", came.packet);
        Err(stage.fail_with(check, expected, found, expected_bytes, Some(&came.bytes)))
    }

    /// The failure of a check that waited for a packet.
    pub(crate) fn no_packet(
        &self,
        check: &str,
        expected: &str,
        expected_bytes: Option<&[u8]>,
        none: &NoPacket,
    ) -> Stop {
        let found_bytes = match none {
            NoPacket::Malformed(bytes, _) => Some(bytes.as_slice()),
            NoPacket::Short(_) => None,
        };
        let found = none.to_string();
        let stage = self.wire.stage();
        stage.fail_with(check, expected, found, expected_bytes, found_bytes)
    }

    /// Checks that the peer ends the connection, and says nothing before but perhaps that it shuts down.
    pub(crate) fn expect_end(&mut self, check: &str) -> Outcome<End> {
        loop {
            match self.receive() {
                Ok(Came {
                    packet: Packet::Shutdown,
                    ..
                }) => {}
                Ok(came) => {
                    self.came_check(check, false, "the end of the connection", None, &came)?;
                }
                Err(NoPacket::Short(Shortfall::Ended(end))) => {
                    self.stage().passes(check)?;
                    return Ok(end);
                }
                Err(none) => {
                    return Err(self.no_packet(check, "the end of the connection", None, &none));
                }
            }
        }
    }

    /// Checks that nothing came up to now. What is to be noticed has to be caused before by something
    /// whose answer was waited for.
    pub(crate) fn expect_quiet(&mut self, check: &str) -> Outcome {
        self.wire.poll();
        let holds = self.wire.unread().is_empty() && self.wire.ended().is_none();
        let found = match self.wire.ended() {
            Some(end) => end.to_string(),
            None => format!("bytes: {}", hex::encode(self.wire.unread())),
        };
        self.stage().check(check, holds, "nothing yet", found)
    }
}

/// What the suite takes and sends is bounded by [`LONGEST`] alone.
fn limits() -> Limits {
    Limits::default().with_packet(LONGEST).with_payload(LONGEST)
}

/// The bytes of a packet and its payload.
pub(crate) fn encode(packet: &Packet<'_>, payload: &[u8], dialect: Dialect) -> Outcome<Vec<u8>> {
    let mut bytes = Vec::new();
    packet
        .encode(dialect, limits(), &mut bytes)
        .map_err(|over| Stop::Suite(format!("cannot write {packet:?}: {over}")))?;
    bytes.extend_from_slice(payload);
    Ok(bytes)
}

fn decode(bytes: Vec<u8>, dialect: Dialect) -> Result<Came, NoPacket> {
    let decoded = match scan(&bytes, dialect, limits()) {
        Ok(Frame::Packet { head, payload }) => {
            let head = usize::try_from(head).unwrap_or(bytes.len());
            Packet::decode(&bytes[..head], payload, dialect, limits())
                .map(|packet| (packet.into_owned(), bytes[head..].to_vec()))
                .map_err(|error| error.to_string())
        }
        Ok(_) => Err("a length that is too short".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    match decoded {
        Ok((packet, payload)) => Ok(Came {
            packet,
            payload,
            bytes,
        }),
        Err(why) => Err(NoPacket::Malformed(bytes, why)),
    }
}
