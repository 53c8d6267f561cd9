//! What two peers said to each other, held against the specification: for peers that the suite cannot
//! play with, but whose conversation a relay has recorded.

use std::collections::{HashMap, VecDeque};

use rpc_proto::codes::{PacketCode, SESSION_TIMEOUT_PREFIX};
use rpc_proto::packet::{Frame, scan};
use rpc_proto::{Dialect, Limits, Packet, Returned, Syscall, Value};
use rpc_recording::{
    Connection, Conversation, Cutter, Direction, Explainer, Kind, Message, Protocol, Stage,
};

/// Something in a conversation that the specification does not allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The number of the message in the recording.
    pub message: usize,
    /// Who sent it.
    pub by: Direction,
    /// The clause, or the section where several may be meant.
    pub clause: &'static str,
    /// What is wrong.
    pub what: String,
}

/// Everything in a recorded conversation that the specification does not allow, in the order of the
/// messages. Connections to a proxy are not looked at.
#[must_use]
pub fn observe(conversation: &Conversation) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut talks: HashMap<_, _> = conversation
        .connections
        .iter()
        .filter(|connection| !connection.link.contains("proxy"))
        .map(|connection| (connection.id, Talk::new(connection)))
        .collect();
    let mut explainer = Explainer::new(&conversation.connections, None);
    let said = conversation.messages.iter().enumerate();
    let said = said.filter(|(_, message)| message.kind != Kind::Close);
    let last: HashMap<_, _> = said.map(|(at, message)| (message.conn, at)).collect();
    for (at, message) in conversation.messages.iter().enumerate() {
        let explained = explainer.explain(message);
        let Some(talk) = talks.get_mut(&message.conn) else {
            continue;
        };
        let mut found = |clause, what| {
            findings.push(Finding {
                message: message.i,
                by: message.dir,
                clause,
                what,
            });
        };
        let is_last = last.get(&message.conn) == Some(&at);
        if message.kind == Kind::Raw && is_last && talk.is_cut_off(message) {
            // It is lost, and not wrong: where a recording ends says nothing of who spoke.
            talk.is_lost = true;
            continue;
        }
        if message.kind == Kind::Raw {
            found(
                talk.section(message),
                "bytes that are no message".to_owned(),
            );
            talk.is_lost = true;
            continue;
        }
        if let Some(stop) = explained.stop {
            found(
                talk.section(message),
                format!("{} at byte {}: {}", stop.field, stop.offset, stop.why),
            );
            talk.is_lost = true;
            continue;
        }
        talk.heard(message, &mut found);
    }
    findings
}

/// What is known of one connection.
#[derive(Debug)]
struct Talk {
    protocol: Protocol,
    dialect: Dialect,
    /// Codes of requests that wait for their replies; of a tracker's, 0.
    waiting: VecDeque<PacketCode>,
    /// How often each handle was given, less how often it was given up.
    handles: HashMap<u64, i64>,
    /// A handle may have been given that is not among them.
    gives_unseen: bool,
    /// Something was said that is no message, or not one of this side: what answers what, and which
    /// handles there are, is not known any more, and nobody may be blamed for it.
    is_lost: bool,
}

impl Talk {
    fn new(connection: &Connection) -> Self {
        Self {
            protocol: connection.proto,
            dialect: connection.dialect.unwrap_or_default(),
            waiting: VecDeque::new(),
            handles: HashMap::new(),
            gives_unseen: false,
            is_lost: false,
        }
    }

    /// The part of the specification that says what a message looks like.
    fn section(&self, message: &Message) -> &'static str {
        match (self.protocol, message.kind, message.dir) {
            (Protocol::Tracker, Kind::Magic, _) => "2.1",
            (Protocol::Tracker, Kind::Json, Direction::C2s) => "2.3",
            (Protocol::Tracker, ..) => "2.2",
            (Protocol::Ws, ..) => "12.1",
            (_, Kind::Handshake, _) => "3",
            // It began neither as a tracker's connection nor as a session's.
            (Protocol::Unknown, ..) => "2.1 or 3.1",
            _ => "4.3",
        }
    }

    /// Whether these bytes are the beginning of a message, and no more of it.
    fn is_cut_off(&self, message: &Message) -> bool {
        let later = match self.protocol {
            Protocol::Tracker => Stage::Frames,
            _ => Stage::Packets,
        };
        // A recording may begin later than the connection did.
        [Stage::Beginning, later].into_iter().any(|stage| {
            let mut cutter = Cutter::new(message.dir, stage, 0);
            let mut is_whole = false;
            cutter.push(&message.bytes, |_| is_whole = true);
            !is_whole && cutter.take_unknown().is_none() && !cutter.is_between_messages()
        })
    }

    fn heard(&mut self, message: &Message, found: &mut dyn FnMut(&'static str, String)) {
        match (message.kind, message.dir) {
            (Kind::Json, Direction::C2s) => self.waiting.push_back(PacketCode(0)),
            (Kind::Json, Direction::S2c) if !self.is_lost && self.waiting.pop_front().is_none() => {
                found("2.2.1", "an answer that nobody asked for".to_owned());
            }
            (Kind::Packet, Direction::C2s) => self.asked(message, found),
            (Kind::Packet, Direction::S2c) => self.answered(message, found),
            _ => {}
        }
    }

    fn asked(&mut self, message: &Message, found: &mut dyn FnMut(&'static str, String)) {
        let Some(code) = code(&message.bytes).filter(|&code| code != PacketCode::SHUTDOWN) else {
            return;
        };
        if [
            PacketCode::RETURN,
            PacketCode::EXCEPTION,
            PacketCode::COPY_ACK,
        ]
        .contains(&code)
        {
            found("4.3.2", format!("a client that sends a {code}"));
            self.is_lost = true;
            return;
        }
        self.waiting.push_back(code);
        if let Some(Packet::Syscall(Syscall::FreeHandle { handle, .. })) = self.packet(message) {
            let given = self.handles.entry(handle).or_default();
            *given -= 1;
            if *given < 0 && !self.gives_unseen && !self.is_lost {
                let what = format!("{handle:#x} is given up more often than it was given");
                found("9.9.1", what);
            }
        }
    }

    fn answered(&mut self, message: &Message, found: &mut dyn FnMut(&'static str, String)) {
        let Some(code) = code(&message.bytes).filter(|&code| code != PacketCode::SHUTDOWN) else {
            return;
        };
        if self.is_lost {
            return;
        }
        let packet = self.packet(message);
        let Some(request) = self.waiting.pop_front() else {
            let timed_out = matches!(&packet, Some(Packet::Exception { text })
                if text.starts_with(SESSION_TIMEOUT_PREFIX));
            if !timed_out {
                found("4.2.3", format!("a {code} that nobody asked for"));
            }
            return;
        };
        let right = match code {
            PacketCode::EXCEPTION => true,
            PacketCode::COPY_ACK => request == PacketCode::COPY_FROM_REMOTE,
            PacketCode::RETURN => request != PacketCode::COPY_FROM_REMOTE,
            _ => false,
        };
        if !right {
            found("4.2.1", format!("a {code} as the reply to a {request}"));
            return;
        }
        let gives = [PacketCode::GET_GLOBAL_FUNC, PacketCode::CALL_FUNC].contains(&request);
        // Of a long one not all was recorded.
        self.gives_unseen |= code == PacketCode::RETURN && gives && packet.is_none();
        let given = match packet {
            Some(Packet::Return(values)) if request == PacketCode::GET_GLOBAL_FUNC => {
                values.iter().find_map(|value| match value {
                    Value::Pointer(handle) => Some(*handle),
                    _ => None,
                })
            }
            Some(Packet::Return(values)) if request == PacketCode::CALL_FUNC => {
                let returned = Packet::returned(values, self.dialect).ok();
                returned.as_ref().and_then(Returned::handle)
            }
            _ => None,
        };
        if let Some(handle) = given.filter(|&handle| handle != 0) {
            *self.handles.entry(handle).or_default() += 1;
        }
    }

    /// The packet, where all of it was recorded and it has no payload.
    fn packet(&self, message: &Message) -> Option<Packet<'static>> {
        let limits = Limits::default().with_packet(u64::MAX);
        match scan(&message.bytes, self.dialect, limits).ok()? {
            Frame::Packet { head, payload: 0 } => {
                let head = usize::try_from(head).ok()?;
                let packet = Packet::decode(message.bytes.get(..head)?, 0, self.dialect, limits);
                packet.ok().map(Packet::into_owned)
            }
            _ => None,
        }
    }
}

fn code(bytes: &[u8]) -> Option<PacketCode> {
    let code = bytes.get(8..12)?.try_into().ok()?;
    Some(PacketCode(i32::from_le_bytes(code)))
}
