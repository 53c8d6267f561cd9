//! Reading and writing conversations.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

use crate::{Conversation, Message};

/// The longest file that is read, in bytes: what a [`Recorder`](crate::Recorder) with its usual limits
/// writes is shorter.
pub const MAX_FILE_LEN: u64 = 1 << 30;

/// The most messages that are read, and connections, and results; of the shortest ones more would fit in a
/// file.
pub const MAX_MESSAGES: usize = 4 << 20;

/// A conversation that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file could not be read or written.
    #[error("{path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is longer than the limit.
    #[error("{path} has more than {limit} bytes")]
    TooLong {
        /// The file.
        path: PathBuf,
        /// The most that are read.
        limit: u64,
    },
    /// The file is not a conversation.
    #[error("{path} is not a recorded conversation")]
    Json {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
}

impl Conversation {
    /// Reads a file of at most [`MAX_FILE_LEN`] bytes.
    ///
    /// # Errors
    /// The file cannot be read, is too long, or holds something else.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let io = |source| FileError::Io {
            path: path.to_owned(),
            source,
        };
        let mut text = Vec::new();
        let file = File::open(path).map_err(io)?;
        let too_long = || FileError::TooLong {
            path: path.to_owned(),
            limit: MAX_FILE_LEN,
        };
        // What is no file says nothing of its length, and of one that grows it is not the last word.
        if file.metadata().map_err(io)?.len() > MAX_FILE_LEN {
            return Err(too_long());
        }
        let mut file = file.take(MAX_FILE_LEN + 1);
        file.read_to_end(&mut text).map_err(io)?;
        if text.len() as u64 > MAX_FILE_LEN {
            return Err(too_long());
        }
        Self::parse(&text).map_err(|source| FileError::Json {
            path: path.to_owned(),
            source,
        })
    }

    /// Reads the text of a file, with at most [`MAX_MESSAGES`] messages, and as many connections and
    /// results.
    ///
    /// # Errors
    /// The text is no conversation, or has more.
    pub fn parse(text: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(text)
    }

    /// Writes a file such that it is never seen half written: beside it first, under a name of its own,
    /// which then becomes this one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        write_beside(path, |out| self.write_to(out))
    }

    /// Writes the text of a file: one line for each connection, result and message.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        write_parts(out, self, &self.messages)
    }

    /// Writes the text of a file with these messages instead of its own, one at a time.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_with(
        &self,
        out: &mut impl Write,
        messages: impl IntoIterator<Item = Message>,
    ) -> io::Result<()> {
        write_parts(out, self, messages)
    }
}

pub(crate) fn write_beside(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), FileError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let beside = path.with_file_name(name);
    let written = create(&beside).and_then(|file| {
        // Whoever may not read what is there may not read what comes instead.
        if let Ok(there) = fs::metadata(path) {
            file.set_permissions(there.permissions())?;
        }
        let mut out = BufWriter::new(file);
        write(&mut out)?;
        out.flush()
    });
    let done = written.and_then(|()| fs::rename(&beside, path));
    done.map_err(|source| {
        // What could not be renamed is of no use; what is not there cannot be removed.
        let _ = fs::remove_file(&beside);
        FileError::Io {
            path: path.to_owned(),
            source,
        }
    })
}

/// A file that was not there, so that nothing is written through a link that somebody has put there.
fn create(path: &Path) -> io::Result<File> {
    // One may be left of a process of the same number that was killed.
    let _ = fs::remove_file(path);
    File::create_new(path)
}

/// Writes a conversation with these messages instead of its own.
pub(crate) fn write_parts(
    out: &mut impl Write,
    conversation: &Conversation,
    messages: impl IntoIterator<Item: Serialize>,
) -> io::Result<()> {
    write!(out, "{{")?;
    let mut first = true;
    for (name, text) in [
        ("peer", &conversation.peer),
        ("role", &conversation.role),
        ("scenario", &conversation.scenario),
        ("dialect", &conversation.dialect),
        ("description", &conversation.description),
    ] {
        if !text.is_empty() {
            member(out, &mut first, name)?;
            line(out, text)?;
        }
    }
    if conversation.dropped > 0 {
        member(out, &mut first, "dropped")?;
        line(out, &conversation.dropped)?;
    }
    member(out, &mut first, "connections")?;
    lines(out, &conversation.connections)?;
    if !conversation.results.is_empty() {
        member(out, &mut first, "results")?;
        lines(out, &conversation.results)?;
    }
    member(out, &mut first, "messages")?;
    lines(out, messages)?;
    writeln!(out, "\n}}")
}

fn member(out: &mut impl Write, first: &mut bool, name: &str) -> io::Result<()> {
    let separator = if *first { "" } else { "," };
    *first = false;
    write!(out, "{separator}\n \"{name}\": ")
}

fn lines(out: &mut impl Write, items: impl IntoIterator<Item: Serialize>) -> io::Result<()> {
    write!(out, "[")?;
    let mut empty = true;
    for item in items {
        write!(out, "{}\n  ", if empty { "" } else { "," })?;
        line(out, &item)?;
        empty = false;
    }
    write!(out, "{}]", if empty { "" } else { "\n " })
}

fn line(out: &mut impl Write, item: &impl Serialize) -> io::Result<()> {
    item.serialize(&mut Serializer::with_formatter(out, Spaced))?;
    Ok(())
}

/// One line with a space behind comma and colon.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn what_is_there_keeps_its_permissions_and_no_link_is_followed() {
        use std::os::unix::fs::{PermissionsExt, symlink};

        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("r.json"), "").unwrap();
        fs::set_permissions(at("r.json"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(at("other"), "precious").unwrap();
        let beside = format!("r.json.{}.tmp", std::process::id());
        symlink(at("other"), at(&beside)).unwrap();

        let conversation = Conversation::default();
        conversation.write(&at("r.json")).unwrap();
        assert_eq!(Conversation::read(&at("r.json")).unwrap(), conversation);
        let mode = fs::metadata(at("r.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_to_string(at("other")).unwrap(), "precious");
        assert!(!at(&beside).exists());
    }

    #[test]
    fn a_file_is_no_longer_than_the_limit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("long.json");
        // A hole takes no room.
        let file = File::create(&path).unwrap();
        file.set_len(MAX_FILE_LEN + 1).unwrap();
        let error = Conversation::read(&path).unwrap_err();
        assert!(matches!(error, FileError::TooLong { .. }), "{error}");
    }
}
