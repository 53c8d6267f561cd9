//! JSON as a tracker's peers write it, and readers of its values that say what they found.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::Formatter;
use serde_json::{Serializer, Value};

use crate::OverLimit;
use crate::limits::within;
use crate::wire::Put;

/// The most characters of a message that an error repeats.
const SHOWN: usize = 200;

/// A frame's text that is not a message of the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// The text is not JSON (which is UTF-8, and has no NaN, no infinity and no half surrogate pair).
    #[error("not JSON: {reason}: {text}")]
    NotJson {
        /// What is wrong, and where.
        reason: String,
        /// The text, shortened.
        text: String,
    },
    /// The JSON is not what the protocol has in that place.
    #[error("{field}: expected {expected}, found {found}")]
    Unexpected {
        /// What was being read.
        field: &'static str,
        /// What the protocol allows there.
        expected: &'static str,
        /// The JSON that came, shortened.
        found: String,
    },
}

impl MessageError {
    pub(super) fn unexpected(field: &'static str, expected: &'static str, found: &Value) -> Self {
        Self::Unexpected {
            field,
            expected,
            found: shorten(&found.to_string()),
        }
    }
}

pub(super) fn parse(json: &[u8]) -> Result<Value, MessageError> {
    serde_json::from_slice(json).map_err(|error| MessageError::NotJson {
        reason: error.to_string(),
        // Four bytes are the longest character.
        text: shorten(&String::from_utf8_lossy(
            &json[..json.len().min(4 * SHOWN + 4)],
        )),
    })
}

pub(super) fn string(field: &'static str, value: &Value) -> Result<String, MessageError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        _ => Err(MessageError::unexpected(field, "a string", value)),
    }
}

/// A whole number, also one with a decimal point: peers compare codes as numbers, so 1.0 is 1.
pub(super) fn whole(value: &Value) -> Option<i64> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "whole and within the integers that a float holds exactly"
    )]
    let exact =
        |float: f64| (float.fract() == 0.0 && float.abs() <= 2f64.powi(53)).then_some(float as i64);
    value.as_i64().or_else(|| value.as_f64().and_then(exact))
}

pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Appends `value` as a frame of at most `limit` bytes: length and text, together in one buffer.
pub(super) fn put_frame(
    value: &impl Serialize,
    limit: u32,
    out: &mut Vec<u8>,
) -> Result<(), OverLimit> {
    let mut json = Vec::new();
    value
        .serialize(&mut Serializer::with_formatter(&mut json, PythonStyle))
        .expect("texts and finite numbers have a JSON form, and a Vec takes them");
    put_text(&json, limit, out)
}

/// Appends a frame of this text.
pub(super) fn put_text(json: &[u8], limit: u32, out: &mut Vec<u8>) -> Result<(), OverLimit> {
    let limit = limit.min(i32::MAX.unsigned_abs());
    within(
        "length of a tracker's frame",
        json.len() as u64,
        limit.into(),
    )?;
    out.put_u32(u32::try_from(json.len()).unwrap_or(limit));
    out.put(json);
    Ok(())
}

/// What Python's `json.dumps` writes: a space behind comma and colon, and ASCII only.
struct PythonStyle;

impl Formatter for PythonStyle {
    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let plain = |c: char| (' '..='~').contains(&c);
        for run in fragment.split_inclusive(|c| !plain(c)) {
            let text = run.trim_end_matches(|c| !plain(c));
            out.write_all(text.as_bytes())?;
            for unit in run[text.len()..].encode_utf16() {
                write!(out, "\\u{unit:04x}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_what_python_writes() {
        let mut frame = Vec::new();
        put_frame(
            &("é😀\u{7f}\u{1f}\n\"\\/ a", None::<()>, [1], 1.5),
            u32::MAX,
            &mut frame,
        )
        .unwrap();
        // The output of Python 3.11 for json.dumps(["é😀\x7f\x1f\n\"\\/ a", None, [1], 1.5]).
        let expected = br#"["\u00e9\ud83d\ude00\u007f\u001f\n\"\\/ a", null, [1], 1.5]"#;
        assert_eq!(frame[..4], [59, 0, 0, 0]);
        assert_eq!(
            frame[4..].escape_ascii().to_string(),
            expected.escape_ascii().to_string()
        );
    }

    #[test]
    fn numbers_with_a_point_are_whole_if_they_are() {
        let read = |json: &str| whole(&parse(json.as_bytes()).unwrap());
        assert_eq!(read("1.0"), Some(1));
        assert_eq!(read("-1"), Some(-1));
        assert_eq!(read("9223372036854775807"), Some(i64::MAX));
        assert_eq!(read("1.5"), None);
        assert_eq!(read("1e300"), None);
        assert_eq!(read("true"), None);
    }

    #[test]
    fn what_is_not_json_is_named() {
        for (json, reason) in [
            (
                &b"[4, \"a\", \"\", NaN]"[..],
                "expected value at line 1 column 14",
            ),
            (b"[1", "EOF while parsing a list at line 1 column 2"),
            (
                b"[\"\xff\"]",
                "invalid unicode code point at line 1 column 3",
            ),
            (b"[1] x", "trailing characters at line 1 column 5"),
        ] {
            let text = String::from_utf8_lossy(json).into_owned();
            let reason = reason.to_owned();
            assert_eq!(parse(json), Err(MessageError::NotJson { reason, text }));
        }
        for half in [
            r#""\ud800""#,
            r#""\ud800x""#,
            r#""\ud800\ud800""#,
            r#""\udc00""#,
        ] {
            let error = parse(half.as_bytes()).unwrap_err();
            assert!(matches!(error, MessageError::NotJson { .. }), "{half}");
        }
        let deep = parse(&[b'['; 100_000]).unwrap_err().to_string();
        assert!(
            deep.starts_with("not JSON: recursion limit exceeded"),
            "{deep}"
        );
        assert!(deep.chars().count() < 300, "{deep}");
    }
}
