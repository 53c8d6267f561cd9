//! Modules that end or block the process that runs them: their session alone suffers.

use std::process::Command;
use std::time::Instant;

use rpc_tests::modules::ANSWER;
use tempfile::TempDir;

use super::*;

/// Compiles the functions of `hostile.c`.
fn compile() -> (TempDir, std::path::PathBuf) {
    const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/runtime/hostile.c");
    let directory = TempDir::new().unwrap();
    let library = directory.path().join("hostile.so");
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-w", "-o"])
        .args([&library, Path::new(SOURCE)])
        .status()
        .unwrap();
    assert!(status.success(), "cc failed: {status}");
    (directory, library)
}

/// Calls a hostile function in a session. The error, after the server has served another session.
#[track_caller]
fn survived(function: &str, server: &Server, options: &SessionOptions) -> SessionError {
    let (_directory, library) = compile();
    let error = {
        let session = connect_with(server, options);
        let module = load(&session, &library);
        let hostile = module.function(function).unwrap();
        let start = Instant::now();
        let error = hostile.call(&[]).unwrap_err();
        let taken = start.elapsed();
        assert!(taken < SOON, "{taken:?}");
        assert!(error.is_fatal(), "{error:?}");
        error
    };
    let session = connect(server);
    let module = load(&session, &ANSWER.shared_library());
    assert_eq!(answer(&module, ANSWER.function), 42);
    error
}

/// Its client is told how its process ended.
#[track_caller]
fn assert_lost(function: &str, arguments: &[&str], how: &str) {
    let server = Server::with_runtime(KEY, arguments);
    let error = survived(function, &server, &options());
    let SessionError::Lost { message } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(*message, format!("its process ended with {how}"));
}

const SEGMENTATION_FAULT: &str = "signal: 11 (SIGSEGV)";
const ABORT: &str = "signal: 6 (SIGABRT)";

#[test]
fn a_module_that_dereferences_null() {
    assert_lost("dereference_null", &[], SEGMENTATION_FAULT);
}

#[test]
fn the_reference_client_is_told_of_a_crash() {
    let server = Server::with_runtime(KEY, &["--test-functions"]);
    let (_directory, library) = compile();
    let address = server.addr().to_string();
    let library = library.to_str().unwrap();
    let arguments = ["--server", &address, "--key", KEY, "--library", library];
    client("crash", &arguments);
}

#[test]
fn a_module_that_exits() {
    assert_lost("leave", &[], "exit status: 3");
}

#[test]
fn a_module_that_aborts() {
    assert_lost("give_up", &[], ABORT);
}

#[test]
fn a_module_that_takes_memory_without_end() {
    assert_lost("take_memory", &["--memory", "64"], ABORT);
}

#[test]
fn a_module_that_never_returns() {
    let server = Server::with_runtime(KEY, &[]);
    let limited = options().with_session_timeout(Duration::from_secs(2));
    let error = survived("loop", &server, &limited);
    assert!(error.is_session_timeout(), "{error:?}");
}

/// A session has what its server grants, and a GiB for the process itself.
#[test]
fn a_module_is_given_no_more_memory_than_its_session_has() {
    const GRANTED: i64 = 64;
    let server = Server::with_runtime(KEY, &["--memory", &GRANTED.to_string()]);
    let (_directory, library) = compile();
    let session = connect(&server);
    let module = load(&session, &library);
    let given = answer(&module, "memory_given");
    assert!((GRANTED..=GRANTED + 1024).contains(&given), "{given} MiB");
    let module = load(&session, &ANSWER.shared_library());
    assert_eq!(answer(&module, ANSWER.function), 42);
}
