//! Failures of functions keep their message, and the session goes on.

use rpc_session::args;
use rpc_tests::modules::VADD;

use super::bench::{call, open, value};
use super::modules::load;
use super::{Argument, bisync, case};
use crate::support::message;

#[bisync]
#[case]
async fn an_exception_keeps_its_message() {
    let session = open().await;
    let cases: &[(&str, &[Argument<'_>], &str)] = &[
        ("rpc.test.except", args!["abc"], "abc"),
        (
            "rpc.test.raise",
            args!["ValueError", "not 3:\n  but 4"],
            "not 3:\n  but 4",
        ),
        ("rpc.test.raise", args!["RuntimeError", ""], ""),
        (
            "rpc.test.raise",
            args!["OSError", "grüße, 世界"],
            "grüße, 世界",
        ),
        // As Python prints a missing key.
        ("rpc.test.raise", args!["KeyError", "k"], "'k'"),
        (
            "testing.test_raise_error",
            args!["TypeError", "from C++"],
            "from C++",
        ),
    ];
    for &(name, args, expected) in cases {
        let error = call(&session, name, args).await.unwrap_err();
        assert_eq!(message(&error), expected);
        assert!(!error.is_fatal() && !error.is_session_timeout());

        let sum: i64 = value(&session, "rpc.test.addone", args![1]).await;
        assert_eq!(sum, 2, "after {error}");
    }
}

#[bisync]
#[case]
async fn a_long_message_arrives_whole() {
    let session = open().await;
    let long = "why ".repeat(50_000);
    let error = call(&session, "rpc.test.except", args![&long])
        .await
        .unwrap_err();
    assert_eq!(error.remote().unwrap().text(), long);
}

#[bisync]
#[case]
async fn a_compiled_function_checks_its_arguments() {
    let session = open().await;
    let module = load(&session, VADD).await;
    let vadd = module.function(VADD.function).await.unwrap();
    let cpu = session.cpu(0);
    let good = cpu.tensor(&[1024], &[0.0_f32; 1024]).await.unwrap();
    let short = cpu.tensor(&[8], &[0.0_f32; 8]).await.unwrap();
    let whole = cpu.tensor(&[1024], &[0_i32; 1024]).await.unwrap();
    let cases: &[(&[Argument<'_>], &str)] = &[
        (args![], "Expected 3 arguments"),
        (args![&good, &good], "Expected 3 arguments"),
        (
            args![&good, &good, &short],
            "Invalid c.shape[0] on argument #2",
        ),
        (
            args![&good, &good, &whole],
            "Mismatched c.dtype on argument #2",
        ),
        (args![1, 2, 3], "Mismatched type on argument #0"),
    ];
    for &(args, expected) in cases {
        let error = vadd.call(args).await.unwrap_err();
        assert!(message(&error).starts_with(expected), "{error}");
    }
    vadd.call(args![&good, &good, &good]).await.unwrap();
}
