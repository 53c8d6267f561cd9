use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rpc_proto::Dialect;
use rpc_recording::{About, Direction, Recorder, RecorderLimits, parse_dialect};
use rpc_transport::Address;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::service;

/// Pass on what peers say to each other, and record it
///
/// Whoever connects here is connected to --to, and what passes in both directions is written to a
/// file, which `tvm-rpc decode` explains: in the JSON format of tests/vectors, whenever a connection
/// has ended, and at the end. Bytes, their order and the ends of connections are passed on as they are.
///
/// A tracker is recorded by a relay in front of it, to which servers and clients connect instead. A
/// tracker grants the port that a server listens on, with the host that the server names by
/// --custom-addr; so a server is recorded by a relay on the same port of another address of the
/// machine:
///
///   tvm-rpc relay --listen 127.0.0.1:9191 --to 127.0.0.1:9190 --record tracker.json
///   tvm-rpc server --port 9090 --tracker 127.0.0.1:9191 --key x1 --custom-addr 127.0.0.2
///   tvm-rpc relay --listen 127.0.0.2:9090 --to 127.0.0.1:9090 --record server.json
///
/// It prints one line, `listening on HOST:PORT`, and logs to standard error. SIGINT and SIGTERM
/// end it.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// Where to listen; port 0 is any
    #[arg(long, value_name = "HOST:PORT", value_parser = listen_address)]
    listen: (String, u16),
    /// Whom to connect to
    #[arg(long, value_name = "HOST:PORT")]
    to: Address,
    /// The file to write, instead of what it holds
    #[arg(long, value_name = "FILE")]
    record: PathBuf,
    /// How packed values are laid out, ffi or legacy [default: found out for each connection]
    #[arg(long, value_name = "DIALECT", value_parser = parse_dialect)]
    dialect: Option<Dialect>,
    /// What happens, for whoever reads the recording
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    description: String,
    /// Bytes that are recorded of one message; the rest of a longer one is only passed on
    #[arg(long, value_name = "BYTES", default_value = "1048576")]
    keep: usize,
    /// What all recorded messages may take, in MiB; those that come later are only passed on
    #[arg(long, value_name = "MIB", default_value = "64")]
    memory: u32,
    /// Log nothing but warnings
    #[arg(long)]
    silent: bool,
}

impl Arguments {
    pub(crate) fn silent(&self) -> bool {
        self.silent
    }
}

/// An address to listen at, where 0 is a port.
fn listen_address(text: &str) -> Result<(String, u16), String> {
    let parts = text.rsplit_once(':');
    let parts = parts.and_then(|(host, port)| Some((host.to_owned(), port.parse().ok()?)));
    parts
        .filter(|(host, _)| !host.is_empty())
        .ok_or_else(|| "expected HOST:PORT, for example 127.0.0.1:9191".to_owned())
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let relay = Arc::new(Relay::new(arguments));
    // Whoever cannot write a file should know before there is something to write.
    relay.write()?;
    let runtime = service::runtime()?;
    runtime.block_on(async {
        let (host, port) = &arguments.listen;
        let listener = rpc_transport::listen(host, *port..=*port)?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let address = listener.local_addr()?;
        tokio::spawn(write_when_something_ended(Arc::clone(&relay)));
        service::run(address, accept(Arc::clone(&relay), listener)).await
    })?;
    // Connections that are still open end here, and with them what they would still record.
    runtime.shutdown_background();
    relay.recorder(Recorder::finish);
    relay.write()
}

struct Relay {
    to: Address,
    dialect: Option<Dialect>,
    file: PathBuf,
    began: Instant,
    recorder: Mutex<Recorder>,
    /// Held by whoever writes the file.
    writing: Mutex<()>,
    /// Says that a connection has ended.
    ended: Notify,
}

impl Relay {
    fn new(arguments: &Arguments) -> Self {
        let about = About {
            role: format!("relay in front of {}", arguments.to),
            scenario: name(&arguments.record),
            description: arguments.description.clone(),
            ..About::default()
        };
        let limits = RecorderLimits::default()
            .with_message(arguments.keep)
            .with_total(u64::from(arguments.memory) << 20);
        Self {
            to: arguments.to.clone(),
            dialect: arguments.dialect,
            file: arguments.record.clone(),
            began: Instant::now(),
            recorder: Mutex::new(Recorder::new(about, limits)),
            writing: Mutex::new(()),
            ended: Notify::new(),
        }
    }

    /// Tells the recorder what happened just now.
    fn recorder<T>(&self, happened: impl FnOnce(&mut Recorder, Duration) -> T) -> T {
        let mut recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner);
        happened(&mut recorder, self.began.elapsed())
    }

    fn write(&self) -> Result<()> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        // Not before, so that a file never becomes older.
        let snapshot = self.recorder(|recorder, _| recorder.snapshot());
        let written = snapshot.write(&self.file);
        written.context("cannot write the recording")
    }
}

/// The name of a file, without what says that it is JSON.
fn name(file: &Path) -> String {
    file.file_stem()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// Many connections that end while the file is being written lead to one more writing.
async fn write_when_something_ended(relay: Arc<Relay>) {
    loop {
        relay.ended.notified().await;
        let writing = {
            let relay = Arc::clone(&relay);
            tokio::task::spawn_blocking(move || relay.write())
        };
        if let Ok(Err(error)) = writing.await {
            tracing::warn!("{error:#}");
        }
    }
}

async fn accept(relay: Arc<Relay>, listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((client, from)) => {
                let relay = Arc::clone(&relay);
                tokio::spawn(async move { connection(&relay, client, from).await });
            }
            Err(error) => {
                // Of descriptors there may be enough again when connections have ended.
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn connection(relay: &Relay, mut client: TcpStream, from: SocketAddr) {
    let number = relay.recorder(|recorder, _| recorder.connect("", None, relay.dialect));
    tracing::info!("connection {number}: from {from}");
    match TcpStream::connect((relay.to.host(), relay.to.port())).await {
        Ok(mut server) => {
            for stream in [&client, &server] {
                // What came in two pieces should leave in two, and at once.
                let _ = stream.set_nodelay(true);
            }
            if let Err(error) = both_ways(relay, number, &mut client, &mut server).await {
                tracing::info!("connection {number}: {error}");
                for stream in [&client, &server] {
                    // The other side should see the same.
                    let _ = stream.set_zero_linger();
                }
            }
        }
        Err(error) => {
            tracing::warn!(
                "connection {number}: cannot connect to {}: {error}",
                relay.to
            );
            let _ = client.set_zero_linger();
        }
    }
    relay.recorder(|recorder, at| {
        // What broke in one direction is over in the other.
        recorder.end(number, Direction::C2s, at);
        recorder.end(number, Direction::S2c, at);
    });
    tracing::info!("connection {number}: ended");
    relay.ended.notify_one();
}

/// Passes on what comes from both sides, each at the pace of the other, until both have ended.
///
/// # Errors
/// One side broke the connection.
async fn both_ways(
    relay: &Relay,
    number: usize,
    client: &mut TcpStream,
    server: &mut TcpStream,
) -> io::Result<()> {
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    tokio::try_join!(
        one_way(relay, number, Direction::C2s, from_client, to_server),
        one_way(relay, number, Direction::S2c, from_server, to_client),
    )?;
    Ok(())
}

async fn one_way(
    relay: &Relay,
    number: usize,
    direction: Direction,
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
) -> io::Result<()> {
    const PIECE: usize = 64 << 10;
    let mut piece = vec![0; PIECE];
    loop {
        let read = from.read(&mut piece).await;
        // First, so that no answer is recorded before what it answers.
        relay.recorder(|recorder, at| match &read {
            Ok(read @ 1..) => recorder.pass(number, direction, &piece[..*read], at),
            _ => recorder.end(number, direction, at),
        });
        let written = match read? {
            0 => break,
            read => to.write_all(&piece[..read]).await,
        };
        if written.is_err() {
            // Nobody takes any more here, but what that side said last is still to be passed on: the other
            // direction comes to its end, too.
            return Ok(());
        }
    }
    // Fails if that side is gone already, which its own direction shows.
    let _ = to.shutdown().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_port_may_be_listened_at() {
        assert_eq!(
            listen_address("127.0.0.1:0"),
            Ok(("127.0.0.1".to_owned(), 0))
        );
        assert_eq!(listen_address("[::1]:80"), Ok(("[::1]".to_owned(), 80)));
        for text in ["127.0.0.1", ":80", "127.0.0.1:x", "127.0.0.1:70000"] {
            assert!(listen_address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_recording_has_the_name_of_its_file() {
        assert_eq!(name(Path::new("a/session.json")), "session");
    }
}
