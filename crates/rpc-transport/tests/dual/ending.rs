//! Streams that another thread ends.

use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::thread;

use rpc_transport::TransportError;

use super::twin;
use crate::mock::Mock;
use crate::peer::{LONG, options, read_exact, serve};

/// A stream that is used on one thread, its clone for another, and the other end.
fn ends() -> (twin::Stream, twin::Stream, TcpStream) {
    let (sender, socket) = channel();
    let (address, peer) = serve(move |socket| sender.send(socket).unwrap());
    let stream = twin::connect(&address, &options()).unwrap();
    peer.join().unwrap();
    let clone = stream.try_clone().expect("a socket has clones");
    (stream, clone, socket.recv().unwrap())
}

#[test]
fn a_clone_is_the_same_connection() {
    let (mut stream, mut clone, mut peer) = ends();
    assert_eq!(stream.peer(), clone.peer());
    stream.write_all(b"one ", b"").unwrap();
    clone.write_all(b"two", b"").unwrap();
    assert_eq!(read_exact(&mut peer, 7), b"one two");
    // It is open as long as one of them is.
    drop(stream);
    clone.write_all(b" three", b"").unwrap();
    assert_eq!(read_exact(&mut peer, 6), b" three");
}

#[test]
fn closing_wakes_a_reader() {
    let (mut stream, clone, _peer) = ends();
    let (starting, started) = channel();
    let reading = thread::spawn(move || {
        starting.send(()).unwrap();
        stream.read(&mut [0])
    });
    started.recv_timeout(LONG).unwrap();
    clone.close();
    assert_eq!(reading.join().unwrap().unwrap(), 0);
    clone.close();
}

#[test]
fn closing_wakes_a_writer() {
    let (mut stream, clone, _peer) = ends();
    let (starting, started) = channel();
    let writing = thread::spawn(move || {
        starting.send(()).unwrap();
        // More than a peer that does not read can be sent.
        loop {
            stream.write_all(&[0; 1 << 20], b"")?;
        }
        #[expect(unreachable_code, reason = "it says what the loop fails with")]
        Ok::<(), TransportError>(())
    });
    started.recv_timeout(LONG).unwrap();
    clone.close();
    let error = writing.join().unwrap().unwrap_err();
    assert!(matches!(error, TransportError::Io { .. }), "{error:?}");
}

#[test]
fn who_says_nothing_more_can_still_listen() {
    let (mut stream, clone, mut peer) = ends();
    stream.write_all(b"bye", b"").unwrap();
    clone.shutdown();
    clone.shutdown();
    let mut heard = Vec::new();
    std::io::Read::read_to_end(&mut peer, &mut heard).unwrap();
    assert_eq!(heard, b"bye");
    std::io::Write::write_all(&mut peer, b"bye").unwrap();
    let mut bytes = [0; 3];
    assert_eq!(stream.read(&mut bytes).unwrap(), 3);
    assert!(stream.write_all(b"again", b"").is_err());
}

#[test]
fn a_carrier_need_not_know_of_all_this() {
    let mock = Mock::new(b"x", &[1]);
    let mut stream = mock.blocking_stream();
    assert!(stream.try_clone().is_none());
    stream.shutdown();
    stream.close();
    assert_eq!(stream.read(&mut [0]).unwrap(), 1);
}
