//! A process that the suite started. It ends, with its children, when this is dropped.

use std::io::{self, BufRead as _, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::Tail;

#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    stdout: Receiver<String>,
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
        let mut child = command.spawn()?;
        let stderr = Tail::default();
        if let Some(output) = child.stderr.take() {
            let stderr = stderr.clone();
            lines(output, move |line| {
                stderr.push(line);
                true
            });
        }
        let (send, stdout) = channel();
        if let Some(output) = child.stdout.take() {
            lines(output, move |line| {
                // Nobody has to read what it prints.
                let _ = send.send(line);
                true
            });
        }
        Ok(Self {
            child,
            stdout,
            stderr,
        })
    }

    /// The address that it prints when it listens.
    pub(crate) fn listening_on(&mut self, deadline: Instant) -> Option<SocketAddr> {
        loop {
            let line = self.line(deadline)?;
            if let Some((_, addr)) = line.split_once("listening on ") {
                let addr: SocketAddr = addr.trim().parse().ok()?;
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
        self.stdout.recv_timeout(left).ok()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// How it ended; none when it still runs at the deadline.
    pub(crate) fn wait(&mut self, deadline: Instant) -> Option<ExitStatus> {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                _ => return None,
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn stderr(&self) -> Vec<String> {
        self.stderr.lines()
    }

    fn end(&mut self) {
        #[cfg(unix)]
        if let Ok(pid) = i32::try_from(self.child.id())
            && let Some(group) = rustix::process::Pid::from_raw(pid)
        {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// Hands out the lines of an output until there are no more, or nobody wants them.
fn lines(
    output: impl Read + Send + 'static,
    mut take: impl FnMut(String) -> bool + Send + 'static,
) {
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while let Ok(read) = output.read_until(b'\n', &mut line) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            if read == 0 || !take(text) {
                break;
            }
            line.clear();
        }
    });
}
