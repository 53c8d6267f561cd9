//! One client that runs: its process, and the ports on which it meets the suite.

use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rpc_proto::codes::TRACKER_MAGIC;
use serde_json::{Value, json};

use super::{Client, Host, LOOPBACK, Line, Script};
use crate::broken::Relay;
use crate::peer::Process;
use crate::roles::TrackerWire;
use crate::roles::served::{Arrived, Listening, Served};
use crate::stage::{Outcome, Stage, Stop};
use crate::transcript::{Direction, What};
use crate::wire::{Wire, flush};

/// Between two looks at who came and whether the client still runs.
const LOOK: Duration = Duration::from_millis(1);
/// Lines of a client that are read in one go. A script has tens of steps.
const LINES: usize = 10_000;

#[derive(Debug)]
pub(crate) struct Rig {
    pub(crate) stage: Arc<Stage>,
    pub(crate) key: String,
    pub(crate) tracker: Listening,
    pub(crate) server: Listening,
    process: Process,
    /// The process, in the transcript.
    number: usize,
    lines: Vec<Line>,
    /// The steps whose lines have to come.
    expected: Vec<String>,
    grants: u32,
    /// The client's connection to the tracker, which stays open.
    _asking: Option<TrackerWire>,
    /// Sessions of which the client has to notice by itself that they came to nothing.
    kept: Vec<Served>,
    /// What spoils the client, for as long as it runs.
    _relay: Option<Relay>,
}

impl Rig {
    pub(super) fn start(client: &Client, script: &Script, tracker: Listening) -> Outcome<Self> {
        let stage = Arc::clone(&client.stage);
        let server = Listening::new(&stage, LOOPBACK, "the suite as server")?;
        let key = script.key.clone().unwrap_or_else(|| stage.key("device"));
        let relay = client
            .defect
            .map(|defect| Relay::start(defect, tracker.addr()));
        let relay = relay
            .transpose()
            .map_err(|error| Stop::Suite(format!("no relay: {error}")))?;
        let met = relay.as_ref().map_or(tracker.addr(), Relay::addr);
        let given = [
            ("{tracker}", met.to_string()),
            ("{host}", met.ip().to_string()),
            ("{port}", met.port().to_string()),
            ("{key}", key.clone()),
            ("{case}", stage.case.id.to_owned()),
        ];
        let words: Vec<_> = client
            .command
            .iter()
            .map(|word| {
                given.iter().fold(word.clone(), |word, (name, value)| {
                    word.replace(name, value)
                })
            })
            .collect();
        let process = Process::start(&words, &script.variables)
            .map_err(|error| Stop::Suite(format!("cannot start the client: {error}")))?;
        let number = stage.connection("the process of the client".to_owned());
        for (name, value) in &script.variables {
            let note = What::Note(format!("{name}={value}"));
            stage.happened(number, Direction::Sent, note);
        }
        Ok(Self {
            stage,
            key,
            tracker,
            server,
            process,
            number,
            lines: Vec::new(),
            expected: script.lines(),
            grants: 0,
            _asking: None,
            kept: Vec::new(),
            _relay: relay,
        })
    }

    /// A connection to the tracker, on which nothing was said.
    pub(crate) fn tracker_connection(&mut self, check: &str) -> Outcome<TrackerWire> {
        let wire = self.accept(check, |rig| rig.tracker.look())?;
        Ok(TrackerWire { wire })
    }

    /// A connection to the tracker that was greeted.
    pub(crate) fn greeted(&mut self) -> Outcome<TrackerWire> {
        let mut asking = self.tracker_connection("tracker-connection")?;
        asking.greeting("magic")?;
        asking.expect_quiet("nothing-before-the-greeting")?;
        asking.wire.send_whole(&TRACKER_MAGIC.to_le_bytes());
        Ok(asking)
    }

    /// A connection to the tracker that asked for a device.
    pub(crate) fn asked(&mut self) -> Outcome<TrackerWire> {
        let mut asking = self.greeted()?;
        self.expect_request(&mut asking)?;
        Ok(asking)
    }

    /// Checks that a request for a device comes, and gives its priority.
    pub(crate) fn expect_request(&self, asking: &mut TrackerWire) -> Outcome<Value> {
        let mut request = asking.answer("request")?;
        let elements = request.as_array().map_or(0, Vec::len);
        let holds = elements == 4
            && request[0] == json!(4)
            && request[1] == json!(self.key)
            && request[2].is_string();
        let expected = json!([4, self.key, "user", "priority"]);
        self.stage
            .check("request-for-a-device", holds, expected, &request)?;
        Ok(request[3].take())
    }

    /// Grants the device that the suite's own server is, under a new match key, which is given back.
    pub(crate) fn grant(&mut self, asking: &mut TrackerWire) -> String {
        let port = self.server.port();
        self.grant_at(asking, "127.0.0.1", port)
    }

    /// The same, at this address.
    pub(crate) fn grant_at(&mut self, asking: &mut TrackerWire, host: &str, port: u16) -> String {
        let match_key = self.new_match_key();
        asking.send(&json!([0, [host, port, match_key]]));
        match_key
    }

    /// A match key that was not granted before.
    pub(crate) fn new_match_key(&mut self) -> String {
        self.grants += 1;
        format!("{}:0.{}", self.key, self.grants)
    }

    /// A connection to the server, on which nothing was said.
    pub(crate) fn server_connection(&mut self, check: &str) -> Outcome<Wire> {
        self.accept(check, |rig| rig.server.look())
    }

    /// A connection to the server that names this match key.
    pub(crate) fn arrival(&mut self, match_key: &str) -> Outcome<Arrived> {
        let wire = self.server_connection("server-connection")?;
        let arrived = Arrived::read(self.server.packets(wire), "handshake")?;
        let found = arrived.match_key().unwrap_or_default();
        self.stage.check(
            "match-key",
            found == match_key,
            format_args!("the key client:{match_key}"),
            format_args!("the key {}", arrived.key),
        )?;
        Ok(arrived)
    }

    /// Grants a device, and takes the client at its server.
    pub(crate) fn borrowed(&mut self, asking: &mut TrackerWire) -> Outcome<Arrived> {
        let match_key = self.grant(asking);
        self.arrival(&match_key)
    }

    /// A session whose init packet was not answered.
    pub(crate) fn served(&mut self, asking: &mut TrackerWire) -> Outcome<Served> {
        let mut served = self.borrowed(asking)?.accept("suite");
        served.init("init")?;
        Ok(served)
    }

    /// A session on a device that the suite plays.
    pub(crate) fn host_on(&mut self, asking: &mut TrackerWire) -> Outcome<Host> {
        let mut served = self.served(asking)?;
        served.void()?;
        Ok(Host::new(served))
    }

    /// The same, from the first connection to the tracker on, which stays open.
    pub(crate) fn host(&mut self) -> Outcome<Host> {
        let mut asking = self.asked()?;
        let host = self.host_on(&mut asking)?;
        self._asking = Some(asking);
        Ok(host)
    }

    /// A session after a failure: the client asks again, on its connection to the tracker or on a new
    /// one.
    pub(crate) fn host_again(&mut self, asking: TrackerWire) -> Outcome<Host> {
        let mut asking = self.asked_again(asking)?;
        let host = self.host_on(&mut asking)?;
        self._asking = Some(asking);
        Ok(host)
    }

    /// The next request, on this connection to the tracker or on a new one.
    pub(crate) fn asked_again(&mut self, before: TrackerWire) -> Outcome<TrackerWire> {
        match self.asked_again_or_ended(before)? {
            Some(asking) => Ok(asking),
            None => {
                let found = format!("the end of the client; {}", self.last_words());
                Err(self.stage.fail("asks-again", "a new request", found))
            }
        }
    }

    /// The same for a client that may end instead.
    pub(crate) fn asked_again_or_ended(
        &mut self,
        mut before: TrackerWire,
    ) -> Outcome<Option<TrackerWire>> {
        let deadline = self.stage.deadline();
        loop {
            let ended = self.has_ended();
            before.wire.poll();
            if !before.wire.unread().is_empty() {
                self.expect_request(&mut before)?;
                return Ok(Some(before));
            }
            if let Some(wire) = self.tracker.look()? {
                let mut asking = TrackerWire { wire };
                asking.greeting("magic")?;
                asking.wire.send_whole(&TRACKER_MAGIC.to_le_bytes());
                self.expect_request(&mut asking)?;
                return Ok(Some(asking));
            }
            if ended {
                return Ok(None);
            }
            if Instant::now() >= deadline {
                let expected = "a new request, or the end of the client";
                let found = "nothing in time";
                return Err(self.stage.fail("asks-again", expected, found));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Keeps a connection to the client open until the case ends.
    pub(crate) fn keep(&mut self, served: Served) {
        self.kept.push(served);
    }

    fn accept(
        &mut self,
        check: &str,
        look: impl Fn(&Self) -> Outcome<Option<Wire>>,
    ) -> Outcome<Wire> {
        let deadline = self.stage.deadline();
        loop {
            // First whether it is over, so that who connected and ended at once is seen.
            let over = self.over(deadline);
            if let Some(wire) = look(self)? {
                self.stage.passes(check)?;
                return Ok(wire);
            }
            if let Some(found) = over {
                return Err(self.stage.fail(check, "a connection", found));
            }
            std::thread::sleep(LOOK);
        }
    }

    fn has_ended(&mut self) -> bool {
        let ended = self.process.ended().is_some();
        if ended {
            self.read_lines(Instant::now());
        }
        ended
    }

    /// Why nothing more is to be waited for, in words.
    fn over(&mut self, deadline: Instant) -> Option<String> {
        if self.has_ended() {
            return Some(format!("the end of the client; {}", self.last_words()));
        }
        (Instant::now() >= deadline).then(|| "nothing in time".to_owned())
    }

    /// Serves whoever comes to the tracker with `answer` until the client has ended.
    pub(crate) fn while_it_runs(
        &mut self,
        mut answer: impl FnMut(&mut Self, TrackerWire) -> Outcome,
    ) -> Outcome {
        let deadline = self.stage.deadline();
        while self.over(deadline).is_none() {
            if let Some(wire) = self.tracker.look()? {
                answer(self, TrackerWire { wire })?;
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Checks that the client ends as one whose script is done, and gives its lines.
    pub(crate) fn done(&mut self) -> Outcome<Vec<Line>> {
        let status = self.wait("ends")?;
        let failed = self.lines.iter().find(|line| !line.ok);
        let steps: Vec<_> = self.lines.iter().map(|line| line.step.as_str()).collect();
        let holds = status.success() && failed.is_none() && steps == self.expected;
        let expected = format!(
            "the exit status 0, and that these steps did not fail: {}",
            self.expected.join(", ")
        );
        let found = format!("{status}; {}", self.last_words());
        self.stage.check("done", holds, expected, found)?;
        Ok(std::mem::take(&mut self.lines))
    }

    /// Checks that the client ends as one whose script is done, and that functions gave it these: each a
    /// kind, and its text.
    pub(crate) fn gave(&mut self, expected: &[(&str, &str)]) -> Outcome {
        let lines = self.done()?;
        let given: Vec<_> = lines.iter().filter(|line| line.step == "give").collect();
        let found = given.len();
        let holds = found == expected.len();
        self.stage.check("results", holds, expected.len(), found)?;
        for (number, (line, (kind, text))) in given.into_iter().zip(expected).enumerate() {
            let value = line.value.as_deref().unwrap_or_default();
            let same = match *kind {
                // Many texts stand for one number.
                "float" => same_float(value, text),
                _ => value == *text,
            };
            let holds = line.kind.as_deref() == Some(kind) && same;
            let expected = format!("{kind} {}", shortened(text));
            let found = format!("{:?} {}", line.kind, shortened(value));
            self.stage
                .check(&format!("result-{number}"), holds, expected, found)?;
        }
        Ok(())
    }

    /// Waits for the end of the client, however it ends, and gives the first line of this step.
    pub(crate) fn line_of(&mut self, step: &str) -> Outcome<Line> {
        let status = self.wait("ends")?;
        let line = self.lines.iter().find(|line| line.step == step).cloned();
        let holds = status.code().is_some() && line.is_some();
        let expected = format!("a line of the step {step}, and no crash");
        let found = format!("{status}; {}", self.last_words());
        self.stage.check("says-so", holds, expected, found)?;
        line.ok_or(Stop::Failed)
    }

    /// Checks that the client ends as one that met an error in this step and said so.
    pub(crate) fn failed(&mut self, step: &str) -> Outcome<Line> {
        let status = self.wait("ends")?;
        let failed = self.lines.iter().find(|line| !line.ok).cloned();
        let at = failed.as_ref().map(|line| line.step.as_str());
        let holds = status.code() == Some(1) && at == Some(step);
        let expected = format!("the exit status 1, and an error in the step {step}");
        let found = format!("{status}; {}", self.last_words());
        self.stage.check("says-so", holds, expected, found)?;
        failed.ok_or(Stop::Failed)
    }

    fn wait(&mut self, check: &str) -> Outcome<ExitStatus> {
        flush(&self.stage);
        let deadline = self.stage.deadline();
        self.read_lines(deadline);
        match self.process.wait(deadline) {
            Some(status) => {
                self.stage.passes(check)?;
                Ok(status)
            }
            None => {
                let found = format!("a client that still runs; {}", self.last_words());
                Err(self.stage.fail(check, "the end of the client", found))
            }
        }
    }

    fn read_lines(&mut self, deadline: Instant) {
        // One that never stops printing is not read for ever.
        for _ in 0..LINES {
            let Some(text) = self.process.line(deadline) else {
                break;
            };
            let note = What::Note(format!("printed {}", shortened(&text)));
            self.stage.happened(self.number, Direction::Received, note);
            if let Ok(line) = serde_json::from_str(&text) {
                self.lines.push(line);
            }
        }
    }

    /// The last line that it printed, and the last of its standard error.
    fn last_words(&self) -> String {
        let printed = match self.lines.last() {
            Some(line) => shortened(&format!("{line:?}")),
            None => "it printed nothing".to_owned(),
        };
        match self.process.stderr().last() {
            Some(line) => format!("{printed}; its last words: {line}"),
            None => printed,
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.read_lines(Instant::now());
        for line in self.process.stderr() {
            let note = What::Note(format!("said {line}"));
            self.stage.happened(self.number, Direction::Received, note);
        }
    }
}

fn same_float(one: &str, other: &str) -> bool {
    match (one.parse::<f64>(), other.parse::<f64>()) {
        (Ok(one), Ok(other)) => one.to_bits() == other.to_bits() || one.is_nan() && other.is_nan(),
        _ => false,
    }
}

/// The beginning of a text that may have megabytes.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 80;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}… ({} bytes)", &text[..end], text.len()),
        None => format!("{text:?}"),
    }
}
