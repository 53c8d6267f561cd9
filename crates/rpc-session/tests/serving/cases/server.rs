//! Connections that are served on threads of their own, so that a test can be their client.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use rpc_proto::Limits;
use rpc_proto::handshake::{Introduction, put_accept};
use rpc_session::{ServeError, ServeOptions};
use rpc_transport::Address;
#[super::only_async]
use rpc_transport::asynchronous::accepted;
#[super::only_sync]
use rpc_transport::blocking::accepted;

use super::mock::Mocks;
use super::{Constructors, Expiry, Stream, serve};
use crate::support::memory::Memory;
use crate::support::{Client, PATIENCE, Stage, init};

/// A server of one connection.
pub(super) struct Server {
    address: SocketAddr,
    pub(super) stage: Stage,
    pub(super) expiry: Expiry,
    ended: Receiver<Result<(), ServeError>>,
}

/// What a server is to be.
pub(super) struct Options {
    pub(super) serve: ServeOptions,
    /// Constructors beside that of mocks.
    pub(super) constructors: fn(Constructors) -> Constructors,
    /// Whether its client introduces itself.
    pub(super) handshake: bool,
    pub(super) expiry: Expiry,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            serve: ServeOptions::default(),
            constructors: |constructors| constructors,
            handshake: false,
            expiry: Expiry::default(),
        }
    }
}

impl Server {
    pub(super) fn start() -> Self {
        Self::with(Options::default())
    }

    pub(super) fn with(options: Options) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (stage, expiry) = (Stage::default(), options.expiry);
        let (sender, ended) = channel();
        let constructors = (options.constructors)(Constructors::new(Mocks(stage.clone())));
        let serving = expiry.clone();
        thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            drop(listener);
            if options.handshake {
                shake_hands(&mut socket);
            }
            let ended = run(socket, &constructors, &options.serve, &serving);
            // A test that failed does not listen any more.
            let _ = sender.send(ended);
        });
        Self {
            address,
            stage,
            expiry,
            ended,
        }
    }

    /// A client that has said nothing yet.
    pub(super) fn stranger(&self) -> Client {
        Client::new(self.address)
    }

    /// A client with a session.
    pub(super) fn client(&self) -> Client {
        let mut client = self.stranger();
        client.asks(&init()).void();
        client
    }

    pub(super) fn address(&self) -> Address {
        Address::new("127.0.0.1", self.address.port())
    }

    /// Waits for the end of the session.
    pub(super) fn finish(self) -> Result<(), ServeError> {
        self.ended.recv_timeout(PATIENCE).unwrap()
    }
}

/// Serves a client whose every word is known already, and says what it got.
pub(super) fn serve_memory(stage: &Stage, memory: Memory) -> (Result<(), ServeError>, Vec<u8>) {
    let constructors = Constructors::new(Mocks(stage.clone()));
    let options = ServeOptions::default();
    let ended = run_on(memory.clone(), &constructors, &options);
    (ended, memory.received())
}

/// Takes in a client, as a server does.
fn shake_hands(socket: &mut TcpStream) {
    use std::io::{Read, Write};
    let mut introduction = Introduction::new(Limits::default());
    let mut byte = [0];
    let key = loop {
        socket.read_exact(&mut byte).unwrap();
        if let Some(key) = introduction.receive(&byte).unwrap() {
            break key;
        }
    };
    assert!(key.starts_with("client:"), "{key}");
    let mut answer = Vec::new();
    put_accept("server:board", Limits::default(), &mut answer).unwrap();
    socket.write_all(&answer).unwrap();
}

#[super::only_sync]
fn run(
    socket: TcpStream,
    constructors: &Constructors,
    options: &ServeOptions,
    expiry: &Expiry,
) -> Result<(), ServeError> {
    let stream = accepted(socket, &Default::default()).unwrap();
    serve(stream, constructors, options, expiry)
}

#[super::only_async]
fn run(
    socket: TcpStream,
    constructors: &Constructors,
    options: &ServeOptions,
    expiry: &Expiry,
) -> Result<(), ServeError> {
    runtime().block_on(async {
        socket.set_nonblocking(true).unwrap();
        let socket = tokio::net::TcpStream::from_std(socket).unwrap();
        let stream = accepted(socket, &Default::default()).unwrap();
        serve(stream, constructors, options, expiry).await
    })
}

#[super::only_sync]
fn run_on(
    memory: Memory,
    constructors: &Constructors,
    options: &ServeOptions,
) -> Result<(), ServeError> {
    let stream = Stream::new(memory, "memory");
    serve(stream, constructors, options, &Expiry::default())
}

#[super::only_async]
fn run_on(
    memory: Memory,
    constructors: &Constructors,
    options: &ServeOptions,
) -> Result<(), ServeError> {
    let stream = Stream::new(memory.clone(), memory, "memory");
    runtime().block_on(serve(stream, constructors, options, &Expiry::default()))
}

#[super::only_async]
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}
