//! The files of `tests/vectors/traces`; their format is described in `tests/vectors/README.md`.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value as Json;

const DIRECTORY: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/vectors/traces/apache-tvm-0.27.0.post1"
);

/// One recorded scenario.
#[derive(Deserialize)]
pub(crate) struct Trace {
    /// The name of the file.
    #[serde(skip)]
    pub(crate) file: String,
    pub(crate) connections: Vec<Connection>,
    pub(crate) messages: Vec<Message>,
}

#[derive(Deserialize)]
pub(crate) struct Connection {
    pub(crate) id: usize,
    pub(crate) link: String,
}

#[derive(Deserialize)]
pub(crate) struct Message {
    /// Its number in the file.
    pub(crate) i: usize,
    pub(crate) conn: usize,
    pub(crate) dir: Direction,
    pub(crate) kind: Kind,
    hex: String,
    /// What the recorder read in it.
    pub(crate) decoded: Option<Json>,
}

/// From the side that connects to the side that listens, or back.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Direction {
    C2s,
    S2c,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Magic,
    Json,
    Handshake,
    Packet,
    Close,
    Raw,
    Http,
    Ws,
}

impl Message {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        assert!(self.hex.is_ascii() && self.hex.len().is_multiple_of(2));
        let byte = |at| u8::from_str_radix(&self.hex[at..at + 2], 16).unwrap();
        (0..self.hex.len()).step_by(2).map(byte).collect()
    }
}

/// All scenarios, in the order of their names.
pub(crate) fn traces() -> Vec<Trace> {
    let mut paths: Vec<_> = fs::read_dir(DIRECTORY)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert_eq!(paths.len(), 50);
    paths.iter().map(|path| load(path)).collect()
}

fn load(path: &Path) -> Trace {
    let text = fs::read_to_string(path).unwrap();
    let trace =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file = path.file_name().unwrap().to_string_lossy().into_owned();
    Trace { file, ..trace }
}
