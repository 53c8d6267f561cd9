//! With the workspace's own client.

use std::io;
use std::time::Duration;

use rpc_proto::tracker::{Port, ServerAddr, ServerInfo};
use rpc_tracker::TrackerOptions;
use rpc_tracker_client::asynchronous::{Connect, TrackerClient, TrackerConnection};
use rpc_tracker_client::{Allocation, Diagnosis, RequestOptions, TrackerClientOptions};

use crate::peer::{Service, within};

/// Only shows where it would connect.
struct Show;

#[async_trait::async_trait]
impl Connect for Show {
    type Session = Allocation;
    type Error = io::Error;

    async fn connect(&self, at: &Allocation, _: Option<Duration>) -> io::Result<Allocation> {
        Ok(at.clone())
    }
}

async fn server(service: &Service, key: &str) -> TrackerConnection {
    let options = TrackerClientOptions::default();
    let mut server = TrackerConnection::connect(&service.addr.into(), &options)
        .await
        .unwrap();
    let info = ServerInfo {
        key: format!("server:{key}"),
        addr: Some(ServerAddr {
            host: None,
            port: Port::Number(9090),
        }),
    };
    server.update_info(info).await.unwrap();
    server
}

#[tokio::test]
async fn a_device_is_offered_and_requested() {
    let service = Service::start().await;
    let client = TrackerClient::new(service.addr.into());
    let mut server = server(&service, "rasp4b").await;
    server
        .put("rasp4b", 9090, "rasp4b:0.5", None)
        .await
        .unwrap();
    let pending = server.pending_match_keys().await.unwrap();
    assert_eq!(pending, ["rasp4b:0.5"]);

    let options = RequestOptions::new("rasp4b");
    let session = client.request(&options, &Show).await.unwrap();
    assert_eq!((session.host.as_str(), session.port), ("127.0.0.1", 9090));
    assert_eq!(session.match_key, "rasp4b:0.5");
    assert_eq!(server.pending_match_keys().await.unwrap(), [""; 0]);
    assert_eq!(client.count("rasp4b").await.unwrap(), 1);
}

#[tokio::test]
async fn a_request_waits_for_a_device_and_a_higher_priority_goes_first() {
    let service = Service::start().await;
    let client = TrackerClient::new(service.addr.into());
    let patient = RequestOptions::new("k");
    let urgent = RequestOptions::new("k").with_priority(9);
    let mut server = server(&service, "k").await;
    let offer = async {
        service
            .until(|service| service.status("k") == Some((0, 2)))
            .await;
        server.put("k", 9090, "first", None).await.unwrap();
        server.put("k", 9090, "second", None).await.unwrap();
    };
    let (patient, urgent, ()) = within("both sessions", async {
        tokio::join!(
            client.request(&patient, &Show),
            client.request(&urgent, &Show),
            offer
        )
    })
    .await;
    assert_eq!(urgent.unwrap().match_key, "first");
    assert_eq!(patient.unwrap().match_key, "second");
}

#[tokio::test]
async fn a_request_that_is_given_up_leaves_the_queue() {
    let service = Service::start().await;
    let client = TrackerClient::new(service.addr.into());
    let options = RequestOptions::new("typo").with_wait_timeout(Duration::from_millis(50));
    client.request(&options, &Show).await.unwrap_err();
    service
        .until(|service| service.status("typo").is_none())
        .await;
}

#[tokio::test]
async fn a_diagnosis_knows_busy_devices() {
    let service = Service::start().await;
    let client = TrackerClient::new(service.addr.into());
    let none = client.check("k").await;
    let _server = server(&service, "k").await;
    let busy = client.check("k").await;
    assert_ne!(none.to_string(), busy.to_string());
    assert!(
        !matches!(busy, Diagnosis::NoSummary(_) | Diagnosis::Unreachable(_)),
        "{busy}"
    );
}

#[tokio::test]
async fn the_stop_key_ends_the_tracker() {
    let mut service = Service::with(TrackerOptions::default().with_stop_key("secret")).await;
    let client = TrackerClient::new(service.addr.into());
    client.ping().await.unwrap();
    client.stop("wrong").await.unwrap_err();
    client.stop("secret").await.unwrap();
    within("the tracker to end", &mut service.served)
        .await
        .unwrap();
}
