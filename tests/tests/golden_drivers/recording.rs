//! Recorded sessions; the format of the files is described in `tests/vectors/README.md`.

use std::fs;

use serde::Deserialize;

#[derive(Deserialize)]
pub(crate) struct Recording {
    results: Vec<Outcome>,
    messages: Vec<Message>,
}

/// What the reference's client made of a step.
#[derive(Deserialize)]
pub(crate) struct Outcome {
    pub(crate) step: String,
    pub(crate) ok: Option<String>,
    pub(crate) error: Option<String>,
}

#[derive(Deserialize)]
struct Message {
    conn: usize,
    dir: String,
    kind: String,
    hex: String,
    step: String,
}

/// One connection, from the client's point of view.
#[derive(Default)]
pub(crate) struct Conversation {
    /// What the client says first, and what it is answered.
    pub(crate) handshake: (Vec<u8>, Vec<u8>),
    pub(crate) exchanges: Vec<Exchange>,
}

/// One packet of the client's, and all that the server sent before the next one.
pub(crate) struct Exchange {
    pub(crate) step: String,
    pub(crate) request: Vec<u8>,
    pub(crate) reply: Vec<u8>,
    /// The server closed the connection then.
    pub(crate) closes: bool,
}

impl Recording {
    pub(crate) fn load(name: &str) -> Self {
        let path = format!(
            "{}/vectors/traces/apache-tvm-0.27.0.post1/{name}.json",
            env!("CARGO_MANIFEST_DIR")
        );
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    }

    pub(crate) fn outcomes(&self) -> &[Outcome] {
        &self.results
    }

    /// The error text of the first step of that name, without what the reference's client puts before
    /// it.
    pub(crate) fn error(&self, step: &str) -> &str {
        let outcome = self.results.iter().find(|outcome| outcome.step == step);
        let error = outcome.and_then(|outcome| outcome.error.as_deref());
        let error = error.unwrap_or_else(|| panic!("no error in step {step}"));
        error
            .strip_prefix("RPCError: Error caught from RPC call:\n")
            .unwrap_or(error)
    }

    pub(crate) fn conversation(&self, connection: usize) -> Conversation {
        let mut conversation = Conversation::default();
        for message in self.messages.iter().filter(|m| m.conn == connection) {
            let bytes = message.bytes();
            let last = conversation.exchanges.last_mut();
            match (message.dir.as_str(), message.kind.as_str(), last) {
                ("c2s", "handshake", _) => conversation.handshake.0.extend(bytes),
                ("s2c", "handshake", _) => conversation.handshake.1.extend(bytes),
                ("c2s", "packet", _) => conversation.exchanges.push(Exchange {
                    step: message.step.clone(),
                    request: bytes,
                    reply: Vec::new(),
                    closes: false,
                }),
                ("s2c", "packet", Some(last)) => last.reply.extend(bytes),
                ("s2c", "close", Some(last)) => last.closes = true,
                ("c2s", "close", _) => {}
                other => panic!(
                    "not a message of a session: {other:?}",
                    other = (other.0, other.1)
                ),
            }
        }
        conversation
    }
}

impl Message {
    fn bytes(&self) -> Vec<u8> {
        let byte = |at| u8::from_str_radix(&self.hex[at..at + 2], 16).unwrap();
        (0..self.hex.len()).step_by(2).map(byte).collect()
    }
}
