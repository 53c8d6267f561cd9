//! Replies, borrowing nothing.

use rpc_proto::endpoint::Reply;
use rpc_proto::{OwnedValue, Returned};

use crate::SessionError;

/// What the server answered, once its payload (if any) was read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    /// Done, or the payload went where it was wanted.
    Done,
    Pointer(u64),
    Attr(OwnedValue),
    Returned(Returned<'static>),
}

impl Answer {
    /// The answer in a reply without a payload.
    pub(crate) fn of(reply: Reply<'_>) -> Result<Self, SessionError> {
        match reply {
            Reply::Pointer(address) => Ok(Self::Pointer(address)),
            Reply::Attr(value) => Ok(Self::Attr(value.into_owned())),
            Reply::Returned(returned) => Ok(Self::Returned(returned.into_owned())),
            Reply::Exception(text) => Err(SessionError::from_exception(&text)),
            Reply::Malformed(error) => Err(SessionError::Answer(error)),
            // Data of no bytes, too, has nothing left to read.
            _ => Ok(Self::Done),
        }
    }

    /// The endpoint answers each request in its own form, so another one is a mistake of ours.
    pub(crate) fn into_pointer(self) -> u64 {
        match self {
            Self::Pointer(address) => address,
            other => unreachable!("a pointer was due, not {other:?}"),
        }
    }

    pub(crate) fn into_attr(self) -> OwnedValue {
        match self {
            Self::Attr(value) => value,
            other => unreachable!("an attribute was due, not {other:?}"),
        }
    }

    pub(crate) fn into_returned(self) -> Returned<'static> {
        match self {
            Self::Returned(returned) => returned,
            other => unreachable!("the result of a call was due, not {other:?}"),
        }
    }
}
