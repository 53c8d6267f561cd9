//! Our own tracker and server, as the `tvm-rpc` command starts them.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use crate::peers::process::PeerProcess;
use crate::peers::python;
use crate::prepared_path;

/// The command `tvm-rpc`.
///
/// # Panics
///
/// Outside of `cargo xtask interop`.
pub fn tvm_rpc() -> Command {
    Command::new(prepared_path("TVM_RPC_BIN"))
}

/// A service on this machine's loopback.
fn service(name: &str, port: u16) -> Command {
    let mut command = tvm_rpc();
    command.args([name, "--host", "127.0.0.1", "--port", &port.to_string()]);
    command
}

/// A running tracker.
#[derive(Debug)]
pub struct Tracker {
    process: PeerProcess,
}

impl Tracker {
    /// Starts a tracker on a free port.
    ///
    /// # Panics
    ///
    /// When it does not listen within 30 seconds.
    pub fn start() -> Self {
        Self {
            process: PeerProcess::start("tracker", service("tracker", 0)),
        }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.process.addr()
    }

    /// Replaces it by a new tracker, with empty queues, on the same port.
    ///
    /// # Panics
    ///
    /// When the new one does not listen within 30 seconds.
    pub fn restart_on_same_port(&mut self) {
        self.process.kill();
        let again = service("tracker", self.addr().port());
        self.process = PeerProcess::start("tracker", again);
    }
}

/// The folder of the packages of the Python that has the reference's, and so TVM's runtime.
static PACKAGES: LazyLock<String> =
    LazyLock::new(|| python("import sysconfig; print(sysconfig.get_path('platlib'), end='')"));

/// Where [`Server::with_runtime`] has the runtime from.
///
/// # Panics
///
/// Outside of `cargo xtask interop`.
pub fn runtime_folder() -> &'static str {
    &PACKAGES
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    process: PeerProcess,
}

impl Server {
    /// A server of this key on a free port, with the test functions and these further arguments.
    ///
    /// # Panics
    ///
    /// When it does not listen within 30 seconds.
    pub fn start(key: &str, arguments: &[&str]) -> Self {
        Self::with(key, &[&["--test-functions"], arguments].concat())
    }

    /// A server with TVM's runtime and these further arguments. It has the test functions only if they
    /// say so.
    ///
    /// # Panics
    ///
    /// As [`Server::start`].
    pub fn with_runtime(key: &str, arguments: &[&str]) -> Self {
        Self::with(key, &[&["--runtime", runtime_folder()], arguments].concat())
    }

    fn with(key: &str, arguments: &[&str]) -> Self {
        let mut server = service("server", 0);
        server.args(["--key", key]).args(arguments);
        Self {
            process: PeerProcess::start("server", server),
        }
    }

    /// A server that offers itself to a tracker, which it does after this has returned.
    ///
    /// # Panics
    ///
    /// As [`Server::start`].
    pub fn at_tracker(key: &str, tracker: SocketAddr) -> Self {
        Self::start(key, &["--tracker", &tracker.to_string()])
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.process.addr()
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The folder in which its sessions have theirs.
    pub fn sessions(&self) -> &Path {
        self.process.directory()
    }

    /// Ends it and its sessions without a farewell (`SIGKILL`).
    pub fn kill(&mut self) {
        self.process.kill();
    }
}
