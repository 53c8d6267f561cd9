//! Time evaluators: how often they call, what they refuse.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rpc_proto::Value;
use rpc_session::{Exception, Functions, LocalModule};

use super::client::{Client, refused, value};
use super::{Session as _, bisync, twin_test};

const EVALUATOR: &str = "runtime.RPCTimeEvaluator";

/// A function that counts how often it is called, and does nothing else or fails.
fn counted() -> (Functions, Arc<[AtomicU64; 2]>) {
    let counts: Arc<[AtomicU64; 2]> = Arc::default();
    let mut functions = Functions::new();
    let calls = Arc::clone(&counts);
    let work = move |fails: bool| {
        calls[0].fetch_add(1, Ordering::Relaxed);
        if fails {
            Err(Exception::runtime("it failed"))
        } else {
            Ok(())
        }
    };
    let calls = Arc::clone(&counts);
    functions
        .add("work", work.clone())
        .add("before", move |_: bool| {
            calls[1].fetch_add(1, Ordering::Relaxed)
        })
        .add("module", move || LocalModule::new().with("f", work.clone()));
    (functions, counts)
}

/// All arguments but module and name: device type and number, then number, repeat, min_repeat_ms,
/// limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown, cache_flush_bytes.
const USUAL: [i64; 9] = [1, 0, 5, 3, 0, 100, 0, 1, 0];

fn arguments(
    module: Value<'static>,
    name: &'static str,
    integers: [i64; 9],
    before: &'static str,
) -> Vec<Value<'static>> {
    let integers = integers.map(Value::Int);
    [module, Value::from(name)]
        .into_iter()
        .chain(integers)
        .chain([Value::from(before)])
        .collect()
}

#[bisync]
async fn evaluate(
    client: &mut Client,
    args: &[Value<'_>],
    of: &[Value<'_>],
) -> Result<Vec<f64>, Exception> {
    let Value::Function(evaluator) = value(client.call_named(EVALUATOR, args).await?) else {
        panic!("expected a function");
    };
    let costs = client.call(evaluator, of).await;
    client.session.free(evaluator).await.unwrap();
    let Value::Bytes(costs) = value(costs?) else {
        panic!("expected bytes");
    };
    let (costs, rest) = costs.as_chunks();
    assert!(rest.is_empty());
    Ok(costs.iter().map(|cost| f64::from_le_bytes(*cost)).collect())
}

#[bisync]
#[twin_test]
async fn functions_run_as_often_as_was_asked() {
    let (functions, counts) = counted();
    let mut client = Client::new(&functions);
    let args = arguments(Value::None, "work", USUAL, "");
    let costs = evaluate(&mut client, &args, &[Value::Bool(false)])
        .await
        .unwrap();
    assert_eq!(costs.len(), 3);
    assert!(costs.iter().all(|cost| *cost >= 0.0));
    // One more to begin with.
    assert_eq!(counts[0].swap(0, Ordering::Relaxed), 16);
    assert_eq!(counts[1].load(Ordering::Relaxed), 0);

    let module = value(client.call_named("module", &[]).await.unwrap());
    let mut integers = USUAL;
    integers[6..].copy_from_slice(&[1, 2, 1 << 16]);
    let args = arguments(module, "f", integers, "before");
    let costs = evaluate(&mut client, &args, &[Value::Bool(false)])
        .await
        .unwrap();
    assert_eq!(costs.len(), 3);
    assert_eq!(counts[0].load(Ordering::Relaxed), 16);
    assert_eq!(counts[1].load(Ordering::Relaxed), 3);
}

#[bisync]
#[twin_test]
async fn a_measurement_that_is_too_short_is_done_again() {
    let (functions, counts) = counted();
    let mut client = Client::new(&functions);
    let mut integers = USUAL;
    integers[2..5].copy_from_slice(&[1, 2, 5]);
    let args = arguments(Value::None, "work", integers, "");
    let costs = evaluate(&mut client, &args, &[Value::Bool(false)])
        .await
        .unwrap();
    assert_eq!(costs.len(), 2);
    // Two runs alone do not take ten milliseconds.
    assert!(counts[0].load(Ordering::Relaxed) > 3);
}

#[bisync]
#[twin_test]
async fn what_the_function_raises_is_raised() {
    let (functions, _) = counted();
    let mut client = Client::new(&functions);
    let args = arguments(Value::None, "work", USUAL, "");
    refused(
        evaluate(&mut client, &args, &[Value::Bool(true)]).await,
        &["it failed"],
    );
    refused(
        evaluate(&mut client, &args, &[]).await,
        &["work: expected 1 argument, found 0"],
    );
}

#[bisync]
#[twin_test]
async fn nonsense_is_refused_before_anything_runs() {
    let (functions, counts) = counted();
    let mut client = Client::new(&functions);
    const INT: i64 = i32::MAX as i64;
    for (index, value, name) in [
        (0, 2, "device type 2"),
        (0, i64::MAX, "argument #2"),
        (1, i64::MIN, "argument #3"),
        (2, 0, "number"),
        (2, -1, "number"),
        (2, INT + 1, "number"),
        (3, 0, "repeat"),
        (3, INT, "repeat"),
        (4, -1, "min_repeat_ms"),
        (4, INT + 1, "min_repeat_ms"),
        (5, -1, "limit_zero_time_iterations"),
        (6, -1, "cooldown_interval_ms"),
        (6, INT + 1, "cooldown_interval_ms"),
        (7, 0, "repeats_to_cooldown"),
        (8, -1, "cache_flush_bytes"),
        (8, (256 << 20) + 1, "cache_flush_bytes"),
    ] {
        let mut integers = USUAL;
        integers[index] = value;
        let args = arguments(Value::None, "work", integers, "");
        refused(client.call_named(EVALUATOR, &args).await, &[name]);
    }
    let args = arguments(Value::None, "play", USUAL, "");
    refused(
        client.call_named(EVALUATOR, &args).await,
        &["no function \"play\""],
    );
    let args = arguments(Value::None, "work", USUAL, "play");
    refused(
        client.call_named(EVALUATOR, &args).await,
        &["no function \"play\""],
    );
    let module = value(client.call_named("module", &[]).await.unwrap());
    let args = arguments(module, "work", USUAL, "");
    refused(
        client.call_named(EVALUATOR, &args).await,
        &["no function \"work\""],
    );
    let args = &arguments(Value::None, "work", USUAL, "")[..11];
    refused(client.call_named(EVALUATOR, args).await, &["12 arguments"]);
    assert_eq!(counts[0].load(Ordering::Relaxed), 0);
}
