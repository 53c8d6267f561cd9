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
    /// How many more bytes passed, which were not kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: u64,
}

/// Bytes of one event that are kept.
const KEPT: usize = 64 * 1024;
/// Bytes of a case that are kept.
const KEPT_OF_ALL: usize = 256 * 1024;
/// The same where what passes is recorded.
const KEPT_OF_RECORDED: usize = 64 << 20;
/// Events of a case that are kept.
const KEPT_EVENTS: usize = 100_000;

/// The events of a case.
#[derive(Debug)]
pub(crate) struct Transcript {
    began: Instant,
    connections: usize,
    events: Vec<Event>,
    /// Bytes of one event that are kept.
    longest: usize,
    /// Bytes for which there is room.
    room: usize,
    /// Events that were not kept.
    lost: u64,
}

impl Transcript {
    /// A transcript of a few bytes, or of as many as a recording may need.
    pub(crate) fn new(is_recorded: bool) -> Self {
        let (longest, room) = match is_recorded {
            true => (KEPT_OF_RECORDED, KEPT_OF_RECORDED),
            false => (KEPT, KEPT_OF_ALL),
        };
        Self {
            began: Instant::now(),
            connections: 0,
            events: Vec::new(),
            longest,
            room,
            lost: 0,
        }
    }

    /// A new connection, made by that side, whose number is returned.
    pub(crate) fn connection(&mut self, between: String, by: Direction) -> usize {
        let number = self.connections;
        self.connections += 1;
        self.push(number, by, What::Connected(between));
        number
    }

    pub(crate) fn bytes(&mut self, connection: usize, direction: Direction, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        // Bytes in a row are one event, however they were read.
        let goes_on = self.events.last().is_some_and(|last| {
            let is_same = (last.connection, last.direction) == (connection, direction);
            is_same && direction == Direction::Received && matches!(last.what, What::Bytes(_))
        });
        if !goes_on && !self.push(connection, direction, What::Bytes(Vec::new())) {
            return;
        }
        if let Some(Event {
            what: What::Bytes(kept),
            omitted,
            ..
        }) = self.events.last_mut()
        {
            let room = self.longest.saturating_sub(kept.len()).min(self.room);
            // Behind a gap nothing can be understood.
            let room = if *omitted > 0 {
                0
            } else {
                room.min(bytes.len())
            };
            kept.extend_from_slice(&bytes[..room]);
            *omitted += (bytes.len() - room) as u64;
            self.room -= room;
        }
    }

    /// Adds an event, if there is room for it.
    pub(crate) fn push(&mut self, connection: usize, direction: Direction, what: What) -> bool {
        if self.events.len() >= KEPT_EVENTS {
            self.lost += 1;
            return false;
        }
        self.events.push(Event {
            at: self.began.elapsed().as_secs_f64(),
            connection,
            direction,
            what,
            omitted: 0,
        });
        true
    }

    pub(crate) fn into_events(mut self) -> Vec<Event> {
        if let (1.., Some(last)) = (self.lost, self.events.last()) {
            let note = What::Note(format!("{} more events were not kept", self.lost));
            let at = self.began.elapsed().as_secs_f64();
            let last = Event {
                at,
                what: note,
                omitted: 0,
                ..*last
            };
            self.events.push(last);
        }
        self.events
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "so serde calls it")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_in_a_row_are_one_event_and_what_is_too_much_is_counted() {
        let mut transcript = Transcript::new(false);
        let number = transcript.connection("a to b".to_owned(), Direction::Received);
        for _ in 0..3 {
            transcript.bytes(number, Direction::Received, &[7; 40_000]);
        }
        transcript.bytes(number, Direction::Sent, b"x");
        let events = transcript.into_events();
        let [connected, bytes, sent] = &events[..] else {
            panic!("{} events", events.len())
        };
        assert_eq!(connected.direction, Direction::Received);
        assert_eq!(bytes.what, What::Bytes(vec![7; KEPT]));
        assert_eq!(bytes.omitted, 120_000 - KEPT as u64);
        assert_eq!((&sent.what, sent.omitted), (&What::Bytes(b"x".to_vec()), 0));
    }

    #[test]
    fn events_that_never_end_take_no_more_memory() {
        let mut transcript = Transcript::new(true);
        let number = transcript.connection("a to b".to_owned(), Direction::Received);
        for _ in 0..KEPT_EVENTS {
            transcript.push(number, Direction::Received, What::Note("again".to_owned()));
        }
        transcript.bytes(number, Direction::Received, b"too late");
        let events = transcript.into_events();
        assert_eq!(events.len(), KEPT_EVENTS + 1);
        let note = What::Note("2 more events were not kept".to_owned());
        assert_eq!(events[KEPT_EVENTS].what, note);
        assert_eq!(events[KEPT_EVENTS - 1].what, What::Note("again".to_owned()));
    }
}
