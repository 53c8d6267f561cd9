//! A device from the tracker, and the whole job done on it; and what the tracker says of itself.

use rpc_proto::tracker::{Port, QueueStatus, ServerAddr, ServerInfo};
use rpc_session::{SessionOptions, TimeEvaluatorOptions, args};
use rpc_tests::modules::{VADD, VADD_LEN};
use rpc_tests::peers::{Server, Tracker};
use rpc_tracker_client::{RequestOptions, TrackerClientOptions};

use super::bench::until;
use super::modules::load;
use super::{RemoteSession, TrackerClient, TrackerConnection, bisync, case};
use crate::support::{CPU, SOON, address, reference_text_summary};

#[bisync]
#[case]
async fn a_device_is_handed_out_and_does_the_job() {
    let tracker = Tracker::start();
    let _server = Server::builder()
        .key("board")
        .tracker(tracker.addr())
        .start();
    let client = TrackerClient::new(address(tracker.addr()));
    let session = RemoteSession::request(
        &client,
        &RequestOptions::new("board"),
        &SessionOptions::default(),
    )
    .await
    .unwrap();

    let module = load(&session, VADD).await;
    let cpu = session.cpu(0);
    let shape = [i64::try_from(VADD_LEN).unwrap()];
    let a = cpu.tensor(&shape, &[1.5_f32; VADD_LEN]).await.unwrap();
    let b = cpu.tensor(&shape, &[2.0_f32; VADD_LEN]).await.unwrap();
    let c = cpu.tensor(&shape, &[0.0_f32; VADD_LEN]).await.unwrap();
    let options = TimeEvaluatorOptions::default().with_repeat(3);
    let evaluator = module.time_evaluator(VADD.function, CPU, &options).await;
    let timing = evaluator.unwrap().run(args![&a, &b, &c]).await.unwrap();
    assert_eq!(timing.costs().len(), 3);
    assert!(timing.min() > 0.0);
    assert_eq!(c.to_vec::<f32>().await.unwrap(), [3.5; VADD_LEN]);

    let summary = client.summary().await.unwrap();
    assert_eq!(
        summary.queues["board"],
        QueueStatus {
            free: 0,
            pending: 0
        }
    );
    assert_eq!(client.count("board").await.unwrap(), 1);
}

#[bisync]
#[case]
async fn the_summary_is_the_one_of_the_reference() {
    let tracker = Tracker::start();
    let server = Server::builder()
        .key("rasp4b")
        .tracker(tracker.addr())
        .custom_addr("device.test")
        .start();
    let client = TrackerClient::new(address(tracker.addr()));
    until(SOON, "a free device", async || {
        let summary = client.summary().await.unwrap();
        summary
            .queues
            .get("rasp4b")
            .is_some_and(|queue| queue.free == 1)
    })
    .await;
    assert_eq!(
        client.text_summary().await.unwrap(),
        reference_text_summary(&tracker)
    );

    // A busy one, one that has no queue yet, and one with a port as text.
    let options = TrackerClientOptions::default();
    let mut other = TrackerConnection::connect(client.address(), &options)
        .await
        .unwrap();
    let info = ServerInfo {
        key: "server:a-much-longer-key".to_owned(),
        addr: Some(ServerAddr {
            host: None,
            port: Port::Text("9090".to_owned()),
        }),
    };
    other.update_info(info.clone()).await.unwrap();
    other
        .put("a-much-longer-key", 9090, "a-much-longer-key:0.5", None)
        .await
        .unwrap();
    let summary = client.summary().await.unwrap();
    let rasp4b = ServerInfo {
        key: "server:rasp4b".to_owned(),
        addr: Some(ServerAddr {
            host: Some("device.test".to_owned()),
            port: server.addr().port().into(),
        }),
    };
    let other_here = ServerInfo {
        addr: Some(ServerAddr {
            host: Some("127.0.0.1".to_owned()),
            port: Port::Text("9090".to_owned()),
        }),
        ..info
    };
    assert_eq!(summary.servers.len(), 2);
    assert!(summary.servers.contains(&rasp4b), "{summary:?}");
    assert!(summary.servers.contains(&other_here), "{summary:?}");
    assert_eq!(
        client.text_summary().await.unwrap(),
        reference_text_summary(&tracker)
    );
}
