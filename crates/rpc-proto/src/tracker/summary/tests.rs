use super::*;
use crate::Limits;
use crate::tracker::Reply;

fn summary(json: &str) -> Summary {
    let reply = Reply::decode(format!("[0, {json}]").as_bytes());
    reply.unwrap().into_summary().unwrap()
}

fn keys(key: &str) -> Vec<String> {
    let info = ServerInfo {
        key: key.into(),
        addr: None,
    };
    info.device_keys().map(Into::into).collect()
}

#[test]
fn a_summary_is_that_of_the_reference() {
    // Recorded from the tracker of apache-tvm 0.27.0.post1.
    let text = r#"[0, {"queue_info": {"dev": {"free": 3, "pending": 0}}, "server_info": [{"key": "server:dev", "addr": ["127.0.0.1", 9090]}]}]"#;
    let expected = Summary {
        queues: [(
            "dev".to_owned(),
            QueueStatus {
                free: 3,
                pending: 0,
            },
        )]
        .into(),
        servers: vec![ServerInfo {
            key: "server:dev".into(),
            addr: Some(ServerAddr {
                host: Some("127.0.0.1".into()),
                port: Port::Number(9090),
            }),
        }],
    };
    let reply = Reply::Summary(expected);
    let mut frame = Vec::new();
    reply.encode(Limits::default(), &mut frame).unwrap();
    assert_eq!(frame[..4], [0x7c, 0, 0, 0]);
    assert_eq!(
        frame[4..].escape_ascii().to_string(),
        text.as_bytes().escape_ascii().to_string()
    );
    assert_eq!(Reply::decode(text.as_bytes()), Ok(reply));
}

#[test]
fn plain_keys_read_as_in_the_reference() {
    let found = summary(
        r#"{"queue_info": {
            "rasp4b": {"free": 1, "pending": 0}, "ключ": {"free": 0, "pending": 12},
            "hidden-longest": {"free": 0, "pending": 0}, "android": {"free": 0, "pending": 3}},
        "server_info": [
            {"key": "server:rasp4b", "addr": ["192.168.0.11", 9090]},
            {"key": "server:ключ", "addr": ["2001:db8:0:1:2:3:4:5", "15201"]},
            {"key": "server:rasp4b", "addr": ["192.168.0.10", 9091]}]}"#,
    );
    // The output of tvm.rpc.TrackerSession.text_summary() of apache-tvm 0.27.0.post1, whose
    // summary() was replaced by a function that returns the same data.
    let expected = "\
        Server List\n\
        ------------------------------\n\
        server-address           key\n\
        ------------------------------\n\
        192.168.0.11:9090        server:rasp4b\n\
        192.168.0.10:9091        server:rasp4b\n\
        2001:db8:0:1:2:3:4:5:15201    server:ключ\n\
        ------------------------------\n\
        \n\
        Queue Status\n\
        --------------------------------------\n\
        key              total  free  pending\n\
        --------------------------------------\n\
        android          0      0     3      \n\
        rasp4b           2      1     0      \n\
        ключ             1      0     12     \n\
        --------------------------------------\n\
    ";
    assert_eq!(found.text_summary(), expected);

    // Made in the same way.
    let expected = "\
        Server List\n\
        ------------------------------\n\
        server-address           key\n\
        ------------------------------\n\
        ------------------------------\n\
        \n\
        Queue Status\n\
        ---------------------------\n\
        key   total  free  pending\n\
        ---------------------------\n\
        ---------------------------\n\
    ";
    assert_eq!(Summary::default().text_summary(), expected);
}

#[test]
fn totals_count_keys_with_colons_and_servers_behind_proxies() {
    let found = summary(
        r#"{"queue_info": {
            "127.0.0.1:5555": {"free": 1, "pending": 0}, "a": {"free": 1, "pending": 0}},
        "server_info": [
            {"key": "server:127.0.0.1:5555", "addr": ["10.0.0.1", 9090]},
            {"key": "server:proxy[a,b]", "addr": ["10.0.0.2", 9091]},
            {"key": "server:a"}, {"key": "server", "addr": [null, 9092]}]}"#,
    );
    let totals = [("127.0.0.1:5555", 1), ("a", 2), ("b", 1)].into();
    assert_eq!(found.servers_by_key(), totals);
    let text = found.text_summary();
    let (servers, queues) = text.split_once("\n\n").unwrap();
    assert!(
        servers.contains("\nNone:9092                server\n"),
        "{servers}"
    );
    assert!(
        servers.contains("\n-                        server:a\n"),
        "{servers}"
    );
    let rows = "127.0.0.1:5555   1      1     0      \n\
                a                2      1     0      \n\
                b                1      0     0      \n";
    assert!(queues.contains(rows), "{queues}");
}

#[test]
fn keys_of_devices_are_found_in_every_form() {
    assert_eq!(keys("server:x1"), ["x1"]);
    assert_eq!(keys("server:a:b"), ["a:b"]);
    assert_eq!(keys("server:"), [""]);
    assert_eq!(keys("server:proxy[a:1,b]"), ["a:1", "b"]);
    assert_eq!(keys("server:proxy[]"), [""; 0]);
    assert_eq!(keys("server:proxy["), ["proxy["]);
    assert_eq!(keys("server"), [""; 0]);
    assert_eq!(keys("client:x1"), [""; 0]);
}

#[test]
fn an_odd_address_does_not_hide_the_others() {
    let found = summary(
        r#"{"queue_info": {}, "server_info": [
            {"key": "server:a", "addr": []}, {"key": "server:b", "addr": ["h", null]},
            {"key": "server:c", "addr": ["h", "x"]}, {"key": "server:d", "addr": ["h", 9090.0]}]}"#,
    );
    let port = |at: usize| {
        found.servers[at]
            .addr
            .as_ref()
            .map(|addr| addr.port.number())
    };
    assert_eq!(
        [port(0), port(1), port(2), port(3)],
        [None, None, Some(None), Some(Some(9090))]
    );
}

#[test]
fn broken_summaries_say_what_is_wrong() {
    for (json, error) in [
        (
            r#"{"queue_info": {}}"#,
            r#"summary: expected {"queue_info": {…}, "server_info": […]}, found {"queue_info":{}}"#,
        ),
        (
            r#"{"queue_info": {"k": {"free": -1, "pending": 0}}, "server_info": []}"#,
            r#"queue of a summary: expected {"free": count, "pending": count}, found {"free":-1,"pending":0}"#,
        ),
        (
            r#"{"queue_info": {}, "server_info": [5]}"#,
            r#"server: expected {"key": …, "addr": [host, port]}, found 5"#,
        ),
    ] {
        let found = Reply::decode(format!("[0, {json}]").as_bytes());
        assert_eq!(found.unwrap_err().to_string(), error);
    }
}
