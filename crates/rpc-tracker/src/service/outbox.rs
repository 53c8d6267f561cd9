use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::mem::{self, MaybeUninit};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use rpc_proto::tracker::Reply;
use rpc_proto::{Limits, OverLimit};
use socket2::SockRef;
use tokio::net::TcpStream;

use crate::Grant;

/// Unsent bytes that do not wait for the other answers to what came in the same piece.
const LARGE: usize = 64 << 10;

/// What is to be sent on one connection: filled by whoever has an answer for it, emptied by its task.
#[derive(Debug)]
pub(super) struct Outbox {
    limits: Limits,
    unread_output: usize,
    unsent: Mutex<Unsent>,
}

#[derive(Debug, Default)]
struct Unsent {
    bytes: Vec<u8>,
    /// How many of `bytes` were written.
    written: usize,
    /// Grants among the bytes, and where each ends, counted from the start of the connection.
    grants: VecDeque<(u64, Grant)>,
    /// Bytes that were written before those of `bytes`.
    before: u64,
    /// The peer reads too little.
    is_over: bool,
    task: Option<Waker>,
}

/// What an outbox wants its task to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    Nothing,
    ToWrite,
    ToClose,
}

impl Outbox {
    pub(super) fn new(limits: Limits, unread_output: usize) -> Self {
        Self {
            limits,
            unread_output,
            unsent: Mutex::default(),
        }
    }

    /// Adds bytes that are not an answer.
    pub(super) fn push_bytes(&self, bytes: &[u8]) {
        self.lock().bytes.extend_from_slice(bytes);
    }

    /// Adds an answer of the task's own, which sends it next. One that is over its limit is a refusal
    /// instead.
    pub(super) fn push_reply(&self, reply: &Reply) -> Result<(), OverLimit> {
        let mut unsent = self.lock();
        unsent.check(self.unread_output);
        let encoded = reply.encode(self.limits, &mut unsent.bytes);
        if encoded.is_err() {
            // Two bytes, which no limit that makes sense excludes.
            let _ = Reply::refused().encode(self.limits, &mut unsent.bytes);
        }
        encoded
    }

    /// Adds a grant, and keeps it until it was written.
    pub(super) fn push_grant(&self, grant: Grant) {
        let reply = Reply::Granted(grant.allocation().clone());
        let mut unsent = self.lock();
        unsent.check(self.unread_output);
        if reply.encode(self.limits, &mut unsent.bytes).is_err() {
            // As long as the connection lives it is lost; so the connection ends.
            unsent.is_over = true;
        }
        let end = unsent.before + unsent.bytes.len() as u64;
        unsent.grants.push_back((end, grant));
        if let Some(task) = unsent.task.take() {
            task.wake();
        }
    }

    /// What there is to do; wakes the task of `cx` when that changes.
    pub(super) fn poll(&self, cx: &Context<'_>) -> Want {
        let mut unsent = self.lock();
        match &mut unsent.task {
            Some(task) => task.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        unsent.want()
    }

    /// Writes if there is much to write; what there is to do then.
    pub(super) fn relieve(&self, stream: &TcpStream) -> io::Result<Want> {
        let mut unsent = self.lock();
        if unsent.len() >= LARGE {
            unsent.flush(stream)?;
        }
        Ok(unsent.want())
    }

    /// Writes as much as the system takes now.
    pub(super) fn flush(&self, stream: &TcpStream) -> io::Result<()> {
        self.lock().flush(stream)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().len() == 0
    }

    /// The grants that were not written whole. Nothing is sent any more.
    pub(super) fn take_undelivered(&self) -> Vec<Grant> {
        let unsent = mem::take(&mut *self.lock());
        unsent.grants.into_iter().map(|(_, grant)| grant).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Unsent> {
        self.unsent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Unsent {
    fn len(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// Before an answer is added: only what is left unread with another one behind it counts, so that
    /// one answer may be of any size.
    fn check(&mut self, limit: usize) {
        self.is_over |= self.len() > limit;
    }

    fn want(&self) -> Want {
        if self.is_over {
            Want::ToClose
        } else if self.len() > 0 {
            Want::ToWrite
        } else {
            Want::Nothing
        }
    }

    fn flush(&mut self, stream: &TcpStream) -> io::Result<()> {
        if !self.grants.is_empty() {
            // The system takes bytes for a peer that has closed its end, and nobody ever reads them.
            fail_if_gone(stream)?;
        }
        while self.len() > 0 {
            match stream.try_write(&self.bytes[self.written..]) {
                Ok(count) => self.advance(count),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn advance(&mut self, count: usize) {
        self.written += count;
        let end = self.before + self.written as u64;
        while self.grants.front().is_some_and(|(at, _)| *at <= end) {
            self.grants.pop_front();
        }
        // Freed when there is nothing to send, which is most of the time of most connections; and never
        // moved more often than as much again was written.
        if self.len() == 0 {
            self.bytes = Vec::new();
        } else if self.written > self.bytes.len() / 2 {
            self.bytes.drain(..self.written);
        } else {
            return;
        }
        self.before = end;
        self.written = 0;
    }
}

fn fail_if_gone(stream: &TcpStream) -> io::Result<()> {
    match SockRef::from(stream).peek(&mut [MaybeUninit::uninit()]) {
        Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Shutdown;
    use std::time::Duration;

    use rpc_proto::tracker::{Priority, Request};
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    use super::*;
    use crate::{Effect, Peer, Queues, TrackerOptions};

    const DEADLINE: Duration = Duration::from_secs(30);

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (tracker, _) = listener.accept().await.unwrap();
        (tracker, client)
    }

    fn grant() -> Grant {
        let mut queues = Queues::new(&TrackerOptions::default());
        let address = "127.0.0.1:1".parse().unwrap();
        let id = queues.connected(Peer {
            remote: address,
            local: address,
        });
        let mut effects = Vec::new();
        let request = Request::Request {
            key: "k".into(),
            user: String::new(),
            priority: Priority::default(),
        };
        queues.request(id, request, &mut effects);
        let put = Request::Put {
            key: "k".into(),
            port: 9090,
            match_key: "k:0.5".into(),
            custom_addr: None,
        };
        queues.request(id, put, &mut effects);
        match effects.swap_remove(0) {
            Effect::Grant(grant) => grant,
            other => panic!("{other:?}"),
        }
    }

    fn outbox() -> Outbox {
        Outbox::new(Limits::default(), 1000)
    }

    #[tokio::test]
    async fn a_grant_that_was_written_is_delivered() {
        let (tracker, client) = pair().await;
        let outbox = outbox();
        outbox.push_grant(grant());
        tracker.writable().await.unwrap();
        outbox.flush(&tracker).unwrap();
        assert!(outbox.is_empty());
        assert!(outbox.take_undelivered().is_empty());
        client.readable().await.unwrap();
        let mut bytes = [0; 100];
        let count = client.try_read(&mut bytes).unwrap();
        assert_eq!(bytes[4..count], *br#"[0, ["127.0.0.1", 9090, "k:0.5"]]"#);
    }

    #[tokio::test]
    async fn a_grant_for_a_peer_that_is_gone_comes_back() {
        let (tracker, client) = pair().await;
        let outbox = outbox();
        outbox.push_grant(grant());
        tracker.writable().await.unwrap();
        drop(client);
        outbox.flush(&tracker).unwrap_err();
        assert_eq!(outbox.take_undelivered().len(), 1);
        assert!(outbox.take_undelivered().is_empty(), "it comes back once");
    }

    #[tokio::test]
    async fn a_grant_that_the_system_did_not_take_comes_back() {
        let (tracker, _client) = pair().await;
        let outbox = outbox();
        outbox.push_grant(grant());
        // More than all buffers between the two take.
        outbox.push_bytes(&vec![0; 64 << 20]);
        outbox.push_grant(grant());
        tracker.writable().await.unwrap();
        outbox.flush(&tracker).unwrap();
        assert!(!outbox.is_empty());
        assert_eq!(outbox.take_undelivered().len(), 1, "the second one");
    }

    #[tokio::test]
    async fn grants_are_delivered_one_by_one_as_they_are_written() {
        let (tracker, mut client) = pair().await;
        let outbox = outbox();
        for _ in 0..3 {
            outbox.push_bytes(&vec![0; 8 << 20]);
            outbox.push_grant(grant());
        }
        let mut left = vec![3];
        let write = async {
            while !outbox.is_empty() {
                tracker.writable().await.unwrap();
                outbox.flush(&tracker).unwrap();
                left.push(outbox.lock().grants.len());
            }
            SockRef::from(&tracker).shutdown(Shutdown::Write).unwrap();
        };
        let mut nowhere = tokio::io::sink();
        let read = tokio::io::copy(&mut client, &mut nowhere);
        let both = async { tokio::join!(write, read).1 };
        timeout(DEADLINE, both).await.unwrap().unwrap();
        left.dedup();
        assert_eq!(left, [3, 2, 1, 0]);
        let capacity = outbox.lock().bytes.capacity();
        assert_eq!(capacity, 0, "nothing is kept when nothing is left");
    }

    #[test]
    fn too_much_unread_is_told_when_there_is_more_to_come() {
        let outbox = outbox();
        let cx = Context::from_waker(Waker::noop());
        assert_eq!(outbox.poll(&cx), Want::Nothing);
        outbox.push_bytes(&[0; 1001]);
        assert_eq!(outbox.poll(&cx), Want::ToWrite);
        outbox.push_reply(&Reply::Done).unwrap();
        assert_eq!(outbox.poll(&cx), Want::ToClose);
    }
}
