use super::ForeignAnswer;
use crate::codes::RPC_MAGIC;
use crate::wire::Reader;
use crate::{DecodeError, Limits};

/// The accepting side of a handshake, waiting for a peer that says who it is.
///
/// The driver reads, and hands what came to [`Introduction::receive`], until it gives the peer's key;
/// a driver that reads at most [`Introduction::needed`] bytes at a time reads nothing beyond it. Then it
/// answers with [`put_accept`](super::put_accept) or [`put_refuse`](super::put_refuse).
///
/// ```
/// use rpc_proto::handshake::{Introduction, SessionKey, put_accept};
/// use rpc_proto::Limits;
///
/// let mut introduction = Introduction::new(Limits::default());
/// let sent = b"\x71\xf2\x0f\x00\x09\x00\x00\x00client:x1";
/// assert_eq!(introduction.receive(&sent[..7])?, None);
/// let key = introduction.receive(&sent[7..])?.expect("it is complete");
/// assert_eq!(SessionKey::parse(&key)?.match_key(), "x1");
///
/// let mut out = Vec::new();
/// put_accept("server:x1", Limits::default(), &mut out)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Introduction {
    limits: Limits,
    received: Vec<u8>,
    /// Bytes of it, as far as it is known.
    length: usize,
}

/// A peer that did not say who it is. The connection is of no further use; there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IntroductionError {
    /// The first bytes are none of the protocol.
    #[error("not a TVM RPC peer: it began with {began}")]
    Foreign {
        /// The first bytes.
        began: ForeignAnswer,
    },
    /// The length of the key is negative or over its limit.
    #[error("the peer's handshake is wrong")]
    Decode(#[from] DecodeError),
    /// The peer closed the connection before its handshake was complete.
    #[error("the peer closed the connection in its handshake ({received} of {needed} bytes)")]
    Closed {
        /// Bytes that came.
        received: u64,
        /// Bytes of the handshake: 4 until its magic is known, 8 until its length is.
        needed: u64,
    },
    /// The peer went on without waiting for the answer.
    #[error("the peer sent {bytes} bytes without waiting for the answer to its handshake")]
    TooEager {
        /// How many.
        bytes: u64,
    },
}

impl Introduction {
    /// The start of a fresh connection.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            received: Vec::new(),
            length: 4,
        }
    }

    /// How many bytes may be read without reading beyond the handshake; 0 when it is complete.
    #[must_use]
    pub fn needed(&self) -> usize {
        self.length - self.received.len()
    }

    /// Takes what came from the peer, in pieces of any size, and gives its whole key once that is there.
    ///
    /// # Errors
    /// The peer does not follow the protocol.
    pub fn receive(&mut self, input: &[u8]) -> Result<Option<String>, IntroductionError> {
        let mut rest = input;
        while !rest.is_empty() {
            if self.needed() == 0 {
                return Err(IntroductionError::TooEager {
                    bytes: rest.len() as u64,
                });
            }
            let (part, behind) = rest.split_at(self.needed().min(rest.len()));
            self.received.extend_from_slice(part);
            rest = behind;
            self.read_field(behind)?;
        }
        if self.needed() > 0 {
            return Ok(None);
        }
        let key = std::str::from_utf8(&self.received[8..]);
        match key {
            Ok(key) => Ok(Some(key.to_owned())),
            Err(error) => Err(IntroductionError::Decode(DecodeError::NotUtf8 {
                field: "key of the peer",
                offset: 8 + error.valid_up_to() as u64,
            })),
        }
    }

    /// What it means that the peer's bytes end here; `None` for one that said nothing at all.
    #[must_use]
    pub fn end(&self) -> Option<IntroductionError> {
        (!self.received.is_empty()).then_some(IntroductionError::Closed {
            received: self.received.len() as u64,
            needed: self.length as u64,
        })
    }

    /// Reads the field that was received last, and sets the length that it leads to.
    fn read_field(&mut self, behind: &[u8]) -> Result<(), IntroductionError> {
        match self.received.len() {
            4 if self.received == RPC_MAGIC.to_le_bytes() => self.length = 8,
            4 => {
                let began = self.received.iter().chain(behind).copied();
                return Err(IntroductionError::Foreign {
                    began: ForeignAnswer::new(began),
                });
            }
            8 => {
                let mut reader = Reader::new(&self.received[4..], 4);
                self.length += reader.count("length of the peer's key", self.limits.key)? as usize;
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::in_full;
    use crate::handshake::Handshake;

    fn introduction() -> Introduction {
        Introduction::new(Limits::default())
    }

    #[track_caller]
    fn refused(bytes: &[u8], why: &str) {
        assert_eq!(in_full(&introduction().receive(bytes).unwrap_err()), why);
    }

    #[test]
    fn what_is_no_handshake_is_refused() {
        refused(
            b"GET / HTTP/1.1\r\n",
            "not a TVM RPC peer: it began with bytes 47 45 54 20 2f 20 48 54 54 50 2f 31 2e 31 0d 0a",
        );
        refused(
            b"\x71\xf2\x02\x00",
            "not a TVM RPC peer: it began with bytes 71 f2 02 00 (this is a tracker)",
        );
        refused(
            b"\x71\xf2\x0f\x00\xff\xff\xff\xff",
            "the peer's handshake is wrong: length of the peer's key at offset 4: \
             expected a count of at least 0, found -1",
        );
        refused(
            b"\x71\xf2\x0f\x00\x01\x10\x00\x00",
            "the peer's handshake is wrong: at offset 4: \
             length of the peer's key is 4097, more than the limit of 4096",
        );
        refused(
            b"\x71\xf2\x0f\x00\x03\x00\x00\x00a\xffb",
            "the peer's handshake is wrong: key of the peer at offset 9 is not UTF-8",
        );
        refused(
            b"\x71\xf2\x0f\x00\x01\x00\x00\x00abc",
            "the peer sent 2 bytes without waiting for the answer to its handshake",
        );
    }

    #[test]
    fn a_key_may_be_empty() {
        let sent = b"\x71\xf2\x0f\x00\x00\x00\x00\x00";
        assert_eq!(introduction().receive(sent), Ok(Some(String::new())));
    }

    #[test]
    fn an_end_in_the_middle_is_told() {
        let mut introduction = introduction();
        assert_eq!(introduction.end(), None);
        let _ = introduction.receive(b"\x71\xf2\x0f\x00\x05");
        assert_eq!(
            introduction.end().map(|error| error.to_string()).as_deref(),
            Some("the peer closed the connection in its handshake (5 of 8 bytes)")
        );
    }

    proptest! {
        #[test]
        fn it_reads_what_the_other_side_writes(key: String, piece in 1..20_usize) {
            let mut out = Vec::new();
            Handshake::new(&key, Limits::default(), &mut out)?;
            let mut introduction = introduction();
            let mut read = None;
            for piece in out.chunks(piece) {
                prop_assert!(read.is_none());
                read = introduction.receive(piece)?;
            }
            prop_assert_eq!(read, Some(key));
            prop_assert_eq!(introduction.needed(), 0);
        }

        #[test]
        fn arbitrary_bytes_are_harmless(bytes: Vec<u8>) {
            let _ = introduction().receive(&bytes);
            let _ = introduction().receive(&[b"\x71\xf2\x0f\x00", &*bytes].concat());
        }
    }
}
