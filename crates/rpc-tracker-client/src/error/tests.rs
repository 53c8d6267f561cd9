use std::io;

use rpc_proto::Limits;
use rpc_proto::tracker::{Reply, Request};
use rpc_transport::{Chain, Step};

use super::*;

fn lost() -> TrackerClientError {
    let error = TransportError::Io {
        peer: "t:1".into(),
        step: Step::TrackerAnswer,
        source: io::ErrorKind::ConnectionReset.into(),
    };
    error.into()
}

fn timed_out() -> TrackerClientError {
    let error = TransportError::TimedOut {
        peer: "t:1".into(),
        step: Step::Connect,
        allowed: Duration::from_secs(10),
    };
    error.into()
}

fn tracker(source: ConnectionError) -> TrackerClientError {
    let peer = "t:1".into();
    TransportError::Tracker { peer, source }.into()
}

fn reply(reply: Reply) -> TrackerClientError {
    TrackerClientError::Reply {
        tracker: "t:1".into(),
        source: reply.into_allocation().unwrap_err(),
    }
}

fn connect() -> TrackerClientError {
    TrackerClientError::Connect {
        server: "s:2".into(),
        match_key: "k:0.5".into(),
        source: "the server is gone".into(),
    }
}

fn exhausted(failures: impl IntoIterator<Item = TrackerClientError>) -> TrackerClientError {
    let mut exhausted = Exhausted::new("k");
    failures
        .into_iter()
        .for_each(|failure| exhausted.add(failure));
    exhausted.into()
}

#[test]
fn each_error_says_what_a_retry_loop_does() {
    let key = || "k".to_owned();
    let second = Duration::from_secs(1);
    let too_large = Request::Ping
        .encode(Limits::default().with_tracker_frame(2), &mut Vec::new())
        .unwrap_err();
    let no_greeting = || tracker(ConnectionError::NoGreeting { received: 0 });
    let session_timed_out = TrackerClientError::SessionTimedOut {
        key: key(),
        limit: second,
        source: "".into(),
    };
    // A limit of the server's, not of the tracker's.
    let connect_timed_out = TrackerClientError::Connect {
        server: "s:2".into(),
        match_key: "k:0.5".into(),
        source: timed_out().into(),
    };
    let run = TrackerClientError::Run {
        key: key(),
        runs: 2,
        source: "".into(),
    };
    let wait = TrackerClientError::WaitTimedOut {
        key: key(),
        allowed: second,
        source: None,
    };
    use Retry::{Never, NewConnection, SameConnection};
    // error, what to do, a timeout?, not a tracker?
    let table = [
        (lost(), NewConnection, false, false),
        (timed_out(), NewConnection, true, false),
        (no_greeting(), NewConnection, false, true),
        (
            tracker(ConnectionError::Closed),
            NewConnection,
            false,
            false,
        ),
        (
            tracker(ConnectionError::TooLarge(too_large)),
            Never,
            false,
            false,
        ),
        (reply(Reply::refused()), SameConnection, false, false),
        (reply(Reply::Done), NewConnection, false, false),
        (connect(), SameConnection, false, false),
        (connect_timed_out, SameConnection, false, false),
        (wait, Never, true, false),
        (exhausted([]), Never, false, false),
        (exhausted([lost(), connect()]), SameConnection, false, false),
        (
            exhausted([connect(), timed_out()]),
            NewConnection,
            true,
            false,
        ),
        (exhausted([no_greeting()]), NewConnection, false, true),
        (session_timed_out, Never, true, false),
        (run, SameConnection, false, false),
    ];
    for (error, retry, is_timeout, is_not_a_tracker) in table {
        assert_eq!(error.retry(), retry, "{error}");
        assert_eq!(error.is_retryable(), retry != Never, "{error}");
        assert_eq!(error.is_timeout(), is_timeout, "{error}");
        assert_eq!(error.is_not_a_tracker(), is_not_a_tracker, "{error}");
    }
}

/// Who prints an error with its sources reads all of it, and nothing twice.
#[test]
fn a_chain_tells_all() {
    for (error, expected) in [
        (
            reply(Reply::refused()),
            "no success at t:1: the tracker refused: it answered -1",
        ),
        (
            reply(Reply::Done),
            "no success at t:1: the tracker's answer is wrong: \
             reply: expected [0, [host, port, match key]], found 0",
        ),
        (
            tracker(ConnectionError::NoGreeting { received: 0 }),
            "no use of the tracker at t:1: not an RPC tracker: \
             closed the connection after 0 of the 4 bytes of a greeting",
        ),
        (
            connect(),
            "no session at s:2 with match key \"k:0.5\": the server is gone",
        ),
        (
            exhausted([lost(), reply(Reply::refused())]),
            "no session on a device of key \"k\" after 2 tries; the last one: \
             no success at t:1: the tracker refused: it answered -1",
        ),
    ] {
        assert_eq!(Chain(&error).to_string(), expected);
    }
}

#[test]
fn an_exhausted_request_names_its_last_error_and_goes_on_with_that_ones_source() {
    let error = exhausted([lost(), connect()]);
    assert_eq!(
        error.to_string(),
        "no session on a device of key \"k\" after 2 tries; \
         the last one: no session at s:2 with match key \"k:0.5\""
    );
    assert_eq!(error.source().unwrap().to_string(), "the server is gone");

    let error = exhausted([reply(Reply::refused())]);
    assert_eq!(
        error.to_string(),
        "no session on a device of key \"k\" after 1 try; \
         the last one: no success at t:1"
    );
    let source = error.source().unwrap().downcast_ref::<ReplyError>();
    assert!(matches!(source, Some(ReplyError::Refused { .. })));

    assert_eq!(
        exhausted([]).to_string(),
        "no session on a device of key \"k\" after 0 tries: none was allowed"
    );
}

#[test]
fn only_so_many_failures_are_kept() {
    let mut exhausted = Exhausted::new("k");
    exhausted.add(lost());
    for _ in 0..Exhausted::KEPT {
        exhausted.add(connect());
    }
    assert_eq!(exhausted.tries(), 33);
    assert_eq!(exhausted.failures().len(), Exhausted::KEPT);
    let kept = exhausted.failures();
    assert!(
        kept.iter()
            .all(|failure| matches!(failure, TrackerClientError::Connect { .. }))
    );
}
