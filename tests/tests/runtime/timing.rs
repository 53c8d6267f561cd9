//! The times that our server and the reference's measure.

use rpc_tests::modules::{MATMUL, MATMUL_SIDE};
use rpc_tests::peers;

use super::*;

fn median(server: std::net::SocketAddr, key: &str) -> f64 {
    let session = RemoteSession::connect(&address(server), key, &options()).unwrap();
    let module = load(&session, &MATMUL.shared_library());
    let operands = Operands::new(&session, [MATMUL_SIDE; 2]);
    operands.time(&module, MATMUL, 20, 7)
}

/// A busy machine disturbs a measurement now and then, so there are ten attempts.
#[test]
fn both_servers_measure_the_same_time() {
    let ours = Server::with_runtime(KEY, &[]);
    let theirs = peers::Server::builder().key(KEY).start();
    let mut ratios = Vec::new();
    while ratios.len() < 10 {
        let ratio = median(ours.addr(), KEY) / median(theirs.addr(), KEY);
        if (0.5..=2.0).contains(&ratio) {
            return;
        }
        ratios.push(ratio);
    }
    panic!("our server measured these multiples of what the reference's did: {ratios:?}");
}
