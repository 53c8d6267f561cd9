//! What a transcript says: messages out of bytes, with their meaning.

use std::collections::BTreeMap;
use std::time::Duration;

use rpc_recording::{About, Conversation, Recorder, RecorderLimits};

use crate::results::Played;
use crate::transcript::{Direction, Event, What};

impl Played {
    /// What passed, in the format of recorded conversations, which `tvm-rpc decode` explains.
    #[must_use]
    pub fn recording(&self) -> Conversation {
        let mut conversation = conversation(
            self,
            About {
                peer: String::new(),
                role: "the suite and the peer under test; recorded by the suite".to_owned(),
                scenario: self.name(),
                description: self.what.clone(),
            },
        );
        for message in &mut conversation.messages {
            message.step = None;
        }
        conversation
    }
}

/// A transcript as messages, and what happened when.
#[derive(Debug)]
pub(crate) struct Timeline {
    pub(crate) conversation: Conversation,
    pub(crate) moments: Vec<Moment>,
}

/// One thing that happened on a connection.
#[derive(Debug)]
pub(crate) struct Moment {
    pub(crate) at: f64,
    pub(crate) connection: usize,
    pub(crate) direction: Direction,
    pub(crate) text: String,
    /// The message that it is, in the conversation.
    pub(crate) message: Option<usize>,
}

impl Timeline {
    pub(crate) fn of(case: &Played) -> Self {
        let conversation = conversation(case, About::default());
        let mut completed: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, message) in conversation.messages.iter().enumerate() {
            let event = message.step.as_deref().and_then(|step| step.parse().ok());
            let is_close = message.kind == rpc_recording::Kind::Close;
            if let Some(event) = event.filter(|_| !is_close) {
                completed.entry(event).or_default().push(index);
            }
        }
        let mut moments = Vec::new();
        for (number, event) in case.transcript.iter().enumerate() {
            let moment = |text, message| Moment {
                at: event.at,
                connection: event.connection,
                direction: event.direction,
                text,
                message,
            };
            let messages = completed.remove(&number).unwrap_or_default();
            let has_messages = !messages.is_empty();
            for index in messages {
                let message = &conversation.messages[index];
                let len = message.bytes.len() as u64 + message.omitted;
                moments.push(moment(format!("{len} B: {}", message.note), Some(index)));
            }
            let text = match &event.what {
                What::Connected(between) => format!("connected: {between}"),
                What::Ended(end) => end.to_string(),
                What::Note(note) => note.clone(),
                What::Bytes(_) if has_messages && event.omitted == 0 => continue,
                What::Bytes(bytes) => {
                    let len = bytes.len() as u64 + event.omitted;
                    format!("{len} B of a longer message")
                }
            };
            moments.push(moment(text, None));
        }
        Self {
            conversation,
            moments,
        }
    }

    /// What happened, with what repeats itself in one piece.
    pub(crate) fn repeated(&self) -> Vec<&[Moment]> {
        let is_same = |one: &Moment, other: &Moment| {
            (one.connection, one.direction, &one.text)
                == (other.connection, other.direction, &other.text)
        };
        self.moments.chunk_by(is_same).collect()
    }

    /// The last message that went this way.
    pub(crate) fn last(&self, direction: Direction) -> Option<usize> {
        let mut moments = self.moments.iter().rev();
        moments.find_map(|moment| moment.message.filter(|_| moment.direction == direction))
    }

    /// A message field by field.
    pub(crate) fn explained(&self, message: usize) -> String {
        self.conversation.explain(message, None).to_string()
    }
}

/// The messages of a case. The step of each is the number of the event that completed it.
fn conversation(case: &Played, about: About) -> Conversation {
    let mut recorder = Recorder::new(about, RecorderLimits::default());
    let mut connections: BTreeMap<usize, Known> = BTreeMap::new();
    let mut at = Duration::ZERO;
    for (number, event) in case.transcript.iter().enumerate() {
        at = Duration::try_from_secs_f64(event.at).unwrap_or(at);
        if let What::Connected(_) = event.what {
            let by = event.direction;
            connections.insert(
                event.connection,
                Known {
                    by,
                    number: None,
                    gaps: Vec::new(),
                },
            );
            continue;
        }
        let Some(known) = connections.get_mut(&event.connection) else {
            continue;
        };
        recorder.step(&number.to_string());
        known.record(event, at, &mut recorder);
    }
    recorder.finish(at);
    recorder.conversation()
}

/// A connection, as far as it went.
struct Known {
    /// Who made it.
    by: Direction,
    /// Its number in the recording, once something passed.
    number: Option<usize>,
    /// Directions of which bytes are missing, or which ended.
    gaps: Vec<Direction>,
}

impl Known {
    fn record(&mut self, event: &Event, at: Duration, recorder: &mut Recorder) {
        let is_note = matches!(event.what, What::Note(_) | What::Connected(_));
        if is_note || self.gaps.contains(&event.direction) {
            return;
        }
        let number = *self
            .number
            .get_or_insert_with(|| recorder.connect("", None, None));
        let way = match event.direction == self.by {
            true => rpc_recording::Direction::C2s,
            false => rpc_recording::Direction::S2c,
        };
        match &event.what {
            What::Bytes(bytes) => {
                recorder.pass(number, way, bytes, at);
                if event.omitted > 0 {
                    // What comes behind a gap is no message.
                    self.gaps.push(event.direction);
                }
            }
            What::Ended(_) => {
                recorder.end(number, way, at);
                self.gaps.push(event.direction);
            }
            What::Connected(_) | What::Note(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    #[test]
    fn messages_have_their_meaning_wherever_they_were_cut() {
        let case = samples::failing();
        let timeline = Timeline::of(&case);
        let texts: Vec<_> = timeline
            .moments
            .iter()
            .map(|moment| moment.text.as_str())
            .collect();
        insta::assert_snapshot!(texts.join("\n"));
        let sent = timeline.last(Direction::Sent).unwrap();
        insta::assert_snapshot!(timeline.explained(sent));
    }

    #[test]
    fn a_recording_is_a_conversation() {
        let recorded = samples::failing().recording();
        assert_eq!(recorded.scenario, samples::failing().name());
        assert_eq!(recorded.connections.len(), 1);
        assert_eq!(
            recorded.connections[0].proto,
            rpc_recording::Protocol::Tracker
        );
        assert!(
            recorded
                .messages
                .iter()
                .all(|message| message.step.is_none())
        );
    }
}
