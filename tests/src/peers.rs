//! Peers of the reference implementation, run by `tests/peers/serve.py` on loopback.
//!
//! A peer ends when its value is dropped or when the test process dies, and with it the
//! session processes that a server forked. A test that panics prints the standard error of
//! its peers.

use std::net::SocketAddr;
use std::process::Command;

use process::PeerProcess;

use crate::prepared_path;

pub(crate) mod process;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/serve.py");

fn start(role: &'static str, arguments: &[String]) -> PeerProcess {
    let mut python = Command::new(prepared_path("TVM_RPC_PYTHON"));
    python.args(["-B", SCRIPT, role]).args(arguments);
    PeerProcess::start(role, python)
}

/// What `code` prints, run by the Python that has the reference's package.
///
/// # Panics
///
/// When it fails.
pub fn python(code: &str) -> String {
    let output = Command::new(prepared_path("TVM_RPC_PYTHON"))
        .args(["-B", "-c", code])
        .output()
        .expect("start the Python of TVM_RPC_PYTHON");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the Python code failed:\n{stderr}");
    String::from_utf8(output.stdout).expect("the output is UTF-8")
}

/// Runs a case of `tests/peers/client.py`, with the reference's own client, and gives what it prints.
///
/// # Panics
///
/// When it fails.
#[track_caller]
pub fn client(case: &str, arguments: &[&str]) -> String {
    const CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/client.py");
    let output = Command::new(prepared_path("TVM_RPC_PYTHON"))
        .args(["-B", CLIENT, case])
        .args(arguments)
        .output()
        .expect("start the Python of TVM_RPC_PYTHON");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the case {case} failed:\n{stderr}");
    String::from_utf8(output.stdout).expect("the output is UTF-8")
}

/// A running tracker.
#[derive(Debug)]
pub struct Tracker {
    process: PeerProcess,
}

impl Tracker {
    /// The secret that ends it.
    pub const STOP_KEY: &str = "stop:0.25";

    /// Starts a tracker on a free port.
    ///
    /// # Panics
    ///
    /// When it does not listen within 30 seconds.
    pub fn start() -> Self {
        Self {
            process: Self::start_process(&[]),
        }
    }

    fn start_process(arguments: &[String]) -> PeerProcess {
        let mut all = vec![format!("--stop-key={}", Self::STOP_KEY)];
        all.extend_from_slice(arguments);
        start("tracker", &all)
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.process.addr()
    }

    /// Ends it without a farewell (`SIGKILL`).
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Replaces it by a new tracker, with empty queues, on the same port.
    ///
    /// # Panics
    ///
    /// When the new one does not listen within 30 seconds.
    pub fn restart_on_same_port(&mut self) {
        self.process.kill();
        let port = self.addr().port().to_string();
        self.process = Self::start_process(&["--port".to_owned(), port]);
    }
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    process: PeerProcess,
}

impl Server {
    /// A server with an empty key and without a tracker, unless the builder is told otherwise.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.process.addr()
    }

    /// Ends it and its sessions without a farewell (`SIGKILL`).
    pub fn kill(&mut self) {
        self.process.kill();
    }
}

/// Options of a [`Server`].
#[derive(Debug, Default)]
pub struct ServerBuilder {
    arguments: Vec<String>,
}

impl ServerBuilder {
    /// The key (device type).
    #[must_use]
    pub fn key(self, key: &str) -> Self {
        self.option("--key", key.to_owned())
    }

    /// The tracker that the server offers itself to. It does so after [`start`](Self::start)
    /// has returned: wait for the tracker's summary to list it.
    #[must_use]
    pub fn tracker(self, addr: SocketAddr) -> Self {
        self.option("--tracker", addr.to_string())
    }

    /// The host that the tracker hands out instead of the one that it sees.
    #[must_use]
    pub fn custom_addr(self, host: &str) -> Self {
        self.option("--custom-addr", host.to_owned())
    }

    /// Adds the functions of `tests/peers/test_functions.py` to the `rpc.test.*` functions
    /// that every server has.
    #[must_use]
    pub fn test_functions(mut self) -> Self {
        self.arguments.push("--test-functions".to_owned());
        self
    }

    /// Starts the server on a free port.
    ///
    /// # Panics
    ///
    /// When it does not listen within 30 seconds.
    pub fn start(self) -> Server {
        Server {
            process: start("server", &self.arguments),
        }
    }

    fn option(mut self, name: &str, value: String) -> Self {
        // One word, so that a value may begin with a dash.
        self.arguments.push(format!("{name}={value}"));
        self
    }
}
