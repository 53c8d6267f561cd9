//! A process that the suite started. It ends, with its children, when this is dropped.

use std::collections::BTreeSet;
use std::io::{self, BufRead as _, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Tail;

/// The longest line of an output, in bytes; a longer one comes in pieces.
const LONGEST_LINE: u64 = 16 << 20;
/// Bytes of a standard output that are kept until they are read. What comes above is lost.
const UNREAD: usize = 64 << 20;

/// The processes that run, by their groups; none once no other is to be started.
static STARTED: Mutex<Option<BTreeSet<u32>>> = Mutex::new(Some(BTreeSet::new()));

/// Kills the peers that the suite has started and that still run, with their children, and lets it start no
/// others: for a program that is to end at once, where nothing is dropped. It does nothing but the latter
/// on systems other than Unix.
pub fn kill_peers() {
    for pid in started().take().unwrap_or_default() {
        kill_group(pid);
    }
}

fn started() -> MutexGuard<'static, Option<BTreeSet<u32>>> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn kill_group(pid: u32) {
    #[cfg(unix)]
    if let Ok(pid) = i32::try_from(pid)
        && let Some(group) = rustix::process::Pid::from_raw(pid)
    {
        // It may be over already.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    #[cfg(not(unix))]
    let _ = pid;
}

#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// How it ended, once that is known: its number may be that of another one then.
    ended: Option<ExitStatus>,
    stdout: Receiver<String>,
    /// Bytes of `stdout`.
    unread: Arc<AtomicUsize>,
    stderr: Tail,
}

impl Process {
    pub(crate) fn start(words: &[String], environment: &[(&str, String)]) -> io::Result<Self> {
        let (program, arguments) = words
            .split_first()
            .ok_or_else(|| io::Error::other("no command"))?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            // Some peers end when their standard input does.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = {
            let mut started = started();
            let started = started
                .as_mut()
                .ok_or_else(|| io::Error::other("the suite is about to end"))?;
            let child = command.spawn()?;
            started.insert(child.id());
            child
        };
        let stderr = Tail::default();
        if let Some(output) = child.stderr.take() {
            let stderr = stderr.clone();
            lines(output, move |line| stderr.push(line));
        }
        let (send, stdout) = channel();
        let unread = Arc::new(AtomicUsize::new(0));
        if let Some(output) = child.stdout.take() {
            let unread = Arc::clone(&unread);
            lines(output, move |line| {
                let len = size(&line);
                // Nobody has to read what it prints.
                if unread.load(Ordering::Relaxed) + len <= UNREAD {
                    unread.fetch_add(len, Ordering::Relaxed);
                    let _ = send.send(line);
                }
            });
        }
        Ok(Self {
            child,
            ended: None,
            stdout,
            unread,
            stderr,
        })
    }

    /// The address that it prints when it listens.
    pub(crate) fn listening_on(&mut self, deadline: Instant) -> Option<SocketAddr> {
        loop {
            let line = self.line(deadline)?;
            let addr = line.split_once("listening on ");
            if let Some(Ok(addr)) = addr.map(|(_, addr)| addr.trim().parse::<SocketAddr>()) {
                // Who listens everywhere is reached here.
                let ip = match addr.ip() {
                    IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
                    IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
                    ip => ip,
                };
                return Some(SocketAddr::new(ip, addr.port()));
            }
        }
    }

    /// The next line of its standard output; none when it ended or at the deadline.
    pub(crate) fn line(&mut self, deadline: Instant) -> Option<String> {
        let left = deadline.saturating_duration_since(Instant::now());
        let line = self.stdout.recv_timeout(left).ok()?;
        self.unread.fetch_sub(size(&line), Ordering::Relaxed);
        Some(line)
    }

    /// How it ended, if it did. What it has started ends with it.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
            if self.ended.is_some() {
                self.forget();
            }
        }
        self.ended
    }

    /// How it ended; none when it still runs at the deadline.
    pub(crate) fn wait(&mut self, deadline: Instant) -> Option<ExitStatus> {
        loop {
            if let Some(status) = self.ended() {
                return Some(status);
            }
            if Instant::now() >= deadline {
                return None;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn stderr(&self) -> Vec<String> {
        self.stderr.lines()
    }

    fn end(&mut self) {
        if self.ended().is_none() {
            self.forget();
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    /// Kills what is left of its group, for the last time.
    fn forget(&self) {
        let pid = self.child.id();
        kill_group(pid);
        if let Some(started) = started().as_mut() {
            started.remove(&pid);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// What a line that was not read takes in memory, in bytes.
fn size(line: &str) -> usize {
    size_of::<String>() + line.len()
}

/// Hands out the lines of an output until there are no more.
fn lines(output: impl Read + Send + 'static, mut take: impl FnMut(String) + Send + 'static) {
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        let mut read_line = |line: &mut Vec<u8>| {
            let mut output = (&mut output).take(LONGEST_LINE);
            output.read_until(b'\n', line)
        };
        while let Ok(1..) = read_line(&mut line) {
            take(String::from_utf8_lossy(&line).trim_end().to_owned());
            line.clear();
        }
    });
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(text: &str) -> io::Result<Process> {
        let words = ["sh", "-c", text].map(str::to_owned);
        Process::start(&words, &[])
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(10)
    }

    #[test]
    fn lines_come_whole_and_without_their_ends() {
        let mut process = shell("printf 'one\\r\\n\\n two'").unwrap();
        let lines: Vec<_> = std::iter::from_fn(|| process.line(soon())).collect();
        assert_eq!(lines, ["one", "", " two"]);
    }

    #[test]
    fn an_output_that_nobody_reads_takes_no_more_memory() {
        // Twice what is kept.
        let size = 2 * UNREAD;
        let mut process = shell(&format!("head -c {size} /dev/zero | tr '\\0' x; exit 7")).unwrap();
        let status = process.wait(soon()).unwrap();
        assert_eq!(status.code(), Some(7));
        let unread: usize = std::iter::from_fn(|| process.line(soon()))
            .map(|line| line.len())
            .sum();
        assert!((1..=UNREAD).contains(&unread), "{unread}");
    }

    #[test]
    fn a_line_that_says_no_address_is_passed_over() {
        let text = "echo listening on a hill; echo listening on 0.0.0.0:80; sleep 100";
        let addr = shell(text).unwrap().listening_on(soon());
        assert_eq!(addr, Some("127.0.0.1:80".parse().unwrap()));
    }
}
