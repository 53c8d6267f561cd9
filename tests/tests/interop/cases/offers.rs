//! The server's side of a tracker: offering devices.

use rpc_proto::tracker::{ReplyError, ServerAddr, ServerInfo};
use rpc_tests::peers::Tracker;
use rpc_tracker_client::{TrackerClientError, TrackerClientOptions};

use super::bench::until;
use super::{TrackerClient, TrackerConnection, bisync, case};
use crate::support::{SOON, address};

#[bisync]
async fn connect(tracker: &Tracker) -> TrackerConnection {
    TrackerConnection::connect(&address(tracker.addr()), &TrackerClientOptions::default())
        .await
        .unwrap()
}

fn server(key: &str) -> ServerInfo {
    ServerInfo {
        key: format!("server:{key}"),
        addr: Some(ServerAddr {
            host: None,
            port: 9090.into(),
        }),
    }
}

#[bisync]
#[case]
async fn offers_are_pending_until_they_are_taken() {
    let tracker = Tracker::start();
    let mut connection = connect(&tracker).await;
    connection.ping().await.unwrap();
    connection.update_info(server("a:b")).await.unwrap();
    assert_eq!(connection.pending_match_keys().await.unwrap(), [""; 0]);

    connection.put("a:b", 9090, "a:b:0.1", None).await.unwrap();
    connection.put("a:b", 9090, "a:b:0.2", None).await.unwrap();
    let mut pending = connection.pending_match_keys().await.unwrap();
    pending.sort();
    assert_eq!(pending, ["a:b:0.1", "a:b:0.2"]);
    let summary = connection.summary().await.unwrap();
    assert_eq!(summary.queues["a:b"].free, 2);

    // Those of another connection are its own.
    let mut other = connect(&tracker).await;
    assert_eq!(other.pending_match_keys().await.unwrap(), [""; 0]);
}

#[bisync]
#[case]
async fn what_a_lost_server_offered_is_withdrawn() {
    let tracker = Tracker::start();
    let client = TrackerClient::new(address(tracker.addr()));
    let mut connection = connect(&tracker).await;
    connection.update_info(server("gone")).await.unwrap();
    connection
        .put("gone", 9090, "gone:0.1", None)
        .await
        .unwrap();
    assert_eq!(client.count("gone").await.unwrap(), 1);

    drop(connection);
    until(SOON, "the offer to be withdrawn", async || {
        client.count("gone").await.unwrap() == 0
    })
    .await;
    let summary = client.summary().await.unwrap();
    assert_eq!(summary.queues["gone"].free, 0);
}

#[bisync]
#[case]
async fn a_tracker_stops_for_its_secret_alone() {
    let tracker = Tracker::start();
    let client = TrackerClient::new(address(tracker.addr()));
    let mut connection = connect(&tracker).await;

    let error = connection.stop("a guess").await.unwrap_err();
    assert!(
        matches!(
            &error,
            TrackerClientError::Reply {
                source: ReplyError::Refused { .. },
                ..
            }
        ),
        "{error:?}"
    );
    // A refusal leaves the connection as it was.
    connection.ping().await.unwrap();

    client.stop(Tracker::STOP_KEY).await.unwrap();
    let error = connection.ping().await.unwrap_err();
    assert!(
        matches!(error, TrackerClientError::Transport(_)),
        "{error:?}"
    );
}
