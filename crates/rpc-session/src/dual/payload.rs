//! Payloads on their way: from where, to where, in pieces.

use std::borrow::Cow;
use std::sync::Arc;

use rpc_proto::{Returned, Value};

use super::{DynRead, DynWrite, Incoming, Reader, bisync};
#[super::only_async]
use super::{ReadExt as _, WriteExt as _};
use crate::SessionError;
use crate::answer::Answer;
use crate::serving::ClientGone;

/// Bytes that are read or written at once where something happens with each piece.
pub(in super::super) const PIECE: usize = 256 << 10;

/// Is told how many bytes are done, and of how many.
pub type Progress<'a> = &'a mut (dyn FnMut(u64, u64) + Send);

/// Where a payload comes from.
pub(in super::super) enum Source<'a> {
    Memory(&'a [u8]),
    /// A reader that has as many bytes as the packet says.
    Reader {
        reader: &'a mut DynRead<'a>,
        progress: Progress<'a>,
    },
}

/// Where a payload goes.
pub(in super::super) enum Sink<'a> {
    /// Into the answer.
    Answer,
    /// As long as the payload.
    Memory(&'a mut [u8]),
    Writer {
        writer: &'a mut DynWrite<'a>,
        progress: Progress<'a>,
    },
}

/// A payload that the server announced.
#[derive(Debug, Clone, Copy)]
pub(in super::super) enum Announced {
    /// Bytes of a tensor.
    Data,
    /// The result of a call.
    Text,
    Bytes,
}

/// Reads a payload of `left` bytes into `sink`, and counts `left` down on the way: what is left after a
/// failure at this end has to be skipped.
#[bisync]
pub(in super::super) async fn receive(
    announced: Announced,
    left: &mut u64,
    sink: Sink<'_>,
    incoming: &mut Incoming,
    reader: &mut Reader,
) -> Result<Answer, SessionError> {
    match sink {
        Sink::Memory(target) => {
            // The endpoint compared the announced length with the one that was asked for.
            read_counted(target, left, incoming, reader).await?;
            Ok(Answer::Done)
        }
        Sink::Writer { writer, progress } => {
            let total = *left;
            let mut piece = vec![0; PIECE];
            while *left > 0 {
                let count = usize::try_from(*left).unwrap_or(PIECE).min(PIECE);
                read_counted(&mut piece[..count], left, incoming, reader).await?;
                writer
                    .write_all(&piece[..count])
                    .await
                    .map_err(local_failure)?;
                progress(total - *left, total);
            }
            // A writer with a buffer of its own has done nothing until then.
            writer.flush().await.map_err(local_failure)?;
            Ok(Answer::Done)
        }
        Sink::Answer => {
            let mut bytes = Vec::new();
            while *left > 0 {
                // Memory is taken for what has come, not for what was announced.
                let count = usize::try_from(*left).unwrap_or(PIECE);
                let count = count.min(PIECE.max(bytes.len()));
                let filled = bytes.len();
                bytes.resize(filled + count, 0);
                read_counted(&mut bytes[filled..], left, incoming, reader).await?;
            }
            collected(announced, bytes)
        }
    }
}

/// Fills `target`, and counts `left` down with every byte, so that a dropped future leaves the right
/// number behind.
#[bisync]
async fn read_counted(
    mut target: &mut [u8],
    left: &mut u64,
    incoming: &mut Incoming,
    reader: &mut Reader,
) -> Result<(), SessionError> {
    while !target.is_empty() {
        let count = incoming.read_some(reader, target).await?;
        *left -= count as u64;
        target = &mut target[count..];
    }
    Ok(())
}

fn collected(announced: Announced, bytes: Vec<u8>) -> Result<Answer, SessionError> {
    let value = match announced {
        Announced::Data => return Ok(Answer::Done),
        Announced::Bytes => Value::Bytes(Cow::Owned(bytes)),
        Announced::Text => {
            let text =
                String::from_utf8(bytes).map_err(|error| rpc_proto::DecodeError::NotUtf8 {
                    field: "text",
                    offset: error.utf8_error().valid_up_to() as u64,
                })?;
            Value::Str(Cow::Owned(text))
        }
    };
    Ok(Answer::Returned(Returned::Value(value)))
}

/// Fills as much of `piece` as `reader` still has.
#[bisync]
pub(in super::super) async fn read_piece(
    reader: &mut DynRead<'_>,
    piece: &mut [u8],
) -> Result<usize, SessionError> {
    let mut filled = 0;
    while filled < piece.len() {
        match reader
            .read(&mut piece[filled..])
            .await
            .map_err(local_failure)?
        {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

/// The caller's own reader or writer failed.
fn local_failure(source: std::io::Error) -> SessionError {
    if source
        .get_ref()
        .is_some_and(|error| error.is::<ClientGone>())
    {
        let source = Arc::new(source);
        return SessionError::ClientGone { source };
    }
    SessionError::File {
        path: "the data at this end".to_owned(),
        source: Arc::new(source),
    }
}

/// The caller's reader has less than it promised.
pub(in super::super) fn ended_early(nbytes: u64) -> SessionError {
    let reason = format!("it ended before the {nbytes} bytes that were announced");
    local_failure(std::io::Error::new(
        std::io::ErrorKind::UnexpectedEof,
        reason,
    ))
}
