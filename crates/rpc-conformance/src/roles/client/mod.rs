//! A client under test: the suite plays the tracker and the server, and starts the client anew in each
//! case. What the client does is the script that the documentation defines; what it saw stands in the
//! lines that it prints.

mod host;
mod rig;
mod script;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

pub(crate) use host::{Host, Name};
pub(crate) use rig::Rig;
pub(crate) use script::{Line, Script};

use super::TrackerWire;
use super::served::{Listening, Served};
use crate::broken::Defect;
use crate::stage::{Outcome, Stage};

/// Where the suite meets a client, which it starts itself.
pub(crate) const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The client under test.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) stage: Arc<Stage>,
    /// The command that starts it, split into words; `{tracker}`, `{host}`, `{port}`, `{key}` and
    /// `{case}` stand for what it is given.
    pub(crate) command: Vec<String>,
    /// What is put in its way to the tracker and the server.
    pub(crate) defect: Option<&'static Defect>,
}

impl Client {
    /// Starts the client with this script.
    pub(crate) fn start(&self, script: &Script) -> Outcome<Rig> {
        let tracker = Listening::new(&self.stage, LOOPBACK, "the suite as tracker")?;
        Rig::start(self, script, tracker)
    }

    /// Starts the client with a tracker that refuses connections until it is opened.
    pub(crate) fn start_early(&self, script: &Script) -> Outcome<Rig> {
        let tracker = Listening::closed(&self.stage, LOOPBACK, "the suite as tracker")?;
        Rig::start(self, script, tracker)
    }

    /// Starts the client and gives it a session, as when nothing goes wrong.
    pub(crate) fn session(&self, script: &Script) -> Outcome<(Rig, Host)> {
        let mut rig = self.start(script)?;
        let host = rig.host()?;
        Ok((rig, host))
    }

    /// One session for each of these, one after the other by the same client. `open` grants a device and
    /// opens the session on it.
    pub(crate) fn sessions<T>(
        &self,
        variants: &[T],
        open: impl Fn(&mut Rig, &mut TrackerWire, &T) -> Outcome<Served>,
    ) -> Outcome {
        let steps = vec!["give"; variants.len()].join(",again,");
        let mut rig = self.start(&Script::steps(&steps))?;
        let mut before: Option<TrackerWire> = None;
        for variant in variants {
            let mut asking = match before {
                Some(before) => rig.asked_again(before)?,
                None => rig.asked()?,
            };
            Host::new(open(&mut rig, &mut asking, variant)?).until_end()?;
            before = Some(asking);
        }
        rig.done().map(drop)
    }
}
