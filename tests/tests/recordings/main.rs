//! The recorded conversations of `tests/vectors/traces`, which another program recorded and decoded,
//! against what `rpc-recording` reads, cuts and explains.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cutting;
mod meanings;

use std::fs;
use std::path::Path;

use rpc_recording::Conversation;

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/vectors/traces");

/// All conversations with the names of their files, `PEER/SCENARIO`.
fn traces() -> Vec<(String, Conversation)> {
    let mut paths: Vec<_> = entries(Path::new(DIRECTORY))
        .iter()
        .flat_map(|peer| entries(peer))
        .collect();
    paths.sort();
    assert!(paths.len() >= 100, "{} files", paths.len());
    let read = |path: &Path| {
        let conversation = Conversation::read(path).unwrap();
        let peer = path.parent().unwrap().file_name().unwrap();
        let scenario = path.file_stem().unwrap();
        let name = format!("{}/{}", peer.display(), scenario.display());
        (name, conversation)
    };
    paths.iter().map(|path| read(path)).collect()
}

fn entries(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_file_says_the_same_when_it_is_written_again() {
    for (name, conversation) in traces() {
        let mut text = Vec::new();
        conversation.write_to(&mut text).unwrap();
        let again = Conversation::parse(&text).unwrap();
        assert!(again == conversation, "{name}");
    }
}
