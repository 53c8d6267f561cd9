//! Recorded conversations, held against the specification.

use std::path::PathBuf;

use rpc_conformance::observe;
use rpc_conformance::report::on_one_line;
use rpc_recording::{Conversation, Direction, Protocol};

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
        let connections = conversation.connections.iter();
        let unknown = connections.filter(|connection| connection.proto == Protocol::Unknown);
        let unknown = match unknown.count() {
            0 => String::new(),
            unknown => {
                format!(
                    "; {unknown} connections on which neither a tracker's protocol nor a session's was spoken"
                )
            }
        };
        show(&format!(
            "{}: {} findings in {messages} messages{unknown}\n",
            file.display(),
            findings.len()
        ));
        if !findings.is_empty() {
            status = 1;
        }
    }
    Ok(status)
}
