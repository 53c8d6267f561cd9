//! A server that follows a script, on a thread of its own.

use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rpc_transport::Address;

pub(crate) mod carry;
pub(crate) mod talk;
#[cfg(feature = "websocket")]
pub(crate) mod websocket;

pub(crate) use talk::Talk;

/// When a script that waits for its client has waited too long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// The key that scripted servers go by.
pub(crate) const KEY: &str = "board";

pub(crate) struct Server<T> {
    address: Address,
    script: JoinHandle<T>,
}

impl<T: Send + 'static> Server<T> {
    /// A server that has one client, takes it in, and then follows `script`.
    pub(crate) fn start(script: impl FnOnce(&mut Talk) -> T + Send + 'static) -> Self {
        Self::raw(|socket| {
            let mut talk = Talk::new(socket);
            talk.shake_hands();
            talk.init();
            script(&mut talk)
        })
    }

    /// A server that has one client, and follows `script` from its first byte on.
    pub(crate) fn raw(script: impl FnOnce(TcpStream) -> T + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::new("127.0.0.1", listener.local_addr().unwrap().port());
        let script = thread::spawn(move || {
            let (socket, _) = listener.accept().unwrap();
            drop(listener);
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket.set_write_timeout(Some(PATIENCE)).unwrap();
            socket.set_nodelay(true).unwrap();
            script(socket)
        });
        Self { address, script }
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Waits for the end of the script, and fails if it failed.
    pub(crate) fn finish(self) -> T {
        match self.script.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}
