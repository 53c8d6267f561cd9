use serde_json::Value;

use super::json::{self, MessageError, shorten, string, whole};
use super::message::port;
use super::summary::Summary;
use crate::codes::tracker as code;
use crate::{Limits, OverLimit};

/// What a tracker answers.
///
/// Every answer is known by its shape, whatever was asked. A client that asked for one kind takes it
/// out with [`Reply::into_done`] and its sisters, which turn another kind into an error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// Done: `0`.
    Done,
    /// A device: `[0, [host, port, match key]]`.
    Granted(Allocation),
    /// State of queues and servers: `[0, {"queue_info": …, "server_info": …}]`.
    Summary(Summary),
    /// Match keys, in no order: `["KEY:0.25", …]`. The one answer without a status.
    PendingMatchKeys(Vec<String>),
    /// Refused: a number other than 0, or an array that starts with one; the JSON as it came.
    /// Known trackers say `-1`.
    Refused(String),
}

/// A device that a tracker granted: where to connect, and what to say there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// Name or address of the server.
    pub host: String,
    /// The server's port, 1 to 65535.
    pub port: u16,
    /// The key that the server expects, for one session. Opaque: no part of it means anything.
    pub match_key: String,
}

/// A tracker's answer that is not the one that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplyError {
    /// The tracker understood the request and does not do it. To ask again is of no use.
    #[error("the tracker refused: it answered {reply}")]
    Refused {
        /// The answer, as JSON, shortened.
        reply: String,
    },
    /// The answer breaks the protocol. The connection is of no further use.
    #[error("the tracker's answer is wrong")]
    Malformed(#[from] MessageError),
}

impl Reply {
    /// The refusal that known trackers send: `-1`.
    #[must_use]
    pub fn refused() -> Self {
        Self::Refused(code::FAIL.to_string())
    }

    /// Appends the reply as one frame, length and text, so that it can leave in one write.
    ///
    /// # Errors
    ///
    /// The text is longer than [`Limits::tracker_reply`]; nothing is appended.
    pub fn encode(&self, limits: Limits, out: &mut Vec<u8>) -> Result<(), OverLimit> {
        let limit = limits.tracker_reply;
        match self {
            Self::Done => json::put_frame(&code::SUCCESS, limit, out),
            Self::Granted(Allocation {
                host,
                port,
                match_key,
            }) => json::put_frame(&(code::SUCCESS, (host, port, match_key)), limit, out),
            Self::Summary(summary) => json::put_frame(&(code::SUCCESS, summary), limit, out),
            Self::PendingMatchKeys(keys) => json::put_frame(keys, limit, out),
            Self::Refused(json) => json::put_text(json.as_bytes(), limit, out),
        }
    }

    /// Reads the text of a frame, as a client does.
    ///
    /// # Errors
    ///
    /// The text is not JSON, or no answer of the protocol.
    pub fn decode(text: &[u8]) -> Result<Self, MessageError> {
        let value = json::parse(text)?;
        let status = match &value {
            Value::Array(items) => items.first().and_then(whole),
            bare => whole(bare),
        };
        match (status, &value) {
            (Some(code::SUCCESS), Value::Number(_)) => Ok(Self::Done),
            (Some(code::SUCCESS), Value::Array(items)) => Self::read_result(items, &value),
            (Some(_), _) => Ok(Self::Refused(String::from_utf8_lossy(text).into_owned())),
            (None, Value::Array(keys)) => keys
                .iter()
                .map(|key| string("pending match key", key))
                .collect::<Result<_, _>>()
                .map(Self::PendingMatchKeys),
            (None, _) => Err(MessageError::unexpected(
                "reply",
                "a status, or an array",
                &value,
            )),
        }
    }

    fn read_result(items: &[Value], whole: &Value) -> Result<Self, MessageError> {
        match items {
            [_, Value::Array(granted)] if granted.len() == 3 => Ok(Self::Granted(Allocation {
                host: string("host", &granted[0])?,
                port: port(&granted[1])?,
                match_key: string("match key", &granted[2])?,
            })),
            [_, summary @ Value::Object(_)] => Summary::read(summary).map(Self::Summary),
            _ => Err(MessageError::unexpected(
                "reply",
                "[0, [host, port, match key]] or [0, summary]",
                whole,
            )),
        }
    }

    /// The answer to a PING, STOP, PUT or UPDATE_INFO.
    ///
    /// # Errors
    ///
    /// The tracker refused, or answered something else.
    pub fn into_done(self) -> Result<(), ReplyError> {
        match self {
            Self::Done => Ok(()),
            other => Err(other.instead_of("0")),
        }
    }

    /// The answer to a REQUEST.
    ///
    /// # Errors
    ///
    /// The tracker refused, or answered something else.
    pub fn into_allocation(self) -> Result<Allocation, ReplyError> {
        match self {
            Self::Granted(allocation) => Ok(allocation),
            other => Err(other.instead_of("[0, [host, port, match key]]")),
        }
    }

    /// The answer to a SUMMARY.
    ///
    /// # Errors
    ///
    /// The tracker refused, or answered something else.
    pub fn into_summary(self) -> Result<Summary, ReplyError> {
        match self {
            Self::Summary(summary) => Ok(summary),
            other => Err(other.instead_of("[0, summary]")),
        }
    }

    /// The answer to a GET_PENDING_MATCHKEYS.
    ///
    /// # Errors
    ///
    /// The tracker refused, or answered something else.
    pub fn into_pending_match_keys(self) -> Result<Vec<String>, ReplyError> {
        match self {
            Self::PendingMatchKeys(keys) => Ok(keys),
            other => Err(other.instead_of("an array of strings")),
        }
    }

    fn instead_of(self, expected: &'static str) -> ReplyError {
        let found = match self {
            Self::Refused(reply) => {
                return ReplyError::Refused {
                    reply: shorten(&reply),
                };
            }
            Self::Done => "0".to_owned(),
            // Without the match key, which is for its owner alone.
            Self::Granted(Allocation { host, port, .. }) => {
                shorten(&format!("a device at {host}:{port}"))
            }
            Self::Summary(_) => "a summary".to_owned(),
            Self::PendingMatchKeys(keys) => format!("{} match keys", keys.len()),
        };
        ReplyError::Malformed(MessageError::Unexpected {
            field: "reply",
            expected,
            found,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn granted(host: &str, port: u16, match_key: &str) -> Reply {
        Reply::Granted(Allocation {
            host: host.into(),
            port,
            match_key: match_key.into(),
        })
    }

    fn decode(text: &str) -> Result<Reply, MessageError> {
        Reply::decode(text.as_bytes())
    }

    #[test]
    fn replies_are_those_of_the_reference() {
        // Recorded from the tracker of apache-tvm 0.27.0.post1.
        let keys = |keys: &[&str]| {
            Reply::PendingMatchKeys(keys.iter().map(|key| (*key).to_owned()).collect())
        };
        let recorded = [
            (Reply::Done, 0x01, "0"),
            (Reply::refused(), 0x02, "-1"),
            (keys(&[]), 0x02, "[]"),
            (
                keys(&["dev:0.5", "dev:0.25", "dev:0.125"]),
                0x24,
                r#"["dev:0.5", "dev:0.25", "dev:0.125"]"#,
            ),
            (
                granted("127.0.0.1", 9090, "dev:0.5"),
                0x23,
                r#"[0, ["127.0.0.1", 9090, "dev:0.5"]]"#,
            ),
            (
                granted("127.0.0.1", 1, "ключ:0.5"),
                0x35,
                r#"[0, ["127.0.0.1", 1, "\u043a\u043b\u044e\u0447:0.5"]]"#,
            ),
        ];
        for (reply, length, text) in recorded {
            let frame = [&i32::to_le_bytes(length), text.as_bytes()].concat();
            let mut out = Vec::new();
            reply.encode(Limits::default(), &mut out).unwrap();
            assert_eq!(
                out.escape_ascii().to_string(),
                frame.escape_ascii().to_string()
            );
            assert_eq!(decode(text), Ok(reply));
        }
    }

    #[test]
    fn a_refusal_is_not_a_broken_answer() {
        for (text, shown) in [
            ("-1", "-1"),
            ("1", "1"),
            ("[-1]", "[-1]"),
            (r#"[-1, "no such key"]"#, r#"[-1, "no such key"]"#),
        ] {
            let error = decode(text).unwrap().into_allocation().unwrap_err();
            assert_eq!(
                error,
                ReplyError::Refused {
                    reply: shown.into()
                }
            );
        }
        // It is passed on as it came.
        let mut out = Vec::new();
        let refusal = decode("[-1,  null]").unwrap();
        assert_eq!(refusal, Reply::Refused("[-1,  null]".into()));
        refusal.encode(Limits::default(), &mut out).unwrap();
        assert_eq!(out, b"\x0b\0\0\0[-1,  null]");
        assert_eq!(
            Reply::refused().into_done().unwrap_err().to_string(),
            "the tracker refused: it answered -1"
        );
        assert_eq!(
            crate::error::in_full(&Reply::Done.into_allocation().unwrap_err()),
            "the tracker's answer is wrong: \
             reply: expected [0, [host, port, match key]], found 0"
        );
    }

    #[test]
    fn an_answer_to_another_question_is_told_in_short() {
        let says = |host: &str| {
            let error = granted(host, 9090, "secret").into_done().unwrap_err();
            crate::error::in_full(&error)
        };
        assert_eq!(
            says("10.0.0.7"),
            "the tracker's answer is wrong: reply: expected 0, found a device at 10.0.0.7:9090"
        );
        let long = says(&"h".repeat(100_000));
        assert!(long.len() < 300, "{} bytes", long.len());
    }

    #[test]
    fn a_reply_has_a_limit_of_its_own() {
        let limits = Limits::default().with_tracker_reply(6);
        let mut out = Vec::new();
        let key = |key: &str| Reply::PendingMatchKeys(vec![key.into()]);
        // Six bytes and seven, with brackets and quotes.
        key("ab").encode(limits, &mut out).unwrap();
        let error = key("abc").encode(limits, &mut out).unwrap_err();
        assert_eq!((error.found, error.limit), (7, 6));
        assert_eq!(out, b"\x06\0\0\0[\"ab\"]");
    }

    #[test]
    fn broken_answers_say_what_is_wrong() {
        for (text, error) in [
            (
                "[0]",
                "reply: expected [0, [host, port, match key]] or [0, summary], found [0]",
            ),
            (
                r#"[0, ["h", 1]]"#,
                r#"reply: expected [0, [host, port, match key]] or [0, summary], found [0,["h",1]]"#,
            ),
            (
                r#"[0, [null, 1, "k"]]"#,
                "host: expected a string, found null",
            ),
            (
                r#"[0, ["h", 70000, "k"]]"#,
                "port: expected a number from 1 to 65535, found 70000",
            ),
            (
                r#"[0, ["h", "x", "k"]]"#,
                r#"port: expected a number from 1 to 65535, found "x""#,
            ),
            (
                r#"["k", 5]"#,
                "pending match key: expected a string, found 5",
            ),
            ("null", "reply: expected a status, or an array, found null"),
            ("0.5", "reply: expected a status, or an array, found 0.5"),
            (
                "[0, NaN]",
                "not JSON: expected value at line 1 column 5: [0, NaN]",
            ),
        ] {
            assert_eq!(decode(text).unwrap_err().to_string(), error);
        }
        assert_eq!(
            decode(r#"[0.0, ["h", "9090", "k"]]"#),
            Ok(granted("h", 9090, "k"))
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(host: String, port in 1..=u16::MAX, keys: Vec<String>) {
            for reply in [granted(&host, port, &host), Reply::PendingMatchKeys(keys)] {
                let mut frame = Vec::new();
                reply.encode(Limits::default(), &mut frame)?;
                prop_assert_eq!(Reply::decode(&frame[4..])?, reply);
            }
        }

        #[test]
        fn arbitrary_text_is_harmless(bytes: Vec<u8>, text in "[\\[\\]{}\",:0-9a-z. ]*") {
            let _ = Reply::decode(&bytes);
            let _ = Reply::decode(format!("[0, {text}]").as_bytes());
        }
    }
}
