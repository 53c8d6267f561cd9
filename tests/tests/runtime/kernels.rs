//! Kernels in every kind of file: uploaded, loaded, run and timed, by every way to a server.

use rpc_session::SessionConstructor;
use rpc_tests::modules::{MATMUL, MATMUL_SIDE, VADD, VADD_LEN, product};
use rpc_tests::ours::Tracker;
use rpc_tracker_client::RequestOptions;
use rpc_tracker_client::blocking::TrackerClient;

use super::*;

fn assert_kernels_run(session: &RemoteSession) {
    for file in VADD.files() {
        let operands = Operands::new(session, [VADD_LEN]);
        let module = load(session, &file);
        let sums = operands.run(&module, VADD.function).unwrap();
        assert_eq!(sums, operands.sums(), "{}", file.display());
        operands.time(&module, VADD, 3, 4);
    }
    for file in MATMUL.files() {
        let operands = Operands::new(session, [MATMUL_SIDE; 2]);
        let module = load(session, &file);
        let (a, b) = (&operands.host_a, &operands.host_b);
        let right = product(a, b, MATMUL_SIDE, MATMUL_SIDE);
        let products = operands.run(&module, MATMUL.function).unwrap();
        assert_eq!(products, right, "{}", file.display());
        operands.time(&module, MATMUL, 3, 4);
    }
}

#[test]
fn our_client_runs_kernels() {
    let server = Server::with_runtime(KEY, &[]);
    assert_kernels_run(&connect(&server));
}

#[test]
fn our_client_runs_kernels_on_a_server_of_a_tracker() {
    let tracker = Tracker::start();
    let _server = Server::with_runtime(KEY, &["--tracker", &tracker.addr().to_string()]);
    let client = TrackerClient::new(address(tracker.addr()));
    let request = RequestOptions::new(KEY);
    let session = RemoteSession::request(&client, &request, &options()).unwrap();
    assert_kernels_run(&session);
}

#[test]
fn our_client_runs_kernels_behind_another_server() {
    let first = Server::with_runtime(KEY, &[]);
    let second = Server::with_runtime("second", &[]);
    let hop = SessionConstructor::connect(&address(second.addr()), "second");
    let session = connect_with(&first, &options().with_constructor(hop));
    assert_kernels_run(&session);
}

#[test]
fn their_client_runs_kernels() {
    let server = Server::with_runtime(KEY, &[]);
    run_client("kernels", &server);
}

#[test]
fn their_client_runs_kernels_on_a_server_of_a_tracker() {
    let tracker = Tracker::start();
    let address = tracker.addr().to_string();
    let _server = Server::with_runtime(KEY, &["--tracker", &address]);
    client("kernels", &["--tracker", &address, "--key", KEY]);
}

#[test]
fn their_client_runs_kernels_behind_another_server() {
    let first = Server::with_runtime(KEY, &[]);
    let second = Server::with_runtime("second", &[]);
    let (first, second) = (first.addr().to_string(), second.addr().to_string());
    let server = ["--server", &first, "--key", KEY];
    let hop = ["--hop", &second, "--hop-key", "second"];
    client("kernels", &[server, hop].concat());
}

#[test]
fn an_archive_is_linked_and_downloaded_as_a_library() {
    let server = Server::with_runtime(KEY, &[]);
    let session = connect(&server);
    let name = session
        .files()
        .upload_file(&VADD.archive(), &mut |_, _| {})
        .unwrap();
    let library = session.files().link_and_download(&name).unwrap();
    assert!(library.starts_with(b"\x7fELF"));

    session.files().upload("linked.so", &library).unwrap();
    let module = session.load_module("linked.so").unwrap();
    let operands = Operands::new(&session, [VADD_LEN]);
    let sums = operands.run(&module, VADD.function).unwrap();
    assert_eq!(sums, operands.sums());
}
