//! What is told while cases are played: a bar on a terminal, elsewhere a line now and then, and the first
//! failure at once.

use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use rpc_conformance::report::on_one_line;
use rpc_conformance::{Played, Status};

use super::output::tell;

/// Between two lines.
const APART: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Progress {
    kind: Kind,
    state: Mutex<State>,
}

#[derive(Debug)]
enum Kind {
    Bar(ProgressBar),
    Lines,
    Nothing,
}

#[derive(Debug)]
struct State {
    played: usize,
    failed: usize,
    told: Instant,
}

impl Progress {
    pub(super) fn new(is_quiet: bool) -> Self {
        let kind = if is_quiet {
            Kind::Nothing
        } else if std::io::stderr().is_terminal() {
            let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {msg}");
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
            Kind::Bar(ProgressBar::new(0).with_style(style))
        } else {
            Kind::Lines
        };
        Self {
            kind,
            state: Mutex::new(State {
                played: 0,
                failed: 0,
                told: Instant::now(),
            }),
        }
    }

    /// A case was played, of so many. `counts` says whether a failure of it is one that nobody expects.
    pub(super) fn played(&self, case: &Played, total: usize, counts: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.played += 1;
        let has_failed = counts && case.status == Status::Fail;
        state.failed += usize::from(has_failed);
        if has_failed && state.failed == 1 {
            self.say(&first_failure(case));
        }
        let State { played, failed, .. } = *state;
        match &self.kind {
            Kind::Bar(bar) => {
                bar.set_length(total as u64);
                bar.set_position(played as u64);
                if failed > 0 {
                    bar.set_message(format!("{failed} failed"));
                }
            }
            Kind::Lines if state.told.elapsed() >= APART => {
                state.told = Instant::now();
                self.say(&format!("{played} of {total} played, {failed} failed"));
            }
            Kind::Lines | Kind::Nothing => {}
        }
    }

    pub(super) fn done(&self) {
        if let Kind::Bar(bar) = &self.kind {
            bar.finish_and_clear();
        }
    }

    fn say(&self, line: &str) {
        match &self.kind {
            Kind::Bar(bar) => bar.println(line),
            Kind::Lines => tell(line),
            Kind::Nothing => {}
        }
    }
}

fn first_failure(case: &Played) -> String {
    let check = case.failed_check().map(|check| {
        let name = &check.name;
        format!(
            "\n  {name}: expected {}, received {}",
            check.expected, check.found
        )
    });
    let text = format!(
        "first failure: {}: {}{}",
        case.name(),
        case.what,
        check.unwrap_or_default()
    );
    // What a peer says must not steer a terminal.
    let lines: Vec<_> = text.lines().map(on_one_line).collect();
    lines.join("\n")
}
