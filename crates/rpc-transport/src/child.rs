//! A child process that speaks the protocol on its standard input and output.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::TransportError;

/// A started child; it is ended and reaped when this is dropped.
#[derive(Debug)]
pub(crate) struct ChildGuard(Option<Child>);

/// Starts `command` with one end of a socket pair as its standard input and output.
///
/// A pair, not two pipes: a socket has time limits for blocking reads, a pipe has none.
///
/// The command is dropped here: it holds the child's end of the pair, without which the child's exit is
/// seen as the end of the stream.
pub(crate) fn start(mut command: Command) -> Result<(UnixStream, ChildGuard), TransportError> {
    start_on_pair(&mut command).map_err(|source| TransportError::Spawn {
        program: command.get_program().to_string_lossy().into_owned(),
        source,
    })
}

fn start_on_pair(command: &mut Command) -> io::Result<(UnixStream, ChildGuard)> {
    let (ours, theirs) = UnixStream::pair()?;
    let stdin = OwnedFd::from(theirs.try_clone()?);
    command
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::from(OwnedFd::from(theirs)));
    Ok((ours, ChildGuard(Some(command.spawn()?))))
}

impl Drop for ChildGuard {
    /// The child had its end of input just before; it gets a moment to leave by itself.
    fn drop(&mut self) {
        const MOMENT: Duration = Duration::from_secs(2);
        let Some(mut child) = self.0.take() else {
            return;
        };
        if matches!(child.try_wait(), Ok(Some(_))) {
            return;
        }
        // A drop must not wait, so a thread does.
        let _ = thread::Builder::new()
            .name("rpc-child".into())
            .spawn(move || {
                let end = Instant::now() + MOMENT;
                while matches!(child.try_wait(), Ok(None)) {
                    if Instant::now() >= end {
                        let _ = child.kill();
                        let _ = child.wait();
                        return;
                    }
                    thread::sleep(Duration::from_millis(20));
                }
            });
    }
}
