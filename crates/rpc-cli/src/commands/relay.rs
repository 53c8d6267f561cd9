use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
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
use crate::usage::wrong_usage;

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
/// end it, and what passed until then is in the file. What kills it at once, as SIGKILL, loses what
/// passed since a connection last ended, or since a little earlier if the file takes long to write.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// Where to listen; port 0 is any
    #[arg(long, value_name = "HOST:PORT", value_parser = listen_address)]
    listen: (String, u16),
    /// Whom to connect to
    #[arg(long, value_name = "HOST:PORT")]
    to: Address,
    /// The file to write, instead of what it holds; where it is a link, the file that it leads to
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
    /// What all recorded connections and messages may take, in MiB, up to 256; those that come later are
    /// only passed on
    #[arg(long, value_name = "MIB", default_value = "64", value_parser = clap::value_parser!(u32).range(1..=256))]
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
    let read = || {
        let (host, port) = text.rsplit_once(':')?;
        // Of the host it expects the same as everywhere.
        let host: Address = format!("{host}:1").parse().ok()?;
        Some((host.host().to_owned(), port.parse().ok()?))
    };
    read().ok_or_else(|| {
        "expected HOST:PORT with a port up to 65535, for example 127.0.0.1:9191 or [::1]:0"
            .to_owned()
    })
}

/// Does the host have an address? One that is mistyped should show before a peer needs it.
fn resolve(option: &str, host: &str) -> Result<()> {
    let found = (host, 0).to_socket_addrs();
    let problem = match found.map(|mut found| found.next()) {
        Ok(Some(_)) => return Ok(()),
        Ok(None) => "it has no address".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(wrong_usage(format!(
        "{option}: no host {host:?} is known; expected a name or an IP address: {problem}"
    )))
}

/// The file that is written if `path` is given: what a link leads to, as the link itself would be replaced.
fn record_file(path: &Path) -> Result<PathBuf> {
    let no_file = |what: &str| {
        let path = path.display();
        Err(wrong_usage(format!(
            "--record: {path} is {what}; expected a file, or a name for one"
        )))
    };
    match path.canonicalize() {
        Ok(file) if file.is_file() => Ok(file),
        Ok(directory) if directory.is_dir() => no_file("a directory"),
        // A device or a pipe would be gone if a file took its place.
        Ok(_) => no_file("no regular file"),
        Err(_) if path.is_symlink() => no_file("a link that leads nowhere"),
        // What else is wrong with it shows when it is written.
        Err(_) => Ok(path.to_owned()),
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let file = record_file(&arguments.record)?;
    let (host, port) = &arguments.listen;
    resolve("--listen", host)?;
    resolve("--to", arguments.to.host())?;
    let runtime = service::runtime()?;
    // First, so that of two relays by mistake the second leaves the recording of the first alone.
    let listener = rpc_transport::listen(host, *port..=*port)?;
    listener.set_nonblocking(true)?;
    let relay = Arc::new(Relay::new(arguments, file));
    // Whoever cannot write a file should know before there is something to write.
    relay.write(false)?;
    runtime.block_on(async {
        let listener = TcpListener::from_std(listener)?;
        let address = listener.local_addr()?;
        tokio::spawn(write_when_something_ended(Arc::clone(&relay)));
        service::run(address, accept(Arc::clone(&relay), listener)).await
    })?;
    // Connections that are still open end here, and with them what they would still record.
    runtime.shutdown_background();
    relay.recorder(Recorder::finish);
    relay.write(true)
}

struct Relay {
    to: Address,
    dialect: Option<Dialect>,
    file: PathBuf,
    began: Instant,
    recorder: Mutex<Recorder>,
    /// Somebody was told that the recording is full.
    is_full: AtomicBool,
    /// Held by whoever writes the file; whether that was for the last time.
    writing: Mutex<bool>,
    /// Says that a connection has ended.
    ended: Notify,
}

impl Relay {
    fn new(arguments: &Arguments, file: PathBuf) -> Self {
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
            file,
            began: Instant::now(),
            recorder: Mutex::new(Recorder::new(about, limits)),
            is_full: AtomicBool::new(false),
            writing: Mutex::new(false),
            ended: Notify::new(),
        }
    }

    /// Tells the recorder what happened just now.
    fn recorder<T>(&self, happened: impl FnOnce(&mut Recorder, Duration) -> T) -> T {
        let mut recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner);
        let done = happened(&mut recorder, self.began.elapsed());
        let is_full = recorder.is_full();
        drop(recorder);
        if is_full && !self.is_full.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "the recording is full: from now on there is only passing on, see --memory"
            );
        }
        done
    }

    fn write(&self, is_last: bool) -> Result<()> {
        let mut was_last = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if *was_last {
            // The command is ending, and would leave a file behind that is half written.
            return Ok(());
        }
        *was_last = is_last;
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
    /// How much longer than a writing the time to the next is, so that relaying always comes first.
    const PAUSE: u32 = 4;
    loop {
        relay.ended.notified().await;
        // Of what is full, the last writing shows how much more came.
        let is_last = relay.is_full.load(Ordering::Relaxed);
        let start = Instant::now();
        let writing = {
            let relay = Arc::clone(&relay);
            tokio::task::spawn_blocking(move || relay.write(false))
        };
        if let Ok(Err(error)) = writing.await {
            tracing::warn!("{error:#}");
        } else if is_last {
            return;
        }
        tokio::time::sleep(PAUSE * start.elapsed()).await;
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
        assert_eq!(listen_address("[::1]:80"), Ok(("::1".to_owned(), 80)));
        for text in [
            "127.0.0.1",
            ":80",
            "127.0.0.1:x",
            "127.0.0.1:70000",
            "::1:80",
        ] {
            assert!(listen_address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_recording_has_the_name_of_its_file() {
        assert_eq!(name(Path::new("a/session.json")), "session");
    }
}
