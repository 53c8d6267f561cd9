//! A tracker under test: the suite plays servers and clients.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rpc_proto::codes::TRACKER_MAGIC;
use serde_json::{Value, json};

use crate::stage::{Outcome, Stage};
use crate::wire::{Shortfall, Wire, own_ip};

/// Bytes of the magic, and of a frame's length.
const WORD: usize = 4;
/// Between two looks at something that is to become so.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);
/// The longest answer that the suite takes, in bytes.
const LONGEST: usize = 64 * 1024 * 1024;

/// The tracker under test.
#[derive(Debug)]
pub(crate) struct Tracker {
    pub(crate) stage: Arc<Stage>,
    pub(crate) addr: SocketAddr,
}

/// A connection to the tracker under test.
#[derive(Debug)]
pub(crate) struct TrackerWire {
    pub(crate) wire: Wire,
}

/// What a tracker may do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reaction {
    /// A frame with this value.
    Answer(Value),
    /// It ends the connection, in order or by a reset.
    Ends,
    /// Nothing comes before the deadline of a step.
    Nothing,
}

impl fmt::Display for Reaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answer(value) => write!(f, "the answer {value}"),
            Self::Ends => f.write_str("the end of the connection"),
            Self::Nothing => f.write_str("nothing"),
        }
    }
}

impl Tracker {
    /// A connection on which nothing was said.
    pub(crate) fn connect(&self) -> Outcome<TrackerWire> {
        let wire = Wire::connect(&self.stage, self.addr, "suite")?;
        Ok(TrackerWire { wire })
    }

    /// A connection after the greeting.
    pub(crate) fn greeted(&self) -> Outcome<TrackerWire> {
        let mut connection = self.connect()?;
        connection.wire.send_whole(&TRACKER_MAGIC.to_le_bytes());
        connection.greeting("greeting")?;
        Ok(connection)
    }

    /// A key that no other case uses.
    pub(crate) fn key(&self, what: &str) -> String {
        self.stage.key(what)
    }

    /// A greeted connection that has offered one device under this key.
    pub(crate) fn device(&self, key: &str, port: u16, match_key: &str) -> Outcome<TrackerWire> {
        let mut server = self.greeted()?;
        server.introduce(key, port)?;
        server.put(key, port, match_key)?;
        Ok(server)
    }

    /// A greeted connection that has asked for a device of this key.
    pub(crate) fn asking(&self, key: &str, priority: i64) -> Outcome<TrackerWire> {
        let mut client = self.greeted()?;
        client.send(&json!([4, key, "suite", priority]));
        Ok(client)
    }

    /// The counts of a key in the summary: free and pending.
    pub(crate) fn counts(&self, key: &str) -> Outcome<Value> {
        let mut connection = self.greeted()?;
        connection.send(&json!([6]));
        let summary = connection.answer("summary")?;
        Ok(summary[1]["queue_info"][key].clone())
    }

    /// Checks the counts of a key in the summary. A tracker may leave out a key that has neither.
    pub(crate) fn expect_counts(&self, check: &str, key: &str, free: u64, pending: u64) -> Outcome {
        let counts = self.counts(key)?;
        let expected = json!({"free": free, "pending": pending});
        let absent = free == 0 && pending == 0 && counts.is_null();
        self.stage
            .check(check, absent || counts == expected, &expected, &counts)
    }

    /// Checks that the tracker still serves others.
    pub(crate) fn expect_alive(&self, check: &str) -> Outcome {
        let mut other = self.greeted()?;
        other.send(&json!([1]));
        other.expect(check, &json!(0))
    }

    /// Waits until this key has so many free devices and waiting requests: for what no answer tells,
    /// as that the tracker noticed the end of a connection.
    pub(crate) fn until_counts(&self, check: &str, key: &str, free: u64, pending: u64) -> Outcome {
        let expected = json!({"free": free, "pending": pending});
        let words = expected.to_string();
        self.until(check, &words, || {
            let counts = self.counts(key)?;
            let absent = free == 0 && pending == 0 && counts.is_null();
            Ok((absent || counts == expected, counts))
        })
    }

    /// Gives the tracker the time to notice that somebody who waited has gone. What it read last on one
    /// connection says nothing of another, so its counts are looked at; where they do not tell (2.6.6), it
    /// has had a moment.
    pub(crate) fn time_to_notice(&self, key: &str, pending: u64) -> Outcome {
        let over = Instant::now() + self.stage.conditions.step / 20;
        while Instant::now() < over {
            let waiting = self.counts(key)?["pending"].as_u64().unwrap_or(0);
            if waiting == pending {
                break;
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
        Ok(())
    }

    /// Asks again and again until something holds, for as long as a step may take.
    pub(crate) fn until(
        &self,
        check: &str,
        expected: &str,
        look: impl Fn() -> Outcome<(bool, Value)>,
    ) -> Outcome {
        let deadline = self.stage.deadline();
        loop {
            let (holds, found) = look()?;
            if holds || Instant::now() >= deadline {
                return self.stage.check(check, holds, expected, found);
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }

    /// The address from which the tracker sees the suite.
    pub(crate) fn own_host(&self) -> String {
        own_ip(self.addr).to_string()
    }
}

/// A frame: the length of a text, and the text.
pub(crate) fn frame(text: &[u8]) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    [&length.to_le_bytes(), text].concat()
}

impl TrackerWire {
    /// Checks the answer to the magic.
    pub(crate) fn greeting(&mut self, check: &str) -> Outcome {
        let expected = TRACKER_MAGIC.to_le_bytes();
        let found = self.wire.read(WORD);
        self.bytes_check(check, "the tracker's magic", &expected, found)
    }

    /// Sends a message, written as the reference writes it.
    pub(crate) fn send(&mut self, message: &Value) {
        self.send_text(&spaced(message));
    }

    /// Sends this text as a frame.
    pub(crate) fn send_text(&mut self, text: &str) {
        self.wire.send(&frame(text.as_bytes()));
    }

    /// The text of the next frame.
    pub(crate) fn answer_text(&mut self, check: &str) -> Outcome<String> {
        let stage = Arc::clone(self.wire.stage());
        let text = match self.frame_text() {
            Ok(bytes) => String::from_utf8(bytes).map_err(|error| error.to_string()),
            Err(found) => Err(found),
        };
        match text {
            Ok(text) => Ok(text),
            Err(found) => Err(stage.fail(check, "a frame of UTF-8 text", found)),
        }
    }

    /// The value of the next frame.
    pub(crate) fn answer(&mut self, check: &str) -> Outcome<Value> {
        let stage = Arc::clone(self.wire.stage());
        let text = self.answer_text(check)?;
        match serde_json::from_str(&text) {
            Ok(value) => {
                stage.passes(check)?;
                Ok(value)
            }
            Err(error) => Err(stage.fail(check, "JSON", format_args!("{text:?}: {error}"))),
        }
    }

    /// Checks the value of the next frame.
    pub(crate) fn expect(&mut self, check: &str, expected: &Value) -> Outcome {
        self.expect_one_of(check, &[Reaction::Answer(expected.clone())])
    }

    /// Checks that one of these happens next.
    pub(crate) fn expect_one_of(&mut self, check: &str, allowed: &[Reaction]) -> Outcome {
        let (reaction, text) = self.reaction();
        let holds = reaction
            .as_ref()
            .is_some_and(|found| allowed.contains(found));
        let expected_text = match allowed {
            [Reaction::Answer(value)] => Some(frame(spaced(value).as_bytes())),
            _ => None,
        };
        if holds {
            return self.wire.stage().passes(check);
        }
        let in_words: Vec<_> = allowed.iter().map(ToString::to_string).collect();
        let found = reaction.map_or_else(|| text.clone(), |found| found.to_string());
        let found_frame = (!text.is_empty()).then(|| frame(text.as_bytes()));
        Err(self.wire.stage().fail_with(
            check,
            &in_words.join(", or "),
            found,
            expected_text.as_deref(),
            found_frame.as_deref(),
        ))
    }

    /// Checks that a request is refused: by an end, by -1, or by -1 with a reason.
    pub(crate) fn expect_refusal(&mut self, check: &str) -> Outcome {
        let (reaction, text) = self.reaction();
        let holds = match &reaction {
            Some(Reaction::Ends) => true,
            Some(Reaction::Answer(value)) => *value == json!(-1) || value[0] == json!(-1),
            Some(Reaction::Nothing) | None => false,
        };
        let found = reaction.map_or(text, |found| found.to_string());
        let expected = "a refusal: the end of the connection, -1, or [-1, reason]";
        self.wire.stage().check(check, holds, expected, found)
    }

    /// Checks that the tracker ends the connection, and says nothing before.
    pub(crate) fn expect_end(&mut self, check: &str) -> Outcome {
        self.expect_one_of(check, &[Reaction::Ends])
    }

    /// Checks that nothing came up to now. What is to be noticed has to be caused before by a question
    /// whose answer was waited for.
    pub(crate) fn expect_quiet(&mut self, check: &str) -> Outcome {
        self.wire.poll();
        let unread = self.wire.unread();
        let holds = unread.is_empty() && self.wire.ended().is_none();
        let found = match self.wire.ended() {
            Some(end) if unread.is_empty() => end.to_string(),
            _ => format!("{:?}", String::from_utf8_lossy(unread)),
        };
        self.wire
            .stage()
            .check(check, holds, "no answer yet", found)
    }

    /// Says who this is: a server of this key.
    pub(crate) fn introduce(&mut self, key: &str, port: u16) -> Outcome {
        let info = json!({"key": format!("server:{key}"), "addr": [null, port]});
        self.send(&json!([5, info]));
        self.expect("update-info", &json!(0))
    }

    /// Offers a device at the address of this connection.
    pub(crate) fn put(&mut self, key: &str, port: u16, match_key: &str) -> Outcome {
        self.send(&json!([3, key, [port, match_key], null]));
        self.expect("put", &json!(0))
    }

    /// Checks that a device of this match key comes.
    pub(crate) fn expect_grant(&mut self, check: &str, match_key: &str) -> Outcome {
        let answer = self.answer(check)?;
        let found = &answer[1][2];
        let holds = answer[0] == json!(0) && *found == json!(match_key);
        let expected = format!("a grant with the match key {match_key:?}");
        self.wire.stage().check(check, holds, expected, &answer)
    }

    /// What happens next, and the text where there is one.
    fn reaction(&mut self) -> (Option<Reaction>, String) {
        let silent_before = self.wire.peek(1).err();
        match silent_before {
            Some(Shortfall::Ended(_)) => return (Some(Reaction::Ends), String::new()),
            Some(Shortfall::Silent(_) | Shortfall::Endless(_)) => {
                return (Some(Reaction::Nothing), String::new());
            }
            None => {}
        }
        match self.frame_text() {
            Err(found) => (None, found),
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let value = serde_json::from_slice(&bytes).ok();
                (value.map(Reaction::Answer), text)
            }
        }
    }

    /// The bytes of the next frame, or what is wrong with it.
    fn frame_text(&mut self) -> Result<Vec<u8>, String> {
        let head = self.wire.read(WORD).map_err(|short| short.to_string())?;
        let length = i32::from_le_bytes(head.try_into().unwrap_or_default());
        match usize::try_from(length) {
            Ok(length) if length <= LONGEST => self
                .wire
                .read(length)
                .map_err(|short| format!("a frame of {length} bytes, then {short}")),
            _ => Err(format!("a frame length of {length}")),
        }
    }

    fn bytes_check(
        &mut self,
        check: &str,
        words: &str,
        expected: &[u8],
        found: Result<Vec<u8>, Shortfall>,
    ) -> Outcome {
        let stage = self.wire.stage();
        match found {
            Ok(found) if found == expected => stage.passes(check),
            Ok(found) => {
                let other = "other bytes".to_owned();
                Err(stage.fail_with(check, words, other, Some(expected), Some(&found)))
            }
            Err(short) => {
                Err(stage.fail_with(check, words, short.to_string(), Some(expected), None))
            }
        }
    }
}

/// JSON as Python's `json.dumps` writes it: a blank behind each comma and colon, and nothing but ASCII.
pub(crate) fn spaced(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(spaced).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) => {
            let members: Vec<_> = members
                .iter()
                .map(|(name, value)| format!("{}: {}", ascii(name), spaced(value)))
                .collect();
            format!("{{{}}}", members.join(", "))
        }
        Value::String(text) => ascii(text),
        other => other.to_string(),
    }
}

fn ascii(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted.chars().fold(String::new(), |mut out, character| {
        use fmt::Write as _;
        if character.is_ascii() {
            out.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
        out
    })
}
