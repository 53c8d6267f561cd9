//! The worked examples of the specification are what real peers sent, byte for byte.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};

use rpc_recording::Conversation;

/// An example: ` ```hex `, then `# RECORDING #MESSAGE`, then bytes.
struct Example {
    page: String,
    recording: String,
    message: usize,
    bytes: Vec<u8>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn examples() -> Vec<Example> {
    let pages = fs::read_dir(root().join("docs/spec")).unwrap();
    let pages = pages.map(|page| page.unwrap().path());
    pages.flat_map(|page| examples_of(&page)).collect()
}

fn examples_of(page: &Path) -> Vec<Example> {
    let text = fs::read_to_string(page).unwrap();
    let blocks = text.split("```hex\n").skip(1);
    blocks
        .map(|block| {
            let block = block.split("```").next().unwrap();
            example(page, block).unwrap_or_else(|| panic!("{}: {block}", page.display()))
        })
        .collect()
}

fn example(page: &Path, block: &str) -> Option<Example> {
    let (origin, digits) = block.split_once('\n')?;
    let (recording, message) = origin.strip_prefix("# ")?.split_once(" #")?;
    let digits: String = digits.split_whitespace().collect();
    Some(Example {
        page: page.file_name()?.to_str()?.to_owned(),
        recording: recording.to_owned(),
        message: message.parse().ok()?,
        bytes: hex::decode(digits).ok()?,
    })
}

#[test]
fn examples_are_recorded_messages() {
    let examples = examples();
    assert!(examples.len() >= 50, "{} examples", examples.len());
    for Example {
        page,
        recording,
        message,
        bytes,
    } in examples
    {
        let name = format!("tests/vectors/traces/apache-tvm-0.27.0.post1/{recording}.json");
        let conversation = Conversation::read(&root().join(name)).unwrap();
        let recorded = conversation
            .messages
            .iter()
            .find(|recorded| recorded.i == message);
        let recorded =
            recorded.unwrap_or_else(|| panic!("{page}: {recording} has no message {message}"));
        assert_eq!(
            hex::encode(&bytes),
            hex::encode(&recorded.bytes),
            "{page}: {recording} #{message}"
        );
    }
}
