//! Which addresses `connect` reaches, and what it says of those that it does not.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::time::{Duration, Instant};

use rpc_transport::{Address, Deadline, Step, TransportError};

use super::{bisync, twin, twin_test};
use crate::peer::{LONG, SHORT, address, chain, options, serve, wait_for_end};

/// Connects to a listener at `listening` by way of `host`.
#[bisync]
async fn attempt(listening: &str, host: &str) -> Result<(), TransportError> {
    let listener = TcpListener::bind(listening).unwrap();
    let address = Address::new(host, listener.local_addr().unwrap().port());
    let stream = twin::connect(&address, &options()).await?;
    assert_eq!(stream.peer(), address.to_string());
    listener.accept().unwrap();
    Ok(())
}

fn has_ipv6() -> bool {
    TcpListener::bind("[::1]:0").is_ok()
}

#[bisync]
#[twin_test]
async fn an_ipv4_literal() {
    attempt("127.0.0.1:0", "127.0.0.1").await.unwrap();
    attempt("0.0.0.0:0", "127.0.0.1").await.unwrap();
    let error = attempt("127.0.0.1:0", "127.0.0.2").await.unwrap_err();
    assert!(error.is_refused(), "{}", chain(&error));
}

#[bisync]
#[twin_test]
async fn an_ipv6_literal() {
    if has_ipv6() {
        attempt("[::1]:0", "::1").await.unwrap();
        attempt("[::1]:0", "[::1]").await.unwrap();
        attempt("[::]:0", "::1").await.unwrap();
    }
    // No way there, or nobody there: in each case an error that has the address.
    let error = attempt("127.0.0.1:0", "::1").await.unwrap_err();
    assert!(matches!(error, TransportError::Connect { .. }), "{error}");
    assert!(error.to_string().starts_with("cannot connect to [::1]:"));
    assert_eq!(error.is_refused(), has_ipv6(), "{}", chain(&error));
}

/// A name may have addresses that nobody listens at.
#[bisync]
#[twin_test]
async fn a_name_whose_service_listens_on_one_address() {
    let mut listening = vec!["127.0.0.1:0"];
    if has_ipv6() {
        listening.push("[::1]:0");
    }
    let addresses: Vec<_> = ("localhost", 1).to_socket_addrs().unwrap().collect();
    for listening in listening {
        let at: SocketAddr = listening.parse().unwrap();
        let reached = attempt(listening, "localhost").await;
        if addresses.iter().any(|address| address.ip() == at.ip()) {
            reached.unwrap();
        } else {
            let error = reached.unwrap_err();
            assert!(error.is_refused(), "{}", chain(&error));
        }
    }
}

#[bisync]
#[twin_test]
async fn nobody_there() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = address(listener.local_addr().unwrap());
    drop(listener);
    let error = twin::connect(&address, &options()).await.unwrap_err();
    assert!(error.is_refused() && !error.is_timeout());
    assert_eq!(error.to_string(), format!("cannot connect to {address}"));
    assert!(chain(&error).contains("refused"), "{}", chain(&error));
}

#[bisync]
#[twin_test]
async fn names_that_nobody_has() {
    // The first is reserved for this; the others are not even names.
    for host in ["nowhere.invalid", "", "a\0b"] {
        let address = Address::new(host, 9);
        let error = twin::connect(&address, &options()).await.unwrap_err();
        assert!(
            matches!(error, TransportError::Connect { .. }),
            "{}",
            chain(&error)
        );
        assert!(!error.is_refused());
    }
}

#[bisync]
#[twin_test]
async fn limits_at_both_ends() {
    let (address, peer) = serve(|mut stream| wait_for_end(&mut stream));
    let none = options().with_connect_timeout(Duration::ZERO);
    let error = twin::connect(&address, &none).await.unwrap_err();
    assert!(error.is_timeout(), "{}", chain(&error));
    let ages = options()
        .with_connect_timeout(Duration::MAX)
        .with_handshake_timeout(Duration::MAX);
    drop(twin::connect(&address, &ages).await.unwrap());
    peer.join().unwrap();
}

#[bisync]
#[twin_test]
async fn a_silent_peer_costs_the_time_that_it_may() {
    let (address, peer) = serve(|mut stream| wait_for_end(&mut stream));
    let mut stream = twin::connect(&address, &options()).await.unwrap();
    for deadline in [
        Deadline::total(Step::Reply, Some(SHORT)),
        Deadline::each_wait(Step::Reply, Some(SHORT)),
        Deadline::total(Step::Reply, Some(Duration::ZERO)),
        Deadline::each_wait(Step::Reply, Some(Duration::ZERO)),
    ] {
        stream.set_deadline(deadline);
        let error = stream.read(&mut [0; 8]).await.unwrap_err();
        let TransportError::TimedOut { step, .. } = error else {
            panic!("{}", chain(&error));
        };
        assert_eq!(step, Step::Reply);
    }
    drop(stream);
    peer.join().unwrap();
}

/// The peer reads nothing, so that its window fills up and a write has to wait.
#[bisync]
#[twin_test]
async fn a_peer_that_does_not_read_costs_the_time_that_it_may() {
    let (done, wait) = std::sync::mpsc::channel::<()>();
    let (address, peer) = serve(move |_stream| {
        let _ = wait.recv();
    });
    let mut stream = twin::connect(&address, &options()).await.unwrap();
    let large = vec![0; 256 << 20];
    for deadline in [
        Deadline::total(Step::Send, Some(SHORT)),
        Deadline::each_wait(Step::Send, Some(SHORT)),
    ] {
        stream.set_deadline(deadline);
        let error = stream.write_all(b"head", &large).await.unwrap_err();
        assert!(error.is_timeout(), "{}", chain(&error));
        assert!(
            error
                .to_string()
                .ends_with("after 100ms of sending a request")
        );
    }
    drop(done);
    peer.join().unwrap();
}

/// No single wait is long if the peer never stops sending.
#[bisync]
#[twin_test]
async fn a_total_limit_holds_for_all_reads_together() {
    let (address, peer) = serve(|mut stream| while stream.write_all(&[0]).is_ok() {});
    let mut stream = twin::connect(&address, &options()).await.unwrap();
    let start = Instant::now();
    stream.set_deadline(Deadline::total(Step::Reply, Some(SHORT)));
    let error = loop {
        assert!(start.elapsed() < LONG);
        match stream.read(&mut [0; 8]).await {
            Ok(count) => assert!(count > 0),
            Err(error) => break error,
        }
    };
    assert!(start.elapsed() >= SHORT);
    assert!(error.is_timeout(), "{}", chain(&error));
    drop(stream);
    peer.join().unwrap();
}
