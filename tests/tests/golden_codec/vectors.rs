//! The files of `tests/vectors/traces`; their format is described in `tests/vectors/README.md`.

use std::fs;
use std::path::Path;

use rpc_proto::Dialect;
use serde::{Deserialize, Deserializer};
use serde_json::Value as Json;

/// Peers of the `ffi` dialect.
pub(crate) const FFI: Peers = Peers("apache-tvm-0.27.0.post1", Dialect::Ffi);
/// Peers of the `legacy` dialect.
pub(crate) const LEGACY: Peers = Peers("hhb-tvm-3.2.3", Dialect::Legacy);

/// The peers that were recorded: package with version, and their dialect.
#[derive(Clone, Copy)]
pub(crate) struct Peers(&'static str, Dialect);

/// One recorded scenario.
#[derive(Deserialize)]
pub(crate) struct Trace {
    /// The name of the file.
    #[serde(skip)]
    pub(crate) file: String,
    #[serde(deserialize_with = "dialect")]
    pub(crate) dialect: Dialect,
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

impl Peers {
    /// All their scenarios, in the order of the names.
    pub(crate) fn traces(self) -> Vec<Trace> {
        let Self(folder, dialect) = self;
        let directory = format!("{}/vectors/traces/{folder}", env!("CARGO_MANIFEST_DIR"));
        let mut paths: Vec<_> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        paths.sort();
        assert_eq!(paths.len(), 50);
        let traces: Vec<_> = paths.iter().map(|path| load(path)).collect();
        assert!(traces.iter().all(|trace| trace.dialect == dialect));
        traces
    }
}

fn load(path: &Path) -> Trace {
    let text = fs::read_to_string(path).unwrap();
    let trace =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file = path.file_name().unwrap().to_string_lossy().into_owned();
    Trace { file, ..trace }
}

fn dialect<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Dialect, D::Error> {
    match &*String::deserialize(deserializer)? {
        "ffi" => Ok(Dialect::Ffi),
        "legacy" => Ok(Dialect::Legacy),
        other => Err(serde::de::Error::unknown_variant(other, &["ffi", "legacy"])),
    }
}
