//! What passed on the connections of a case, with the time.

use std::time::Instant;

use serde::{Deserialize, Serialize};

/// How a direction of a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// In order: all bytes came, then the end.
    Fin,
    /// By a reset.
    Reset,
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Fin => "the connection was closed",
            Self::Reset => "the connection was reset",
        })
    }
}

/// Who sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The suite.
    Sent,
    /// The peer under test.
    Received,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum What {
    /// A connection was made; the text says between whom.
    Connected(String),
    /// Bytes passed.
    Bytes(#[serde(with = "hex")] Vec<u8>),
    /// This direction ended.
    Ended(End),
    /// What else is worth knowing.
    Note(String),
}

/// One thing that happened on a connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Seconds since the case began.
    pub at: f64,
    /// The connection, counted from 0 within the case.
    pub connection: usize,
    /// Who did it.
    pub direction: Direction,
    /// What it was.
    pub what: What,
}

/// Bytes of one event that are kept; of more, the rest is dropped, and a note says how many.
const KEPT: usize = 64 * 1024;

/// The events of a case.
#[derive(Debug)]
pub(crate) struct Transcript {
    began: Instant,
    connections: usize,
    events: Vec<Event>,
}

impl Transcript {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            connections: 0,
            events: Vec::new(),
        }
    }

    /// A new connection, whose number is returned.
    pub(crate) fn connection(&mut self, between: String) -> usize {
        let number = self.connections;
        self.connections += 1;
        self.push(number, Direction::Sent, What::Connected(between));
        number
    }

    pub(crate) fn bytes(&mut self, connection: usize, direction: Direction, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let kept = &bytes[..bytes.len().min(KEPT)];
        match self.events.last_mut() {
            // Bytes in a row are one event, however they were read.
            Some(Event {
                connection: last,
                direction: way,
                what: What::Bytes(before),
                ..
            }) if *last == connection && *way == direction && direction == Direction::Received => {
                let room = KEPT.saturating_sub(before.len()).min(kept.len());
                before.extend_from_slice(&kept[..room]);
            }
            _ => self.push(connection, direction, What::Bytes(kept.to_vec())),
        }
        if bytes.len() > KEPT {
            let note = format!("{} bytes in all", bytes.len());
            self.push(connection, direction, What::Note(note));
        }
    }

    pub(crate) fn push(&mut self, connection: usize, direction: Direction, what: What) {
        self.events.push(Event {
            at: self.began.elapsed().as_secs_f64(),
            connection,
            direction,
            what,
        });
    }

    pub(crate) fn into_events(self) -> Vec<Event> {
        self.events
    }
}
