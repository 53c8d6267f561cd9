//! A tracker whose process has no file descriptors left. Alone in its process, since the limit is that
//! of the process.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::net::TcpStream as Blocking;
use std::time::Duration;

use rpc_tracker::{Tracker, TrackerOptions};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const GREETING: &[u8] = b"\x71\xf2\x02\x00";
const DEADLINE: Duration = Duration::from_secs(30);

async fn greet(stream: &mut TcpStream) {
    stream.write_all(GREETING).await.unwrap();
    let mut greeting = [0; 4];
    let read = stream.read_exact(&mut greeting);
    timeout(DEADLINE, read)
        .await
        .expect("it is greeted")
        .unwrap();
    assert_eq!(greeting, GREETING);
}

async fn ping(stream: &mut TcpStream) {
    stream.write_all(b"\x03\0\0\0[1]").await.unwrap();
    let mut answer = [0; 5];
    let read = stream.read_exact(&mut answer);
    timeout(DEADLINE, read)
        .await
        .expect("it is answered")
        .unwrap();
    assert_eq!(answer, *b"\x01\0\0\x000");
}

#[tokio::test]
async fn a_tracker_without_descriptors_serves_those_it_has_and_later_others() {
    let options = TrackerOptions::default();
    let tracker = Tracker::bind("127.0.0.1", 0..=0, options).await.unwrap();
    let (addr, handle) = (tracker.local_addr(), tracker.handle());
    let served = tokio::spawn(tracker.serve());
    let mut old = TcpStream::connect(addr).await.unwrap();
    greet(&mut old).await;

    let limit = getrlimit(Resource::Nofile);
    let low = Rlimit {
        current: Some(100),
        ..limit
    };
    setrlimit(Resource::Nofile, low).unwrap();
    // The tracker does not run meanwhile, so that these take all that is left.
    let mut mine = Vec::new();
    while let Ok(stream) = Blocking::connect(addr) {
        mine.push(stream);
    }
    assert!(mine.len() > 10);
    for _ in 0..3 {
        ping(&mut old).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(
        handle.connections(),
        1,
        "there is nothing to accept one with"
    );

    // Each place that is given up is one for the tracker.
    let last = mine.pop().unwrap();
    drop(mine);
    last.set_nonblocking(true).unwrap();
    let mut last = TcpStream::from_std(last).unwrap();
    greet(&mut last).await;
    ping(&mut last).await;
    ping(&mut old).await;
    assert!(!served.is_finished());
}
