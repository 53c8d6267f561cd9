use proptest::prelude::*;

use super::*;
use crate::tracker::ServerAddr;

fn put(key: &str, match_key: &str, port: u16, custom_addr: Option<&str>) -> Request {
    Request::Put {
        key: key.into(),
        port,
        match_key: match_key.into(),
        custom_addr: custom_addr.map(Into::into),
    }
}

fn request(key: &str, user: &str, priority: impl Into<Priority>) -> Request {
    Request::Request {
        key: key.into(),
        user: user.into(),
        priority: priority.into(),
    }
}

fn info(key: &str, host: Option<&str>, port: impl Into<Port>) -> Request {
    Request::UpdateInfo(ServerInfo {
        key: key.into(),
        addr: Some(ServerAddr {
            host: host.map(Into::into),
            port: port.into(),
        }),
    })
}

/// Texts and their lengths, as clients and servers of apache-tvm 0.27.0.post1 sent them.
fn recorded() -> [(Request, i32, &'static str); 11] {
    let stop_key = "tracker:0.1".to_owned();
    [
        (Request::Ping, 0x03, "[1]"),
        (Request::Stop { stop_key }, 0x12, r#"[2, "tracker:0.1"]"#),
        (
            put("dev", "dev:0.5", 9090, None),
            0x23,
            r#"[3, "dev", [9090, "dev:0.5"], null]"#,
        ),
        (
            put("dev", "dev:0.125", 9090, Some("10.1.2.3")),
            0x2b,
            r#"[3, "dev", [9090, "dev:0.125"], "10.1.2.3"]"#,
        ),
        (
            put("ключ", "ключ:0.5", 1, None),
            0x4a,
            r#"[3, "\u043a\u043b\u044e\u0447", [1, "\u043a\u043b\u044e\u0447:0.5"], null]"#,
        ),
        (request("dev", "user", 1), 0x15, r#"[4, "dev", "user", 1]"#),
        (request("dev", "", 9), 0x11, r#"[4, "dev", "", 9]"#),
        (
            info("server:dev", None, 9090),
            0x30,
            r#"[5, {"key": "server:dev", "addr": [null, 9090]}]"#,
        ),
        (
            info("server:dev", Some("test_addr"), 19228),
            0x38,
            r#"[5, {"key": "server:dev", "addr": ["test_addr", 19228]}]"#,
        ),
        (Request::Summary, 0x03, "[6]"),
        (Request::PendingMatchKeys, 0x03, "[7]"),
    ]
}

#[test]
fn requests_are_those_of_the_reference() {
    for (request, length, text) in recorded() {
        let frame = [&length.to_le_bytes(), text.as_bytes()].concat();
        let mut out = Vec::new();
        request.encode(Limits::default(), &mut out).unwrap();
        assert_eq!(
            out.escape_ascii().to_string(),
            frame.escape_ascii().to_string()
        );
        assert_eq!(Request::decode(text.as_bytes()), Ok(request));
    }
}

#[test]
fn other_forms_of_real_peers_are_read() {
    // Recorded from apache-tvm 0.27.0.post1: text that is not escaped, a code with a point,
    // white space, a PUT without an address. Ports in strings are what the C++ server sends.
    for (text, expected) in [
        (
            r#"[3, "ключ", [1, "ключ:0.25"], null]"#,
            put("ключ", "ключ:0.25", 1, None),
        ),
        ("[1.0]", Request::Ping),
        (" [ 1 ] \n", Request::Ping),
        (
            r#"[3, "dev", [9090, "dev:0.25"]]"#,
            put("dev", "dev:0.25", 9090, None),
        ),
        (
            r#"[3, "dev", ["9090", "dev:0.25"], ""]"#,
            put("dev", "dev:0.25", 9090, None),
        ),
        (
            r#"[5, {"key": "server:dev", "addr": [null, "15201"]}]"#,
            info("server:dev", None, Port::Text("15201".into())),
        ),
        (
            r#"[5, {"addr": null, "key": "server:dev"}]"#,
            Request::UpdateInfo(ServerInfo {
                key: "server:dev".into(),
                addr: None,
            }),
        ),
        (
            r#"[4, "dev", "", 1.5]"#,
            request("dev", "", Priority::new(1.5).unwrap()),
        ),
    ] {
        assert_eq!(Request::decode(text.as_bytes()), Ok(expected), "{text}");
    }
}

#[test]
fn what_is_no_request_says_what_is_missing() {
    for (text, error) in [
        (
            "0",
            "request: expected an array that starts with a code, found 0",
        ),
        (
            "[]",
            "request: expected an array that starts with a code, found []",
        ),
        (
            r#"["1"]"#,
            r#"request: expected an array that starts with a code, found ["1"]"#,
        ),
        ("[99]", "request: expected a code from 1 to 7, found [99]"),
        (
            r#"[4, "dev"]"#,
            r#"request: expected [4, key, user, priority], found [4,"dev"]"#,
        ),
        (r#"[4, null, "", 1]"#, "key: expected a string, found null"),
        (
            r#"[4, "dev", "", "1"]"#,
            r#"priority: expected a number, found "1""#,
        ),
        (
            r#"[3, "dev", [0, "k"]]"#,
            "port: expected a number from 1 to 65535, found 0",
        ),
        (
            r#"[3, "dev", [65536, "k"]]"#,
            "port: expected a number from 1 to 65535, found 65536",
        ),
        (
            r#"[3, "dev"]"#,
            r#"request: expected [3, key, [port, match key], address or null], found [3,"dev"]"#,
        ),
        ("[2]", "request: expected [2, stop key], found [2]"),
        (
            r#"[5, {"key": 5, "addr": [null, 1]}]"#,
            "key: expected a string, found 5",
        ),
        (
            r#"[5, {"key": "server:dev", "addr": [null, 0]}]"#,
            "address of a server: expected [host or null, port from 1 to 65535], found [null,0]",
        ),
    ] {
        let found = Request::decode(text.as_bytes()).unwrap_err();
        assert_eq!(found.to_string(), error, "{text}");
    }
}

#[test]
fn a_request_over_the_limit_does_not_leave() {
    let mut out = Vec::new();
    let limits = Limits::default().with_tracker_frame(16);
    assert!(request("dev", "", 9).encode(limits, &mut out).is_err());
    assert!(out.is_empty());
    assert!(
        request("dev", "", 9)
            .encode(limits.with_tracker_frame(17), &mut out)
            .is_ok()
    );
}

#[test]
fn priorities_are_finite_and_whole_ones_have_no_point() {
    assert_eq!(Priority::new(f64::NAN), None);
    assert_eq!(Priority::new(f64::NEG_INFINITY), None);
    for (number, text) in [(-0.0, "0"), (1.5, "1.5"), (-3.0, "-3"), (1e300, "1e+300")] {
        let written = serde_json::to_string(&Priority::new(number).unwrap()).unwrap();
        assert_eq!(written, text);
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(
        key: String, other: String, addr in "(.+)?", port in 1..=u16::MAX, number: i32, half: bool,
    ) {
        let priority = f64::from(number) + if half { 0.5 } else { 0.0 };
        for request in [
            Request::Stop { stop_key: key.clone() },
            put(&key, &other, port, Some(addr.as_str()).filter(|addr| !addr.is_empty())),
            request(&key, &other, Priority::new(priority).unwrap()),
            info(&key, Some(&other), port),
            info(&key, None, Port::Text(port.to_string())),
        ] {
            let mut frame = Vec::new();
            request.encode(Limits::default(), &mut frame)?;
            prop_assert!(frame[4..].is_ascii());
            prop_assert_eq!(Request::decode(&frame[4..])?, request);
        }
    }

    #[test]
    fn arbitrary_text_is_harmless(bytes: Vec<u8>, code in 0..9, text in "[\\[\\]{}\",:0-9a-z. ]*") {
        let _ = Request::decode(&bytes);
        let _ = Request::decode(format!("[{code}, {text}]").as_bytes());
    }
}
