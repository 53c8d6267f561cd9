//! `tvm-rpc decode` of what has no end, and for whoever does not want all of it.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "the lint spares test functions, not their helpers"
)]

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

fn decode(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tvm-rpc"));
    command.arg("decode").args(arguments);
    command
}

#[test]
fn what_has_no_end_is_read_up_to_a_limit() {
    let expected = "error: /dev/zero has more than 268435456 bytes, the most that are read of what is no text; \
                    a part of it may do\n";
    for more in [&[][..], &["--format", "raw"]] {
        let output = decode(&[&["/dev/zero"], more].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(String::from_utf8(output.stderr).unwrap(), expected);
    }
}

#[test]
fn who_reads_the_first_line_alone_gets_no_error() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("packets.bin");
    let shutdown = b"\x04\0\0\0\0\0\0\0\x01\0\0\0";
    std::fs::write(&file, shutdown.repeat(100_000)).unwrap();
    for more in [&[][..], &["--brief"], &["--json"]] {
        let arguments = [&[file.to_str().unwrap()], more].concat();
        let mut child = decode(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        assert!(!line.is_empty());
        drop(output);
        let mut said = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{said}");
        assert!(
            said.lines().all(|line| line.starts_with("note: ")),
            "{said}"
        );
    }
}
