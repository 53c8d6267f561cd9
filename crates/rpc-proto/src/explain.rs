//! What the bytes of a message say, field by field: for tools that show them to people.
//!
//! Explained is what the decoders read: each read of theirs is noted with its name and place, up to where
//! they stop. See [`packet::explain`](crate::packet::explain),
//! [`handshake::explain_opening`](crate::handshake::explain_opening),
//! [`handshake::explain_answer`](crate::handshake::explain_answer) and, of a tracker,
//! [`tracker::explain_greeting`](crate::tracker::explain_greeting) and
//! [`tracker::explain_frame`](crate::tracker::explain_frame).

use std::borrow::Cow;
use std::fmt;

use crate::DecodeError;

/// One field of a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Field<'a> {
    /// What it is, in the words that errors have for it.
    pub name: &'static str,
    /// The value that it belongs to, counted from 0 in its sequence of packed values.
    pub item: Option<u32>,
    /// Where it starts, from the first byte of the message.
    pub offset: u64,
    /// Its bytes.
    pub len: u64,
    /// What it holds.
    pub value: FieldValue<'a>,
    /// What that means, where it is a code.
    pub meaning: Option<Cow<'static, str>>,
}

impl Field<'_> {
    /// Where it ends.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset + self.len
    }
}

/// What a field holds.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum FieldValue<'a> {
    /// A number with a sign.
    Int(i64),
    /// A number without one.
    Unsigned(u64),
    /// A float.
    Float(f64),
    /// An address or a handle, which means something only to the peer.
    Address(u64),
    /// Text; what is not UTF-8 is replaced where the protocol lets it pass.
    Text(Cow<'a, str>),
    /// Bytes.
    Bytes(&'a [u8]),
}

/// The most characters of a text, and bytes of bytes, that are printed.
const SHOWN: usize = 64;

impl fmt::Display for FieldValue<'_> {
    /// Prints numbers in decimal, addresses in hexadecimal, text in quotes with nothing in it that steers
    /// a terminal, and the first bytes of bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => value.fmt(f),
            Self::Unsigned(value) => value.fmt(f),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Address(value) => write!(f, "{value:#x}"),
            Self::Text(text) => match text.char_indices().nth(SHOWN) {
                None => write!(f, "{text:?}"),
                Some((end, _)) => write!(f, "{:?}… ({} bytes)", &text[..end], text.len()),
            },
            Self::Bytes([]) => f.write_str("no bytes"),
            Self::Bytes(bytes) => {
                for byte in &bytes[..bytes.len().min(SHOWN)] {
                    write!(f, "{byte:02x}")?;
                }
                match bytes.len() {
                    0..=SHOWN => Ok(()),
                    len => write!(f, "… ({len} bytes)"),
                }
            }
        }
    }
}

/// The fields of a message, and what they come to.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation<'a, T> {
    /// The fields that were read, in the order of their bytes.
    pub fields: Vec<Field<'a>>,
    /// What the message says, or why it cannot be read from there on.
    pub result: Result<T, DecodeError>,
}

impl<T> Explanation<'_, T> {
    /// Where the fields end that were read.
    #[must_use]
    pub fn understood(&self) -> u64 {
        self.fields.last().map_or(0, Field::end)
    }

    /// Where the message cannot be understood, if there is such a place.
    #[must_use]
    pub fn stop(&self) -> Option<u64> {
        let error = self.result.as_ref().err()?;
        Some(match error {
            DecodeError::Argument { index, .. } => {
                let argument =
                    |field: &&Field<'_>| field.item.map(usize::try_from) == Some(Ok(*index));
                let first = self.fields.iter().find(argument);
                first.map_or_else(|| self.understood(), |field| field.offset)
            }
            error => error.offset().unwrap_or_else(|| self.understood()),
        })
    }
}

/// How long a message is, as far as its first bytes tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// So many bytes of it are needed to tell.
    AtLeast(u64),
    /// So many bytes in all.
    Exactly(u64),
}

/// The fields that a [`Reader`](crate::wire::Reader) reads.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log<'a> {
    pub(crate) item: Option<u32>,
    pub(crate) fields: Vec<Field<'a>>,
}
