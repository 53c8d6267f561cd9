//! Recorded conversations, held against the specification.

use std::path::PathBuf;

use rpc_conformance::observe;
use rpc_conformance::report::on_one_line;
use rpc_recording::{Conversation, Direction};

use super::output::show;
use super::{Failure, usage};

pub(super) fn run(files: &[PathBuf]) -> Result<u8, Failure> {
    let mut status = 0;
    for file in files {
        let conversation = Conversation::read(file).map_err(usage)?;
        let findings = observe(&conversation);
        for finding in &findings {
            let by = match finding.by {
                Direction::C2s => "who connected",
                Direction::S2c => "who listened",
            };
            show(&format!(
                "{} message {} by {by}: {} (clause {})\n",
                file.display(),
                finding.message,
                on_one_line(&finding.what),
                finding.clause
            ));
        }
        let messages = conversation.messages.len();
        show(&format!(
            "{}: {} findings in {messages} messages\n",
            file.display(),
            findings.len()
        ));
        if !findings.is_empty() {
            status = 1;
        }
    }
    Ok(status)
}
