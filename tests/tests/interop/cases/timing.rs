//! Timing functions on the server.

use std::time::Duration;

use rpc_proto::DataType;
use rpc_session::{SessionError, TimeEvaluatorOptions, Timing, args};
use rpc_tests::modules::{MATMUL, MATMUL_SIDE};

use super::bench::{open, value};
use super::modules::load;
use super::{RemoteSession, Tensor, bisync, case};
use crate::support::{CPU, message};

#[bisync]
async fn matrices(session: &RemoteSession) -> Tensor {
    let side = i64::try_from(MATMUL_SIDE).unwrap();
    let cpu = session.cpu(0);
    cpu.empty(&[side, side], DataType::FLOAT32).await.unwrap()
}

#[track_caller]
fn assert_consistent(timing: &Timing, measurements: usize) {
    let costs = timing.costs();
    assert_eq!(costs.len(), measurements);
    assert!(
        costs.iter().all(|&cost| cost > 0.0 && cost < 10.0),
        "{costs:?}"
    );
    assert_eq!(timing.min(), costs.iter().copied().fold(f64::MAX, f64::min));
    assert_eq!(timing.max(), costs.iter().copied().fold(0.0, f64::max));
    for middle in [timing.mean(), timing.median()] {
        // A sum may be off in its last digit.
        let off = 1e-12;
        assert!(timing.min() - off <= middle && middle <= timing.max() + off);
    }
    assert!(timing.std() <= timing.max() - timing.min());
}

#[bisync]
#[case]
async fn a_function_of_a_module_is_timed() {
    let session = open().await;
    let module = load(&session, MATMUL).await;
    let [a, b, c] = [
        matrices(&session).await,
        matrices(&session).await,
        matrices(&session).await,
    ];
    for (number, repeat) in [(1, 1), (3, 4), (2, 100)] {
        let options = TimeEvaluatorOptions::default()
            .with_number(number)
            .with_repeat(repeat);
        let evaluator = module.time_evaluator(MATMUL.function, CPU, &options).await;
        let timing = evaluator.unwrap().run(args![&a, &b, &c]).await.unwrap();
        assert_consistent(&timing, usize::try_from(repeat).unwrap());
    }
}

/// `rpc.test.addone` counts nothing, but takes no time to speak of, so that only the minimal time of a
/// measurement can make it last.
#[bisync]
#[case]
async fn a_measurement_lasts_for_its_minimal_time() {
    let session = open().await;
    let options = TimeEvaluatorOptions::default()
        .with_number(1)
        .with_repeat(2)
        .with_min_repeat(Duration::from_millis(100));
    let evaluator = session
        .time_evaluator("rpc.test.addone", CPU, &options)
        .await
        .unwrap();
    let start = std::time::Instant::now();
    let timing = evaluator.run(args![1]).await.unwrap();
    assert!(start.elapsed() >= 2 * Duration::from_millis(100));
    assert_consistent(&timing, 2);
}

#[bisync]
#[case]
async fn a_global_function_is_timed_in_seconds() {
    let session = open().await;
    let options = TimeEvaluatorOptions::default()
        .with_number(2)
        .with_repeat(3);
    let evaluator = session
        .time_evaluator("rpc.test.sleep", CPU, &options)
        .await
        .unwrap();
    let timing = evaluator.run(args![0.01]).await.unwrap();
    assert_consistent(&timing, 3);
    assert!(timing.min() >= 0.01, "{timing}");
}

#[bisync]
#[case]
async fn a_function_that_is_not_there_cannot_be_timed() {
    let session = open().await;
    let options = TimeEvaluatorOptions::default();
    let error = session
        .time_evaluator("no.such", CPU, &options)
        .await
        .unwrap_err();
    assert!(message(&error).contains("Cannot find no.such"), "{error}");

    let module = load(&session, MATMUL).await;
    let error = module
        .time_evaluator("no.such", CPU, &options)
        .await
        .unwrap_err();
    assert!(message(&error).contains("no.such"), "{error}");

    let before = options.with_preprocess("no.before");
    let error = module
        .time_evaluator(MATMUL.function, CPU, &before)
        .await
        .unwrap_err();
    assert!(
        message(&error).contains("Cannot find no.before in the global function"),
        "{error}"
    );
    let sum: i64 = value(&session, "rpc.test.addone", args![1]).await;
    assert_eq!(sum, 2);
}

#[bisync]
#[case]
async fn no_runs_at_all_are_refused_here() {
    let session = open().await;
    let options = TimeEvaluatorOptions::default().with_number(0);
    let error = session
        .time_evaluator("rpc.test.addone", CPU, &options)
        .await
        .unwrap_err();
    assert!(matches!(error, SessionError::BadOption(_)), "{error:?}");
}

#[bisync]
#[case]
async fn what_fails_while_it_is_timed_says_why() {
    let session = open().await;
    let module = load(&session, MATMUL).await;
    let evaluator = module
        .time_evaluator(MATMUL.function, CPU, &TimeEvaluatorOptions::default())
        .await
        .unwrap();
    let error = evaluator.run(args![1]).await.unwrap_err();
    assert!(
        message(&error).starts_with("Expected 3 arguments when calling:"),
        "{error}"
    );
}
