use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, ensure};
use rpc_proto::tracker::Summary;
use rpc_session::blocking::{Module, RemoteSession, Tensor};
use rpc_session::{SessionOptions, TimeEvaluatorOptions, args};
use rpc_tracker_client::RequestOptions;
use rpc_tracker_client::blocking::TrackerClient;
use serde::Serialize;

use super::run::{Job, Prepared};
use crate::farm::{Farm, KEY};
use crate::report::{RunReport, Seconds, TimingReport};
use crate::served::{RuntimeArgs, ServedArgs};
use crate::{progress, stdio};

/// The file that is sent.
const FILE: &str = "demo.bin";
const FILE_BYTES: usize = 16 << 20;
/// The function that is called: a + b, element by element.
const FUNCTION: &str = "vadd";
const ELEMENTS: usize = 1 << 16;

/// Do the whole job on this machine alone: borrow a device, send a file, run and time a function
///
/// A tracker and a server with one device run inside this command, so that it needs nothing else. With
/// --lib a module that TVM compiled is run and timed, which needs TVM's runtime:
///
///   demo --lib vadd.so --func vadd --arg float32[1024]=random
///        --arg float32[1024]=random --arg float32[1024]=zeros
///
/// The options of the call are those of `tvm-rpc run`.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The module, in place of a function in Rust
    #[arg(long, value_name = "FILE")]
    lib: Option<PathBuf>,
    #[command(flatten)]
    job: Job,
    /// Print a JSON document at the end, instead of each step as it happens
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    runtime: RuntimeArgs,
}

/// What was done. As JSON, times are in seconds.
#[derive(Debug, Serialize)]
struct DemoReport {
    backend: String,
    tracker: String,
    server: String,
    key: &'static str,
    before: Summary,
    during: Summary,
    after: Summary,
    request_seconds: f64,
    file: FileReport,
    #[serde(flatten)]
    done: Done,
}

/// What was called.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Done {
    /// The function in Rust.
    Function {
        call: CallReport,
        timing: TimingReport,
    },
    /// A function of a compiled module.
    Module { run: Box<RunReport> },
}

#[derive(Debug, Serialize)]
struct FileReport {
    name: &'static str,
    bytes: usize,
    upload_seconds: f64,
    download_seconds: f64,
}

#[derive(Debug, Serialize)]
struct CallReport {
    function: &'static str,
    elements: usize,
    seconds: f64,
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let step = Steps {
        silent: arguments.json,
    };
    let (runtime, job) = match &arguments.lib {
        None => (arguments.runtime.resolve()?, None),
        Some(lib) => {
            let runtime = arguments.runtime.require("--lib")?;
            (runtime, Some(arguments.job.prepare(lib)?))
        }
    };
    let farm = Farm::start(&ServedArgs::demo(), &runtime)?;
    step.say("tracker", farm.tracker())?;
    step.say("server", format_args!("{}, {runtime}", farm.server()))?;
    let tracker = TrackerClient::new(farm.tracker().clone());
    let before = tracker.summary()?;
    step.say("queue", Farm::queue(&before))?;

    let (session, request_seconds) = timed(|| {
        let request = RequestOptions::new(KEY);
        RemoteSession::request(&tracker, &request, &SessionOptions::default())
    })?;
    let took = Seconds(request_seconds);
    step.say("session", format_args!("on {}, in {took}", session.peer()))?;
    let during = tracker.summary()?;
    step.say("queue", Farm::queue(&during))?;

    let file = exchange_file(&session)?;
    let sent = Seconds(file.upload_seconds);
    let fetched = Seconds(file.download_seconds);
    step.say(
        "file",
        format_args!("{FILE}, {FILE_BYTES} bytes, sent in {sent}, fetched in {fetched}"),
    )?;

    let done = match &job {
        Some(job) => run_module(&session, job, arguments, &step)?,
        None => call_function(&session, &step)?,
    };
    session.close();
    farm.wait_until_free()?;
    let after = tracker.summary()?;
    step.say("queue", Farm::queue(&after))?;
    if arguments.json {
        stdio::print_json(&DemoReport {
            backend: runtime.to_string(),
            tracker: farm.tracker().to_string(),
            server: farm.server().to_string(),
            key: KEY,
            before,
            during,
            after,
            request_seconds,
            file,
            done,
        })?;
    }
    Ok(())
}

/// Calls and times the function in Rust.
fn call_function(session: &RemoteSession, step: &Steps) -> Result<Done> {
    let module = session.system_lib()?;
    let (call, tensors) = call(session, &module)?;
    let took = Seconds(call.seconds);
    step.say(
        "call",
        format_args!("{FUNCTION} of {ELEMENTS} floats in {took}, right in each"),
    )?;
    let timing = time(&module, &tensors)?;
    step.print(&timing.to_string())?;
    Ok(Done::Function { call, timing })
}

/// Sends, runs and times a compiled module.
fn run_module(
    session: &RemoteSession,
    job: &Prepared<'_>,
    arguments: &Arguments,
    step: &Steps,
) -> Result<Done> {
    let often = TimeEvaluatorOptions::default().with_repeat(3);
    let time = arguments.job.time.as_ref().unwrap_or(&often);
    let run = Box::new(job.run(session, Some(time))?);
    step.print(&run.to_string())?;
    Ok(Done::Module { run })
}

/// Sends a file, fetches it again, and removes it.
fn exchange_file(session: &RemoteSession) -> Result<FileReport> {
    let mut bytes = vec![0; FILE_BYTES];
    fastrand::Rng::with_seed(1).fill(&mut bytes);
    let files = session.files();
    let ((), upload_seconds) = timed(|| {
        progress::with_bar(FILE, |progress| {
            files.upload_from(FILE, bytes.len() as u64, &mut &bytes[..], progress)
        })
    })?;
    let (fetched, download_seconds) = timed(|| files.download(FILE))?;
    ensure!(fetched == bytes, "{FILE} came back with other bytes");
    files.remove(FILE)?;
    Ok(FileReport {
        name: FILE,
        bytes: bytes.len(),
        upload_seconds,
        download_seconds,
    })
}

/// Calls the function, and compares what it gives with what is right.
fn call(session: &RemoteSession, module: &Module) -> Result<(CallReport, [Tensor; 3])> {
    let mut random = fastrand::Rng::with_seed(2);
    let mut numbers = || (0..ELEMENTS).map(|_| random.f32()).collect::<Vec<_>>();
    let (a, b) = (numbers(), numbers());
    let cpu = session.cpu(0);
    let shape = [i64::try_from(ELEMENTS)?];
    let tensors = [
        cpu.tensor(&shape, &a)?,
        cpu.tensor(&shape, &b)?,
        cpu.tensor(&shape, &vec![0.0_f32; ELEMENTS])?,
    ];
    let function = module.function(FUNCTION)?;
    let [there_a, there_b, there_sum] = &tensors;
    let (_, seconds) = timed(|| function.call(args![there_a, there_b, there_sum]))?;
    let right: Vec<_> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    let sum = there_sum.to_vec::<f32>()?;
    let wrong = sum.iter().zip(&right).filter(|(is, ought)| is != ought);
    let wrong = wrong.count();
    ensure!(wrong == 0, "{wrong} of {ELEMENTS} results are wrong");
    let report = CallReport {
        function: FUNCTION,
        elements: ELEMENTS,
        seconds,
    };
    Ok((report, tensors))
}

fn time(module: &Module, [a, b, sum]: &[Tensor; 3]) -> Result<TimingReport> {
    let options = TimeEvaluatorOptions::default().with_repeat(3);
    let evaluator = module.time_evaluator(FUNCTION, rpc_proto::Device::cpu(0), &options)?;
    let timing = evaluator.run(args![a, b, sum])?;
    Ok(TimingReport::new(&options, &timing))
}

/// Does something, and says how long it took, in seconds.
fn timed<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<(T, f64), E> {
    let start = Instant::now();
    let done = work()?;
    Ok((done, start.elapsed().as_secs_f64()))
}

/// What people see while it happens.
struct Steps {
    silent: bool,
}

impl Steps {
    fn say(&self, what: &str, text: impl std::fmt::Display) -> Result<()> {
        self.print(&format!("{what:<10} {text}\n"))
    }

    fn print(&self, text: &str) -> Result<()> {
        match self.silent {
            true => Ok(()),
            false => stdio::print(text),
        }
    }
}
