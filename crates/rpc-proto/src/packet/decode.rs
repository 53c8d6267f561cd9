//! From the bytes of a head to a packet.

use std::borrow::Cow;

use super::{Packet, START, Syscall};
use crate::codes::PacketCode;
use crate::tensor;
use crate::wire::Reader;
use crate::{Bulk, DecodeError, Dialect, Limits, Returned, TensorView, Values};

impl<'a> Packet<'a> {
    /// Reads the head that [`super::scan`] found, of a packet with `payload` bytes behind it.
    ///
    /// # Errors
    /// Anything that is not as the protocol says, with its offset from the start of the packet.
    pub fn decode(
        head: &'a [u8],
        payload: u64,
        dialect: Dialect,
        limits: Limits,
    ) -> Result<Self, DecodeError> {
        Self::read(&mut Reader::new(head, 0), head, payload, dialect, limits)
    }

    /// The same with a reader of all of `head`.
    pub(super) fn read(
        reader: &mut Reader<'a>,
        head: &'a [u8],
        payload: u64,
        dialect: Dialect,
        limits: Limits,
    ) -> Result<Self, DecodeError> {
        reader.u64("packet length")?;
        let code = PacketCode(reader.i32("packet code")?);
        reader.means(|| code.name());
        let packet = match code {
            PacketCode::SHUTDOWN => Self::Shutdown,
            PacketCode::INIT_SERVER => Self::Init {
                version: Cow::Borrowed(version(reader)?),
                constructor: dialect.values(reader, limits)?,
            },
            PacketCode::CALL_FUNC => {
                let function = reader.address("function handle")?;
                let bulk = bulk_argument(head, payload, dialect, limits)?;
                let args = match bulk {
                    None => dialect.values(reader, limits)?,
                    Some(_) => dialect.values_before_bulk(reader, limits)?,
                };
                Self::Call {
                    function,
                    args,
                    bulk,
                }
            }
            PacketCode::RETURN if payload > 0 => return bulk_return(head, payload, dialect),
            PacketCode::RETURN => Self::Return(dialect.values(reader, limits)?),
            PacketCode::EXCEPTION => {
                let text = dialect.exception_text(reader, limits)?;
                // Real peers ignore what stands behind the text.
                return Ok(Self::Exception {
                    text: Cow::Owned(text),
                });
            }
            PacketCode::COPY_FROM_REMOTE => {
                let (tensor, nbytes) = copy(reader, limits)?;
                Self::CopyFrom { tensor, nbytes }
            }
            PacketCode::COPY_TO_REMOTE => {
                let (tensor, nbytes) = copy(reader, limits)?;
                if nbytes != payload {
                    let expected = "the length of the data that follows";
                    let found = format!("{nbytes} before {payload} bytes");
                    return Err(DecodeError::unexpected(
                        "bytes to copy",
                        reader.offset() - 8,
                        expected,
                        found,
                    ));
                }
                Self::CopyTo { tensor, nbytes }
            }
            PacketCode::COPY_ACK => Self::CopyAck { nbytes: payload },
            code => {
                if code.name().is_none() {
                    let expected = "a code from 1 to 21";
                    return Err(DecodeError::unexpected("packet code", 8, expected, code.0));
                }
                let values = dialect.values(reader, limits)?;
                // First, so that a wrong argument is known to be in a whole packet.
                reader.finish("packet")?;
                return Syscall::from_values(code, values, dialect).map(Self::Syscall);
            }
        };
        reader.finish("packet")?;
        Ok(packet)
    }

    /// What the return packet of a call means.
    ///
    /// # Errors
    /// Values that are no result of a call.
    pub fn returned(values: Values<'a>, dialect: Dialect) -> Result<Returned<'a>, DecodeError> {
        dialect.returned(values, START)
    }
}

fn version<'a>(reader: &mut Reader<'a>) -> Result<&'a str, DecodeError> {
    let len = reader.u64("length of the version")?;
    reader.text("version", len)
}

fn copy(reader: &mut Reader<'_>, limits: Limits) -> Result<(TensorView, u64), DecodeError> {
    let tensor = tensor::view(reader, limits)?;
    let nbytes = reader.u64("bytes to copy")?;
    Ok((tensor, nbytes))
}

/// The last argument of a call, if it is the payload.
fn bulk_argument(
    head: &[u8],
    payload: u64,
    dialect: Dialect,
    limits: Limits,
) -> Result<Option<Bulk>, DecodeError> {
    if payload == 0 {
        return Ok(None);
    }
    match dialect.bulk_argument(head, limits)? {
        Some(tail) if tail.head == head.len() as u64 && tail.bulk.nbytes == payload => {
            Ok(Some(tail.bulk))
        }
        _ => Err(DecodeError::unexpected(
            "call packet with a payload",
            START,
            "text or bytes as the last argument",
            "something else",
        )),
    }
}

fn bulk_return(head: &[u8], payload: u64, dialect: Dialect) -> Result<Packet<'_>, DecodeError> {
    match dialect.bulk_return(head)? {
        Some(tail) if tail.head == head.len() as u64 && tail.bulk.nbytes == payload => {
            let Bulk { kind, nbytes } = tail.bulk;
            Ok(Packet::BulkReturn { kind, nbytes })
        }
        _ => Err(DecodeError::unexpected(
            "return packet with a payload",
            START,
            "text or bytes",
            "something else",
        )),
    }
}
