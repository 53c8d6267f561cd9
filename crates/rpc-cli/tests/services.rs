//! `tvm-rpc tracker` and `tvm-rpc server` as processes: what they print, how they end, and what becomes
//! of their sessions.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "the lint spares test functions, not their helpers"
)]

mod support;

use std::fs;
use std::io::Read;
use std::time::Duration;

use rpc_session::blocking::RemoteSession;
use rpc_session::{SessionError, SessionOptions, args};
use rpc_tracker_client::blocking::TrackerClient;
use rpc_transport::Address;
use rustix::process::Signal;
use support::{Service, wait_until};

const SERVER: [&str; 6] = ["server", "--port", "0", "--key", "x1", "--test-functions"];

fn server(arguments: &[&str]) -> Service {
    Service::start(&[&SERVER, arguments].concat())
}

fn connect(address: &Address) -> RemoteSession {
    RemoteSession::connect(address, "x1", &SessionOptions::default()).unwrap()
}

fn addone(session: &RemoteSession) -> Result<i64, SessionError> {
    let function = session.function("rpc.test.addone")?;
    function.call(args![1])?.try_into()
}

/// Runs for as long as anyone cares to wait.
fn endless_call(session: &RemoteSession) -> Result<(), SessionError> {
    let number = i64::from(i32::MAX);
    let evaluator = session.function("runtime.RPCTimeEvaluator")?.call(args![
        (),
        "rpc.test.addone",
        1_i64,
        0_i64,
        number,
        1000_i64,
        0_i64,
        100_i64,
        0_i64,
        1_i64,
        0_i64,
        ""
    ])?;
    let evaluator = rpc_session::blocking::Function::try_from(evaluator)?;
    evaluator.call(args![1]).map(drop)
}

#[test]
fn a_service_says_where_it_listens_and_ends_when_it_is_told_to() {
    for service in ["tracker", "server"] {
        for signal in [Signal::TERM, Signal::INT] {
            let mut service = Service::start(&[service, "--port", "0"]);
            service.signal(signal);
            assert_eq!(service.wait().code(), Some(0));
            assert_eq!(service.rest_of_output(), "");
        }
    }
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = Service::start(&["tracker", "--port", "0"]);
    let port = taken.address().port().to_string();
    let failed = support::tvm_rpc(&["tracker", "--port", &port, "--port-end", &port]);
    assert_eq!(failed.status.code(), Some(1));
    let said = String::from_utf8(failed.stderr).unwrap();
    assert!(
        said.starts_with("error: cannot listen on 127.0.0.1"),
        "{said}"
    );
    assert!(said.contains(&port), "{said}");
}

#[test]
fn a_key_with_white_space_is_refused_at_the_start() {
    let failed = support::tvm_rpc(&["server", "--port", "0", "--key", "my board"]);
    assert_eq!(failed.status.code(), Some(1));
    let said = String::from_utf8(failed.stderr).unwrap();
    assert!(said.contains("\"my board\""), "{said}");
}

#[test]
fn a_session_leaves_nothing() {
    let service = server(&[]);
    let session = connect(service.address());
    session.files().upload("a/b.bin", &[1; 100_000]).unwrap();
    assert_eq!(service.session_dirs().len(), 1);
    session.close();
    wait_until("the work directory to go", || {
        service.session_dirs().is_empty()
    });
    assert_eq!(addone(&connect(service.address())).unwrap(), 2);
}

#[test]
fn a_worker_that_dies_costs_its_session_only() {
    let service = server(&[]);
    let session = connect(service.address());
    addone(&session).unwrap();
    support::kill(service.worker());
    let error = addone(&session).unwrap_err();
    assert!(error.is_fatal(), "{error:?}");
    assert_eq!(addone(&connect(service.address())).unwrap(), 2);
    drop(session);
    wait_until("the work directories to go", || {
        service.session_dirs().is_empty()
    });
}

#[test]
fn a_worker_that_dies_before_it_has_a_session_is_replaced() {
    let service = server(&[]);
    wait_until("a worker to wait", || !service.processes().is_empty());
    for worker in service.processes() {
        support::kill(worker);
        wait_until("it to end", || !support::is_alive(worker));
    }
    assert_eq!(addone(&connect(service.address())).unwrap(), 2);
}

#[test]
fn a_worker_that_dies_in_a_call_ends_it_at_once() {
    let service = server(&[]);
    let session = connect(service.address());
    addone(&session).unwrap();
    let worker = service.worker();
    let calling = std::thread::spawn({
        let session = session.clone();
        move || endless_call(&session)
    });
    wait_until("the call to keep a worker busy", || {
        support::cpu_ticks(worker) > 20
    });
    support::kill(worker);
    let error = calling.join().unwrap().unwrap_err();
    assert!(error.is_fatal() && !error.is_session_timeout(), "{error:?}");
}

#[test]
fn a_call_without_end_ends_when_the_time_is_up() {
    let service = server(&[]);
    let options = SessionOptions::default().with_session_timeout(Duration::from_secs(1));
    let session = RemoteSession::connect(service.address(), "x1", &options).unwrap();
    let error = endless_call(&session).unwrap_err();
    assert!(error.is_session_timeout(), "{error:?}");
    assert!(
        error.to_string().contains("Your 1.0s session has expired"),
        "{error}"
    );
    assert_eq!(addone(&connect(service.address())).unwrap(), 2);
}

#[test]
fn a_server_that_is_killed_leaves_neither_workers_nor_directories() {
    let mut service = server(&[]);
    let session = connect(service.address());
    session.files().upload("x.bin", &[1; 1000]).unwrap();
    let workers = service.processes();
    assert!(!workers.is_empty());
    service.signal(Signal::KILL);
    service.wait();
    wait_until("the workers to end", || {
        workers.iter().all(|worker| !support::is_alive(*worker))
    });
    wait_until("the work directory to go", || {
        service.session_dirs().is_empty()
    });
}

#[test]
fn many_crashes_leave_a_server_that_serves() {
    const CRASHES: usize = 100;
    let service = server(&[]);
    connect(service.address());
    let descriptors = || {
        fs::read_dir(format!("/proc/{}/fd", service.id()))
            .unwrap()
            .count()
    };
    let before = descriptors();
    for _ in 0..CRASHES {
        let session = connect(service.address());
        addone(&session).unwrap();
        support::kill(service.worker());
        drop(session);
    }
    assert_eq!(addone(&connect(service.address())).unwrap(), 2);
    wait_until("all that the sessions had to be given back", || {
        service.session_dirs().is_empty()
            && descriptors() <= before
            && service.processes().len() <= 2
    });
}

#[test]
fn a_session_that_wants_too_much_memory_is_told_so() {
    let service = server(&["--memory", "64"]);
    let session = connect(service.address());
    let cpu = session.cpu(0);
    let mut held = Vec::new();
    let error = loop {
        match cpu.empty(&[1 << 20], rpc_proto::DataType::FLOAT32) {
            Ok(tensor) => held.push(tensor),
            Err(error) => break error,
        }
        assert!(held.len() <= 16, "the limit is 64 MiB");
    };
    assert!(error.remote().is_some(), "{error:?}");
    assert_eq!(held.len(), 16);
    drop(held);
    cpu.empty(&[1 << 20], rpc_proto::DataType::FLOAT32).unwrap();
}

#[test]
fn slots_are_sessions_at_once() {
    let service = server(&["--slots", "2"]);
    let (first, second) = (connect(service.address()), connect(service.address()));
    assert_eq!(addone(&first).unwrap() + addone(&second).unwrap(), 4);
    let mut hasty = SessionOptions::default();
    hasty.connect.handshake_timeout = Duration::from_millis(300);
    let error = RemoteSession::connect(service.address(), "x1", &hasty).unwrap_err();
    assert!(
        matches!(&error, SessionError::Transport(error) if error.is_timeout()),
        "{error:?}"
    );
    first.close();
    assert_eq!(addone(&connect(service.address())).unwrap(), 2);
    assert_eq!(addone(&second).unwrap(), 2);
}

#[test]
fn ipv6_and_a_tracker_go_together() {
    let tracker = Service::start(&["tracker", "--host", "::1", "--port", "0"]);
    let at = tracker.address().to_string();
    let server = Service::start(&[
        "server",
        "--host",
        "::",
        "--port",
        "0",
        "--key",
        "x1",
        "--tracker",
        &at,
    ]);
    let client = TrackerClient::new(tracker.address().clone());
    wait_until("the server to register", || {
        client
            .summary()
            .unwrap()
            .queues
            .get("x1")
            .is_some_and(|queue| queue.free == 1)
    });
    let request = rpc_tracker_client::RequestOptions::new("x1");
    let session = RemoteSession::request(&client, &request, &SessionOptions::default()).unwrap();
    assert_eq!(session.peer(), format!("[::1]:{}", server.address().port()));
}

#[test]
fn a_large_upload_takes_no_memory() {
    const SIZE: u64 = 500 << 20;
    const MOST: u64 = 64 << 20;
    let service = server(&[]);
    let session = connect(service.address());
    session.files().upload("small", b"x").unwrap();
    let before = support::peak_memory(service.worker());
    let mut source = std::io::repeat(7).take(SIZE);
    let files = session.files();
    files
        .upload_from("large", SIZE, &mut source, &mut |_, _| ())
        .unwrap();
    let grown = support::peak_memory(service.worker()) - before;
    assert!(grown < MOST, "{grown} bytes for an upload of {SIZE}");
    let [directory] = &service.session_dirs()[..] else {
        panic!("one session has one directory");
    };
    assert_eq!(fs::metadata(directory.join("large")).unwrap().len(), SIZE);
}

#[test]
fn memory_that_the_system_does_not_have_is_refused() {
    // In KiB.
    let service = Service::start_limited("ulimit -v 1500000", &SERVER);
    let session = connect(service.address());
    let cpu = session.cpu(0);
    let error = cpu
        .empty(&[1 << 31], rpc_proto::DataType::UINT8)
        .unwrap_err();
    assert!(error.remote().is_some(), "{error:?}");
    assert_eq!(addone(&session).unwrap(), 2);
    cpu.tensor(&[1000], &[1.0_f32; 1000]).unwrap();
}

#[test]
fn a_file_for_which_there_is_no_room_is_refused() {
    // In blocks of 512 bytes.
    let service = Service::start_limited("trap '' XFSZ; ulimit -f 200", &SERVER);
    let session = connect(service.address());
    let files = session.files();
    for size in [200_000, 2_000_000] {
        let error = files.upload("large", &vec![1; size]).unwrap_err();
        assert!(error.remote().is_some(), "{error:?}");
        assert!(files.download("large").unwrap_err().remote().is_some());
        assert_eq!(files.list("").unwrap(), Vec::<String>::new());
    }
    files.upload("small", &[1; 1000]).unwrap();
    assert_eq!(files.download("small").unwrap(), [1; 1000]);
}

#[test]
fn a_log_for_which_there_is_no_room_ends_nothing() {
    let tracker = Service::start_limited("exec 2>/dev/full", &["tracker", "--port", "0"]);
    let at = tracker.address().to_string();
    let arguments = [&SERVER[..], &["--tracker", &at]].concat();
    let _server = Service::start_limited("exec 2>/dev/full", &arguments);
    let client = TrackerClient::new(tracker.address().clone());
    let request = rpc_tracker_client::RequestOptions::new("x1");
    for _ in 0..2 {
        let session = RemoteSession::request(&client, &request, &SessionOptions::default());
        assert_eq!(addone(&session.unwrap()).unwrap(), 2);
    }
}

#[test]
fn what_a_client_leaks_goes_with_it() {
    const HANDLES: usize = 1000;
    let service = server(&[]);
    let session = connect(service.address());
    let make = session.function("rpc.test.add_to_lhs").unwrap();
    let leaked: Vec<_> = (0..HANDLES)
        .map(|_| make.call(args![1_i64]).unwrap())
        .collect();
    std::mem::forget(leaked);
    session.close();
    wait_until("the session to be gone", || {
        service.session_dirs().is_empty()
    });
    assert_eq!(addone(&connect(service.address())).unwrap(), 2);
}
