use std::collections::BTreeMap;

use crate::results::{Played, Run};
use crate::stage::Chunking;

/// The command that plays one case of a run again as it was played: what the run itself does not know of
/// it.
#[derive(Debug, Clone)]
pub struct Again {
    command: String,
    options: Vec<(String, String)>,
    recordings: BTreeMap<String, String>,
}

impl Default for Again {
    /// `tvm-rpc-conformance`, with nothing but what the run says.
    fn default() -> Self {
        Self {
            command: "tvm-rpc-conformance".to_owned(),
            options: Vec::new(),
            recordings: BTreeMap::new(),
        }
    }
}

impl Again {
    /// By another command.
    #[must_use]
    pub fn with_command(mut self, command: impl Into<String>) -> Self {
        self.command = command.into();
        self
    }

    /// With one more option that every case was played with.
    #[must_use]
    pub fn with_option(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.options.push((name.into(), value.into()));
        self
    }

    /// The case of this id is the recorded conversation of this file.
    #[must_use]
    pub fn with_recording(mut self, id: impl Into<String>, file: impl Into<String>) -> Self {
        self.recordings.insert(id.into(), file.into());
        self
    }

    pub(crate) fn line(&self, run: &Run, case: &Played) -> String {
        let mut words = vec![run.role.to_string()];
        let mut option = |name: &str, value: &str| {
            let value = shlex::try_quote(value).map_or_else(|_| value.to_owned(), Into::into);
            words.push(format!("{name} {value}"));
        };
        let peer = &run.peer;
        for (name, value) in [
            ("--addr", &peer.address),
            ("--cmd", &peer.command),
            ("--key", &peer.key),
        ] {
            if let Some(value) = value {
                option(name, value);
            }
        }
        match self.recordings.get(&case.id) {
            Some(file) => option("--replay", file),
            None => option("--only", &case.id),
        }
        if case.chunking != Chunking::Whole {
            option("--axis", &format!("chunking={}", case.chunking));
        }
        option("--seed", &case.seed(run.seed).to_string());
        if (run.slow - 1.0).abs() > f64::EPSILON {
            option("--slow", &run.slow.to_string());
        }
        for (name, value) in &self.options {
            option(name, value);
        }
        format!("{} {}", self.command, words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;
    use crate::results::Status;

    #[test]
    fn all_that_the_playing_of_a_case_depends_on() {
        let mut run = samples::run();
        run.slow = 0.5;
        let mut case = samples::failing();
        let again = Again::default().with_option("--broken", "missing-flush");
        assert_eq!(
            again.line(&run, &case),
            "tvm-rpc-conformance tracker --cmd './tracker --port {port}' --only TRK-PUT-002 \
             --axis 'chunking=random' --seed 7 --slow 0.5 --broken missing-flush"
        );
        // The third try had another seed.
        case.tries = vec![Status::Pass, Status::Pass, Status::Fail];
        let line = again.line(&run, &case);
        assert!(line.contains(" --seed 8589934599 "), "{line}");
    }

    #[test]
    fn a_recording_has_a_file() {
        let run = samples::run();
        let mut case = samples::failing();
        (case.id, case.chunking) = ("REPLAY-talk".to_owned(), Chunking::Whole);
        let again = Again::default()
            .with_command("play")
            .with_recording("REPLAY-talk", "my talk.json");
        assert_eq!(
            again.line(&run, &case),
            "play tracker --cmd './tracker --port {port}' --replay 'my talk.json' --seed 7"
        );
    }
}
