//! The script of the conformance suite for clients (`docs/client-script.md`), for both of our clients.
//!
//! ```text
//! conformance_client --blocking|--async TRACKER KEY
//! ```
#![forbid(unsafe_code)]
// The script belongs to both twins.
#![allow(clippy::duplicate_mod)]

use std::env;
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use rpc_session::{SessionConstructor, SessionError, SessionOptions};
use rpc_tracker_client::RequestOptions;
use serde_json::{Value, json};

#[path = "."]
mod asynchronous {
    use rpc_bisync::as_is as bisync;
    use rpc_session::asynchronous::{Output, RemoteSession};
    use rpc_tracker_client::asynchronous::TrackerClient;

    pub(crate) mod script;
}

#[path = "."]
mod blocking {
    use rpc_bisync::blocking as bisync;
    use rpc_session::blocking::{Output, RemoteSession};
    use rpc_tracker_client::blocking::TrackerClient;

    pub(crate) mod script;
}

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    let words: Vec<_> = env::args().skip(1).collect();
    let [twin, tracker, key] = words.as_slice() else {
        eprintln!("usage: conformance_client --blocking|--async TRACKER KEY");
        return ExitCode::from(2);
    };
    let script = Script {
        tracker: tracker.clone(),
        key: key.clone(),
    };
    let done = if twin == "--async" {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        match runtime {
            Ok(runtime) => runtime.block_on(asynchronous::script::run(&script)),
            Err(error) => {
                eprintln!("no runtime: {error}");
                false
            }
        }
    } else {
        blocking::script::run(&script)
    };
    if done {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// What is to be done, from the command line and the environment.
struct Script {
    tracker: String,
    key: String,
}

fn option(name: &str) -> Option<String> {
    env::var(format!("TVM_RPC_CASE_{name}")).ok()
}

impl Script {
    fn steps() -> Vec<String> {
        let steps = option("STEPS").unwrap_or_else(|| "call,tensor,missing,fail".to_owned());
        let steps = steps.split(',').filter(|step| !step.is_empty());
        let steps = ["session"].into_iter().chain(steps).chain(["end"]);
        steps.map(str::to_owned).collect()
    }

    fn request(&self) -> Result<RequestOptions, Failure> {
        let mut request = RequestOptions::new(&self.key);
        if let Some(priority) = option("PRIORITY") {
            request = request.with_priority(priority.parse::<i32>()?);
        }
        if let Some(tries) = option("TRIES") {
            request = request.with_max_tries(tries.parse()?);
        }
        if let Some(seconds) = option("SESSION_TIMEOUT") {
            let limit = Duration::try_from_secs_f64(seconds.parse()?)?;
            request = request.with_session_timeout(limit);
        }
        Ok(request)
    }

    fn session() -> Result<SessionOptions, Failure> {
        let options = SessionOptions::default();
        let Some(constructor) = option("CONSTRUCTOR") else {
            return Ok(options);
        };
        let values: Vec<Value> = serde_json::from_str(&constructor)?;
        let name = values.first().and_then(Value::as_str).unwrap_or_default();
        let named = SessionConstructor::named(name);
        let constructor = values
            .iter()
            .skip(1)
            .fold(named, |made, value| match value {
                Value::Bool(value) => made.arg(*value),
                Value::String(text) => made.arg(text.clone()),
                Value::Number(number) if number.is_f64() => {
                    made.arg(number.as_f64().unwrap_or(0.0))
                }
                Value::Number(number) => made.arg(number.as_i64().unwrap_or(0)),
                _ => made.arg(()),
            });
        Ok(options.with_constructor(constructor))
    }

    fn elements() -> Result<Vec<f32>, Failure> {
        let count = option("ELEMENTS").map_or(Ok(6), |count| count.parse::<u16>())?;
        Ok((0..count).map(f32::from).collect())
    }
}

/// What the client saw in a step: further members of its line.
type Seen = Vec<(&'static str, Value)>;

fn say(step: &str, ok: bool, seen: Seen) {
    let mut line = json!({"step": step, "ok": ok});
    for (name, value) in seen {
        line[name] = value;
    }
    println!("{line}");
}

fn error_and_text(error: &(dyn Error + 'static)) -> Seen {
    let chain: Vec<_> = std::iter::successors(Some(error), |&error| error.source()).collect();
    let session = chain
        .iter()
        .find_map(|error| error.downcast_ref::<SessionError>());
    let kind = match session {
        Some(error) if error.is_session_timeout() => "timeout",
        Some(error) if error.remote().is_some() => "exception",
        _ => "other",
    };
    let text: Vec<_> = chain.iter().map(ToString::to_string).collect();
    vec![("error", kind.into()), ("text", text.join(": ").into())]
}
