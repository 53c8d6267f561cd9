//! WebSockets of which two threads have a handle each.

use std::io::Write;
use std::net::TcpStream;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Instant;

use rpc_transport::{Deadline, Step, TransportError};

use super::twin;
use crate::peer::{LONG, SHORT, chain, options};
use crate::websocket::{read_any_frame, read_frame, serve_frames};

fn ends() -> (twin::Stream, twin::Stream, TcpStream) {
    let (sender, socket) = channel();
    let (server, peer) = serve_frames(move |stream| send(&sender, stream));
    let stream = twin::connect_server(&server, &options()).unwrap();
    peer.join().unwrap();
    let clone = stream.try_clone().expect("a WebSocket has clones");
    (stream, clone, socket.recv().unwrap())
}

fn send(sender: &Sender<TcpStream>, stream: &TcpStream) {
    sender.send(stream.try_clone().unwrap()).unwrap();
}

/// A thread that waits for `stream` to say something, in a read by now or soon.
fn reading(
    mut stream: twin::Stream,
) -> thread::JoinHandle<(Result<usize, TransportError>, twin::Stream)> {
    let (starting, started) = channel();
    let reading = thread::spawn(move || {
        starting.send(()).unwrap();
        (stream.read(&mut [0; 8]), stream)
    });
    started.recv_timeout(LONG).unwrap();
    reading
}

#[test]
fn last_words_are_said_while_another_thread_reads() {
    let (stream, mut clone, mut peer) = ends();
    let reading = reading(stream);
    clone.set_deadline(Deadline::total(Step::Answer, Some(LONG)));
    clone.write_all(b"last ", b"words").unwrap();
    clone.shutdown();
    assert_eq!(read_frame(&mut peer), (0x82, b"last words".to_vec()));
    assert_eq!(read_frame(&mut peer), (0x88, vec![0x03, 0xe8]));
    peer.write_all(b"\x88\x00").unwrap();
    assert_eq!(reading.join().unwrap().0.unwrap(), 0);
    // It was answered before.
    clone.close();
    let mut rest = Vec::new();
    std::io::Read::read_to_end(&mut peer, &mut rest).unwrap();
    assert_eq!(rest, b"");
}

#[test]
fn closing_wakes_a_reader() {
    let (stream, clone, _peer) = ends();
    let reading = reading(stream);
    clone.close();
    assert_eq!(reading.join().unwrap().0.unwrap(), 0);
    clone.close();
}

#[test]
fn closing_wakes_a_writer() {
    let (mut stream, clone, _peer) = ends();
    let writing = thread::spawn(move || {
        loop {
            if let Err(error) = stream.write_all(&[0; 1 << 20], b"") {
                return error;
            }
        }
    });
    thread::sleep(SHORT);
    clone.close();
    let error = writing.join().unwrap();
    assert!(matches!(error, TransportError::Io { .. }), "{error:?}");
}

/// The answer to a ping must not get into the middle of a frame, nor the limits of reading and writing
/// into each other's way.
#[test]
fn one_thread_answers_pings_while_another_writes() {
    const ROUNDS: usize = 300;
    let (stream, mut clone, mut peer) = ends();
    let reading = reading(stream);
    let writing = thread::spawn(move || {
        for _ in 0..ROUNDS {
            clone.set_deadline(Deadline::total(Step::Send, Some(LONG)));
            clone.write_all(b"head ", b"payload").unwrap();
        }
        clone
    });
    let mut pinging = peer.try_clone().unwrap();
    let pinger = thread::spawn(move || {
        for _ in 0..ROUNDS {
            pinging.write_all(b"\x89\x01?").unwrap();
        }
        pinging.write_all(b"\x82\x03end").unwrap();
    });
    let (mut frames, mut pongs) = (0, 0);
    while frames < ROUNDS || pongs < 1 {
        match read_frame(&mut peer) {
            (0x82, payload) => {
                assert_eq!(payload, b"head payload");
                frames += 1;
            }
            frame => {
                assert_eq!(frame, (0x8a, b"?".to_vec()));
                pongs += 1;
            }
        }
    }
    pinger.join().unwrap();
    assert_eq!(reading.join().unwrap().0.unwrap(), 3);
    drop(writing.join().unwrap());
}

/// A writer whose peer does not read before it is read itself must not keep our reader from reading.
#[test]
fn a_writer_that_waits_does_not_keep_another_thread_from_reading() {
    const MUCH: usize = 32 << 20;
    let (mut stream, mut clone, mut peer) = ends();
    let writing = thread::spawn(move || {
        clone.set_deadline(Deadline::total(Step::Send, Some(LONG)));
        clone.write_all(&vec![7; MUCH], b"").unwrap();
    });
    // The writer is in the connection's way by now, or soon.
    thread::sleep(SHORT);
    peer.write_all(b"\x89\x01?\x82\x04read").unwrap();
    let mut bytes = [0; 8];
    stream.set_deadline(Deadline::total(Step::Reply, Some(LONG)));
    assert_eq!(stream.read(&mut bytes).unwrap(), 4);
    let (mut left, mut answered) = (MUCH, false);
    while left > 0 || !answered {
        match read_any_frame(&mut peer) {
            (0x82, payload) => left -= payload.len(),
            frame => {
                assert_eq!(frame, (0x8a, b"?".to_vec()));
                answered = true;
            }
        }
    }
    writing.join().unwrap();
}

/// A peer that reads nothing and floods us with pings costs the time that it may.
#[test]
fn answers_that_nobody_reads_keep_no_one() {
    let (mut stream, clone, mut peer) = ends();
    stream.set_deadline(Deadline::each_wait(Step::Send, Some(SHORT)));
    // From here on nothing gets into the connection any more.
    let error = stream.write_all(&[0; 64 << 20], b"").unwrap_err();
    assert!(error.is_timeout(), "{}", chain(&error));
    peer.write_all(&b"\x89\0".repeat(2000)).unwrap();
    let start = Instant::now();
    stream.set_deadline(Deadline::total(Step::Reply, Some(SHORT)));
    let error = stream.read(&mut [0; 8]).unwrap_err();
    assert!(error.is_timeout(), "{}", chain(&error));
    clone.shutdown();
    assert!(start.elapsed() < LONG);
}
