//! Recorded conversations, held against the specification.

use std::path::PathBuf;

use rpc_conformance::observe;
use rpc_recording::{Conversation, Direction};

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
            println!(
                "{} message {} by {by}: {} (clause {})",
                file.display(),
                finding.message,
                finding.what,
                finding.clause
            );
        }
        let messages = conversation.messages.len();
        println!(
            "{}: {} findings in {messages} messages",
            file.display(),
            findings.len()
        );
        if !findings.is_empty() {
            status = 1;
        }
    }
    Ok(status)
}
