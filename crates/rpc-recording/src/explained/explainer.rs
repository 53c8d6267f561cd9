//! What messages say where they stand in a conversation.

use std::collections::HashMap;

use rpc_proto::Dialect;

use super::Explained;
use crate::{Connection, Conversation, Direction, Kind, Message, Protocol};

/// Explains the messages of a conversation, one after the other, in time that grows with their number.
#[derive(Debug)]
pub struct Explainer {
    dialect: Option<Dialect>,
    connections: HashMap<usize, (Protocol, Option<Dialect>)>,
    /// What each side of each connection said last.
    last: HashMap<(usize, Direction), Kind>,
}

impl Explainer {
    /// Before the first message on these connections. They are explained in `dialect`, or in that of
    /// their connection.
    #[must_use]
    pub fn new(connections: &[Connection], dialect: Option<Dialect>) -> Self {
        let known = |connection: &Connection| (connection.proto, connection.dialect);
        Self {
            dialect,
            // Of two with the same number the first counts.
            connections: connections.iter().rev().map(|c| (c.id, known(c))).collect(),
            last: HashMap::new(),
        }
    }

    /// Explains the next message. Of bytes that are no message what comes before them says as what to
    /// read them.
    pub fn explain(&mut self, message: &Message) -> Explained {
        let connection = self.connections.get(&message.conn).copied();
        let (protocol, dialect) = connection.unwrap_or_default();
        let last = self.last.insert((message.conn, message.dir), message.kind);
        explain(message, last, protocol, self.dialect.or(dialect))
    }
}

impl Conversation {
    /// Explains a message, in `dialect` or in that of its connection. Of bytes that are no message what
    /// comes before them says as what to read them; for all messages of a conversation there is
    /// [`Explainer`].
    ///
    /// # Panics
    /// There is no such message.
    #[must_use]
    pub fn explain(&self, index: usize, dialect: Option<Dialect>) -> Explained {
        let message = &self.messages[index];
        let is_its = |connection: &&Connection| connection.id == message.conn;
        let connections = &self.connections;
        // Recorders number them from 0.
        let connection = connections.get(message.conn).filter(is_its);
        let connection = connection.or_else(|| connections.iter().find(is_its));
        let dialect = dialect.or(connection.and_then(|connection| connection.dialect));
        let protocol = connection.map(|connection| connection.proto);
        let last = match message.kind {
            Kind::Raw => {
                let mut before = self.messages[..index].iter().rev();
                before.find(|m| (m.conn, m.dir) == (message.conn, message.dir))
            }
            _ => None,
        };
        let last = last.map(|message| message.kind);
        explain(message, last, protocol.unwrap_or_default(), dialect)
    }
}

fn explain(
    message: &Message,
    last: Option<Kind>,
    protocol: Protocol,
    dialect: Option<Dialect>,
) -> Explained {
    let dialect = dialect.unwrap_or_default();
    if message.kind != Kind::Raw {
        return Explained::message(message, dialect);
    }
    let meant = match (last, protocol) {
        (Some(Kind::Handshake | Kind::Packet), _) => Kind::Packet,
        (Some(Kind::Magic | Kind::Json), _) => Kind::Json,
        (None, Protocol::Tracker) => Kind::Magic,
        (None, Protocol::Rpc) => Kind::Handshake,
        _ => Kind::Raw,
    };
    Explained::attempt(meant, message, dialect)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_after_the_other_is_as_each_alone() {
        let text = include_str!("../../../rpc-cli/tests/cmd/decode.in/session.json");
        let mut conversation = Conversation::parse(text.as_bytes()).unwrap();
        // The same bytes mean another thing where nothing stands before them.
        let mut raw = conversation.messages.clone();
        raw.retain(|message| message.kind == Kind::Raw);
        for (message, conn) in raw.iter_mut().zip([7, 0]) {
            message.conn = conn;
        }
        conversation.messages.splice(0..0, raw);
        let mut explainer = Explainer::new(&conversation.connections, None);
        for (index, message) in conversation.messages.iter().enumerate() {
            let explained = explainer.explain(message);
            assert_eq!(explained, conversation.explain(index, None), "{index}");
        }
    }
}
