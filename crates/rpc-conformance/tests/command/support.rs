//! What the tests of the command have in common.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use rpc_conformance::Run;
use tempfile::TempDir;

/// A MUST that the tracker of these tests passes.
pub(crate) const PASSING: &str = "TRK-HELLO-001";
/// One that it fails.
pub(crate) const FAILING: &str = "TRK-PUT-001";

/// A tracker that greets, and can do nothing but answer a ping.
pub(crate) fn tracker() -> String {
    answering(|frame| if frame == b"[1]" { b"0" } else { b"1" })
}

/// A tracker that greets, and answers each request so.
pub(crate) fn answering(answer: impl Fn(&[u8]) -> &'static [u8] + Copy + Send + 'static) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream, answer));
        }
    });
    addr.to_string()
}

/// Serves until the other side has gone.
fn serve(mut stream: TcpStream, answer: impl Fn(&[u8]) -> &'static [u8]) -> std::io::Result<()> {
    let mut word = [0; 4];
    stream.read_exact(&mut word)?;
    stream.write_all(&word)?;
    loop {
        stream.read_exact(&mut word)?;
        let mut frame = vec![0; u32::from_le_bytes(word).min(1 << 20) as usize];
        stream.read_exact(&mut frame)?;
        let answer = answer(&frame);
        let length = u32::try_from(answer.len()).unwrap();
        stream.write_all(&length.to_le_bytes())?;
        stream.write_all(answer)?;
    }
}

pub(crate) fn run(arguments: &[&str]) -> Output {
    let mut command = Command::cargo_bin("tvm-rpc-conformance").unwrap();
    command.args(arguments).output().unwrap()
}

/// Plays these cases on such a tracker.
pub(crate) fn play(only: &str, more: &[&str]) -> Output {
    let addr = tracker();
    let mut arguments = vec!["tracker", "--addr", &addr, "--only", only, "--slow", "0.2"];
    arguments.extend(more);
    run(&arguments)
}

#[track_caller]
pub(crate) fn expect(output: &Output, status: i32, said: &str) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(output.status.code(), Some(status), "{text}");
    assert!(text.contains(said), "{text}");
}

pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        fs::write(self.path(name), text).unwrap();
        self.name(name)
    }

    pub(crate) fn name(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }
}

pub(crate) fn report(path: &Path) -> Run {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}
