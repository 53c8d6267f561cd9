//! The recorded conversations, to find a message of a vector in them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use rpc_proto::Dialect;
use rpc_recording::{Conversation, Kind, Message, Volatile};

use super::vector::{Vector, without_volatile};

/// All messages of all recorded conversations.
pub(super) struct Traces {
    files: Vec<(String, Conversation)>,
}

impl Traces {
    /// Reads the files below `directory`; their names are those from there.
    pub(super) fn read(directory: &Path) -> Result<Self> {
        let mut paths = Vec::new();
        for peer in entries(directory)? {
            paths.extend(entries(&peer)?);
        }
        let mut files = Vec::new();
        for path in paths {
            let name = path.strip_prefix(directory)?.to_string_lossy().into_owned();
            files.push((name, Conversation::read(&path)?));
        }
        Ok(Self { files })
    }

    /// The first message that is the same but for what differs from run to run: its file and number.
    pub(super) fn find(&self, vector: &Vector, volatile: &[Volatile]) -> Option<(&str, usize)> {
        self.files.iter().find_map(|(name, conversation)| {
            let mut messages = conversation.messages.iter();
            let found = messages.find(|message| {
                let mut connections = conversation.connections.iter();
                let connection = connections.find(|connection| connection.id == message.conn);
                let dialect = connection.and_then(|connection| connection.dialect);
                is_same(vector, volatile, message, dialect.unwrap_or_default())
            })?;
            Some((name.as_str(), found.i))
        })
    }

    #[cfg(test)]
    pub(super) fn message(&self, file: &str, i: usize) -> Option<(&Message, Dialect)> {
        let (_, conversation) = self.files.iter().find(|(name, _)| name == file)?;
        let message = conversation
            .messages
            .iter()
            .find(|message| message.i == i)?;
        let mut connections = conversation.connections.iter();
        let connection = connections.find(|connection| connection.id == message.conn)?;
        Some((message, connection.dialect?))
    }
}

fn is_same(vector: &Vector, volatile: &[Volatile], message: &Message, dialect: Dialect) -> bool {
    // On the way from a server to its proxy the directions are the other way round.
    let one_way = vector.kind != Kind::Packet && vector.kind != Kind::Magic;
    vector.kind == message.kind
        && vector.dialects().contains(&dialect)
        && (!one_way || vector.direction == message.dir)
        && vector.bytes.len() == message.bytes.len()
        && masked(&vector.bytes, volatile, message) == masked(&message.bytes, volatile, message)
}

fn masked(bytes: &[u8], volatile: &[Volatile], message: &Message) -> Vec<u8> {
    without_volatile(&without_volatile(bytes, volatile), &message.volatile)
}

fn entries(directory: &Path) -> Result<Vec<std::path::PathBuf>> {
    let entries = fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}
