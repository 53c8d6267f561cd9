//! What a case is: its id, what it checks and why, and the function that plays it.

use std::fmt;

use rpc_recording::Conversation;
use serde::{Deserialize, Serialize};

use crate::roles::{Client, Server, Tracker};
use crate::stage::Outcome;

/// Which side of the protocol is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Role {
    /// A tracker: the suite plays servers and clients.
    Tracker,
    /// A server: the suite plays clients, and the next server of a chain.
    Server,
    /// A client: the suite plays the tracker and the server.
    Client,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 3] = [Self::Tracker, Self::Server, Self::Client];
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tracker => "tracker",
            Self::Server => "server",
            Self::Client => "client",
        })
    }
}

/// How much a case binds, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Who fails it does not speak the protocol.
    Must,
    /// Who fails it works, but worse than it could; a failure is a warning.
    Should,
    /// Good to have; not having it is no failure.
    May,
    /// What the reference does although it follows from nothing; doing otherwise is no failure.
    Quirk,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Must => "MUST",
            Self::Should => "SHOULD",
            Self::May => "MAY",
            Self::Quirk => "QUIRK",
        })
    }
}

/// What else is to be known of a case before it is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Tag {
    /// Breaks the protocol on purpose.
    Hostile,
    /// Other cases must not run at the same time on the same peer.
    Alone,
    /// May leave a peer of no use for others, be it that it ends as it should or that it gets this
    /// wrong: only for peers that the suite can start again.
    Spoils,
    /// Moves megabytes.
    Large,
    /// Waits for something that takes seconds by the protocol.
    Slow,
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hostile => "hostile",
            Self::Alone => "alone",
            Self::Spoils => "spoils",
            Self::Large => "large",
            Self::Slow => "slow",
        })
    }
}

/// One conformance case: a short conversation with named checks.
#[derive(Debug)]
pub struct Case {
    /// Area and number, as `TRK-PUT-003`. Never used again for anything else.
    pub id: &'static str,
    /// How much it binds.
    pub level: Level,
    /// The clause of the specification that it checks.
    pub clause: &'static str,
    /// What is checked, as a sentence about the peer.
    pub what: &'static str,
    /// What goes wrong for others where it does not hold.
    pub why: &'static str,
    /// What else is to be known.
    pub tags: &'static [Tag],
    /// Global functions that a server under test has to have; without them the case is unsupported.
    pub functions: &'static [&'static str],
    pub(crate) play: Play,
}

/// The conversation, by role.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Play {
    Tracker(fn(&Tracker) -> Outcome),
    Server(fn(&Server) -> Outcome),
    Client(fn(&Client) -> Outcome),
    /// A recorded conversation with a peer of this role.
    Replay(Role, &'static Conversation),
}

impl Case {
    pub(crate) const fn tracker(
        id: &'static str,
        level: Level,
        clause: &'static str,
        play: fn(&Tracker) -> Outcome,
    ) -> Self {
        Self::new(id, level, clause, Play::Tracker(play))
    }

    pub(crate) const fn server(
        id: &'static str,
        level: Level,
        clause: &'static str,
        play: fn(&Server) -> Outcome,
    ) -> Self {
        Self::new(id, level, clause, Play::Server(play))
    }

    pub(crate) const fn client(
        id: &'static str,
        level: Level,
        clause: &'static str,
        play: fn(&Client) -> Outcome,
    ) -> Self {
        Self::new(id, level, clause, Play::Client(play))
    }

    const fn new(id: &'static str, level: Level, clause: &'static str, play: Play) -> Self {
        Self {
            id,
            level,
            clause,
            what: "",
            why: "",
            tags: &[],
            functions: &[],
            play,
        }
    }

    /// What is checked, and what goes wrong for others where it does not hold.
    pub(crate) const fn about(mut self, what: &'static str, why: &'static str) -> Self {
        self.what = what;
        self.why = why;
        self
    }

    pub(crate) const fn tags(mut self, tags: &'static [Tag]) -> Self {
        self.tags = tags;
        self
    }

    /// Global functions that the server under test has to have.
    pub(crate) const fn functions(mut self, functions: &'static [&'static str]) -> Self {
        self.functions = functions;
        self
    }

    /// The role that it tests.
    #[must_use]
    pub fn role(&self) -> Role {
        match self.play {
            Play::Tracker(_) => Role::Tracker,
            Play::Server(_) => Role::Server,
            Play::Client(_) => Role::Client,
            Play::Replay(role, _) => role,
        }
    }

    /// The part of the id before the number, as `TRK-PUT`.
    #[must_use]
    pub fn area(&self) -> &'static str {
        self.id.rsplit_once('-').map_or(self.id, |(area, _)| area)
    }

    /// Whether it has this tag.
    #[must_use]
    pub fn has(&self, tag: Tag) -> bool {
        self.tags.contains(&tag)
    }
}
