//! What goes over between a server and a worker: a line of JSON that says what session it is and with it
//! the client's socket; back, an empty line when the worker has it, and then a line each time that it has
//! something to say, up to how the session ended.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};

use crate::SessionContext;

/// The longest line; a path has at most 4096 bytes, and of a message no more is told.
pub(super) const LONGEST: usize = 16 << 10;

/// What a worker says that has a session.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Report {
    /// An answer begins that takes more than a moment (`true`), or is complete. In between, nobody else can
    /// tell the client anything.
    Answering(bool),
    /// The session has ended.
    Ended {
        /// Why it did, unless the client said goodbye.
        failure: Option<String>,
    },
}

impl Report {
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }

    pub(super) fn send(mut self, mut control: &UnixStream) -> io::Result<()> {
        if let Self::Ended {
            failure: Some(failure),
        } = &mut self
        {
            // A byte of text may become six.
            let end = (0..=LONGEST / 8).rfind(|&end| failure.is_char_boundary(end));
            failure.truncate(end.unwrap_or(0));
        }
        let mut line = serde_json::to_vec(&self)?;
        line.push(b'\n');
        control.write_all(&line)
    }
}

/// Hands a connection over. The line is short, so that it leaves at once.
pub(super) fn send(
    control: impl AsFd,
    session: &SessionContext,
    socket: BorrowedFd<'_>,
) -> io::Result<()> {
    let mut line = serde_json::to_vec(session)?;
    line.push(b'\n');
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let sockets = [socket];
    if !ancillary.push(SendAncillaryMessage::ScmRights(&sockets)) {
        return Err(io::Error::other("no room for a socket"));
    }
    let slices = [IoSlice::new(&line)];
    let sent = sendmsg(control, &slices, &mut ancillary, SendFlags::empty())?;
    match sent == line.len() {
        true => Ok(()),
        false => Err(ErrorKind::WriteZero.into()),
    }
}

/// Waits for a connection; `None` if the server ends before there is one.
pub(super) fn receive(control: &UnixStream) -> io::Result<Option<(SessionContext, TcpStream)>> {
    let mut line = Vec::new();
    let mut socket = None;
    while !line.ends_with(b"\n") {
        let mut piece = [0; 4096];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut slices = [IoSliceMut::new(&mut piece)];
        let received = recvmsg(control, &mut slices, &mut ancillary, RecvFlags::empty());
        let count = match received {
            Err(rustix::io::Errno::INTR) => continue,
            received => received?.bytes,
        };
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(sockets) = message {
                socket = sockets.last().or(socket);
            }
        }
        if count == 0 && line.is_empty() {
            return Ok(None);
        }
        line.extend_from_slice(&piece[..count]);
        if count == 0 || line.len() > LONGEST {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    let session = serde_json::from_slice(&line)?;
    let socket: OwnedFd = socket.ok_or_else(|| io::Error::other("no socket came along"))?;
    // It is not for programs that the session starts.
    fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
    let socket = TcpStream::from(socket);
    // The server does not wait on it any more.
    socket.set_nonblocking(false)?;
    let mut control = control;
    control.write_all(b"\n")?;
    Ok(Some((session, socket)))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_socket_goes_over() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let session = SessionContext {
            work_dir: "/tmp/é\n".into(),
            peer: "127.0.0.1:1".to_owned(),
            timeout: Some(Duration::from_millis(1500)),
        };
        send(&ours, &session, accepted.as_fd()).unwrap();
        drop(accepted);
        let (came, mut socket) = receive(&theirs).unwrap().unwrap();
        let mut ready = [0; 2];
        assert_eq!((ours.read(&mut ready).unwrap(), ready[0]), (1, b'\n'));
        assert_eq!(came.work_dir, session.work_dir);
        assert_eq!(came.timeout, session.timeout);
        socket.write_all(b"hello").unwrap();
        drop(socket);
        let mut said = String::new();
        client.read_to_string(&mut said).unwrap();
        assert_eq!(said, "hello");
    }

    #[test]
    fn a_server_that_ends_leaves_nothing_to_do() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(ours);
        assert!(receive(&theirs).unwrap().is_none());
    }

    #[test]
    fn half_a_line_is_an_error() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.write_all(b"{\"work").unwrap();
        drop(ours);
        assert!(receive(&theirs).is_err());
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.write_all(b"{\"work_dir\":\"/\",\"peer\":\"\",\"timeout\":null}\n")
            .unwrap();
        assert!(receive(&theirs).is_err());
    }

    #[test]
    fn a_report_goes_over() {
        let reported = |failure: Option<String>| {
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            Report::Ended { failure }.send(&theirs).unwrap();
            drop(theirs);
            let mut line = Vec::new();
            ours.read_to_end(&mut line).unwrap();
            assert!(line.ends_with(b"\n") && line.len() <= LONGEST);
            match Report::parse(&line) {
                Some(Report::Ended { failure }) => failure,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(reported(None), None);
        let failure = Some("lost\nit".to_owned());
        assert_eq!(reported(failure.clone()), failure);
        let long = reported(Some("\u{1}é".repeat(LONGEST))).unwrap();
        assert!(long.starts_with("\u{1}é") && long.len() > LONGEST / 16);
    }

    #[test]
    fn a_crash_is_no_report() {
        for line in ["", "{\"Ended\":{\"failure\":", "terminate called\n"] {
            assert_eq!(Report::parse(line.as_bytes()), None);
        }
    }
}
