//! Compiled modules on our server, with TVM's runtime, by both clients: ours and the reference's.
#![allow(
    clippy::unwrap_used,
    reason = "the lint spares test functions, not their helpers"
)]

use std::path::Path;
use std::time::Duration;

use rpc_proto::DataType;
use rpc_session::blocking::{Module, RemoteSession, Tensor};
use rpc_session::{SessionError, SessionOptions, TimeEvaluatorOptions, args};
use rpc_tests::modules::{CompiledModule, elements};
use rpc_tests::ours::Server;
use rpc_tests::peers::client;
use rpc_transport::Address;

mod conformance;
mod demo;
mod hostile;
mod kernels;
mod objects;
mod refusals;
mod timing;

/// For what a healthy peer does at once, on a busy machine.
const SOON: Duration = Duration::from_secs(20);

const KEY: &str = "compiled";

fn address(server: std::net::SocketAddr) -> Address {
    Address::new(&server.ip().to_string(), server.port())
}

/// Options of sessions whose every wait ends.
fn options() -> SessionOptions {
    SessionOptions::default().with_reply_timeout(Some(3 * SOON))
}

fn connect(server: &Server) -> RemoteSession {
    connect_with(server, &options())
}

fn connect_with(server: &Server, options: &SessionOptions) -> RemoteSession {
    RemoteSession::connect(&address(server.addr()), KEY, options).unwrap()
}

/// Runs a case of the reference's client.
#[track_caller]
fn run_client(case: &str, server: &Server) {
    let address = server.addr().to_string();
    client(case, &["--server", &address, "--key", KEY]);
}

fn load(session: &RemoteSession, file: &Path) -> Module {
    let name = session.files().upload_file(file, &mut |_, _| {}).unwrap();
    session.load_module(&name).unwrap()
}

/// What a function without arguments returns.
fn answer(module: &Module, function: &str) -> i64 {
    let output = module.function(function).unwrap().call(&[]).unwrap();
    output.try_into().unwrap()
}

/// Two arguments of a shape for a function, with their elements, and a place for its result.
struct Operands {
    host_a: Vec<f32>,
    host_b: Vec<f32>,
    a: Tensor,
    b: Tensor,
    c: Tensor,
}

impl Operands {
    fn new<const N: usize>(session: &RemoteSession, shape: [usize; N]) -> Self {
        let (shape, host_a) = elements(shape, 1.0);
        let host_b: Vec<f32> = host_a.iter().rev().map(|element| element * -0.5).collect();
        let cpu = session.cpu(0);
        Self {
            a: cpu.tensor(&shape, &host_a).unwrap(),
            b: cpu.tensor(&shape, &host_b).unwrap(),
            c: cpu.empty(&shape, DataType::FLOAT32).unwrap(),
            host_a,
            host_b,
        }
    }

    fn sums(&self) -> Vec<f32> {
        let pairs = self.host_a.iter().zip(&self.host_b);
        pairs.map(|(a, b)| a + b).collect()
    }

    /// Calls the function of a module and gives the result.
    fn run(&self, module: &Module, function: &str) -> Result<Vec<f32>, SessionError> {
        let function = module.function(function)?;
        function.call(args![&self.a, &self.b, &self.c])?;
        self.c.to_vec()
    }

    /// The median of the times that the main function of a module takes, in seconds.
    fn time(&self, module: &Module, name: CompiledModule, number: u32, repeat: u32) -> f64 {
        let options = TimeEvaluatorOptions::default()
            .with_number(number)
            .with_repeat(repeat);
        let evaluator = module
            .time_evaluator(name.function, self.a.device(), &options)
            .unwrap();
        let timing = evaluator.run(args![&self.a, &self.b, &self.c]).unwrap();
        assert_eq!(timing.costs().len(), usize::try_from(repeat).unwrap());
        assert!(
            timing.costs().iter().all(|&cost| cost > 0.0 && cost < 10.0),
            "{timing}"
        );
        timing.median()
    }
}

/// The message of a failure that the server reports.
#[track_caller]
fn message(error: &SessionError) -> &str {
    match error.remote() {
        Some(remote) => remote.message(),
        None => panic!("expected a failure that the server reports, not {error:?}"),
    }
}
