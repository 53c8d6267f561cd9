//! The first conversation with a peer: what it is, and what it can.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Options;
use super::play::{self, Under};
use crate::case::Case;
use crate::peer::Running;
use crate::roles::Server;
use crate::stage::{Chunking, Conditions, Outcome, Stage, Stop};

/// What the first conversation showed.
#[derive(Debug, Default)]
pub(super) struct Probed {
    /// For the report.
    pub(super) said: BTreeMap<String, String>,
    /// How many cases may run at the same time.
    pub(super) jobs: usize,
    /// Functions that cases need and the server does not have.
    missing: BTreeSet<&'static str>,
}

impl Probed {
    pub(super) fn lacks(&self, function: &str) -> bool {
        self.missing.contains(function)
    }
}

/// Cases at a time where nothing says otherwise.
const JOBS: usize = 8;
/// The same for clients, each of which is a process.
const CLIENTS: usize = 4;

/// Asks the peer. That it does not answer is for the cases to say.
pub(super) fn probe(under: &Under, cases: &[&'static Case], options: &Options) -> Probed {
    let mut probed = Probed {
        said: BTreeMap::new(),
        jobs: JOBS,
        missing: BTreeSet::new(),
    };
    let Some(case) = cases.first() else {
        return probed;
    };
    let stage = Stage::new(
        case,
        Conditions {
            step: Duration::from_secs(5).mul_f64(options.slow),
            total: Duration::from_secs(20).mul_f64(options.slow),
            chunking: Chunking::Whole,
            seed: options.seed,
            is_recorded: false,
        },
    );
    let asked = match under {
        Under::Tracker(running, _) => tracker(&stage, running, &mut probed),
        Under::Server { running, key, .. } => {
            server(&play::server(&stage, running, key), cases, &mut probed)
        }
        Under::Client { .. } => {
            probed.jobs = CLIENTS;
            Ok(())
        }
    };
    if let Err(stop) = asked {
        let found = match stop {
            Stop::Suite(why) | Stop::Unsupported(why) => why,
            Stop::Failed => stage.first_failure(),
        };
        probed.said.insert("answer".to_owned(), found);
    }
    probed
}

fn tracker(stage: &std::sync::Arc<Stage>, running: &Running, probed: &mut Probed) -> Outcome {
    let tracker = play::tracker(stage, running);
    let mut connection = tracker.greeted()?;
    connection.send(&serde_json::json!([6]));
    let summary = connection.answer("summary")?;
    let queues = summary[1]["queue_info"]
        .as_object()
        .map_or(0, serde_json::Map::len);
    probed.said.insert("queues".to_owned(), queues.to_string());
    Ok(())
}

fn server(server: &Server, cases: &[&'static Case], probed: &mut Probed) -> Outcome {
    probed.jobs = 1;
    let mut packets = server.connect()?;
    let key = server.client_key("");
    packets
        .wire
        .send_whole(&crate::roles::server::introduction(key.as_bytes()));
    let own = packets.expect_accepted("handshake")?;
    probed.said.insert("key".to_owned(), own);
    drop(packets);
    let mut session = server.session()?;
    let wanted: BTreeSet<_> = cases
        .iter()
        .flat_map(|case| case.functions)
        .copied()
        .collect();
    for name in wanted {
        if session.look_up(name)? == 0 {
            probed.missing.insert(name);
        }
    }
    let missing: Vec<_> = probed.missing.iter().copied().collect();
    probed
        .said
        .insert("functions that it lacks".to_owned(), missing.join(", "));
    // Others are served while this session is open, or after it.
    let another = server.apart(Duration::from_millis(500));
    let at_once = another.session().is_ok();
    if at_once {
        probed.jobs = JOBS / 2;
    }
    probed.said.insert(
        "sessions at a time".to_owned(),
        if at_once { "many" } else { "one" }.to_owned(),
    );
    session.shut_down()
}
