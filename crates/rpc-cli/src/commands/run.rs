use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use rpc_proto::{Device, OwnedValue};
use rpc_session::TimeEvaluatorOptions;
use rpc_session::blocking::{Argument, Module, Output, RemoteDevice, RemoteSession, Tensor};

use crate::args::PeerArgs;
use crate::argspec::{ArgSpec, ArgSpecError, OutSpec, Target};
use crate::report::{ArgReport, ModuleReport, OutputReport, RunReport, TensorType, TimingReport};
use crate::tensor::LocalTensor;
use crate::usage::wrong_usage;
use crate::value::{ReturnedValue, TensorSummary};
use crate::{npy, open, progress, stdio, timespec};

/// Run a function of a compiled module on a device, and time it
///
/// The arguments of the function are given in their order, one --arg for each:
///
///   float32[2,3]=SOURCE   a tensor; SOURCE is random, zeros, ones, arange, a number
///                         or @FILE.npy
///   @FILE.npy             a tensor, type and shape as in the file
///   5, 1.5, true, none, "text", device:cpu:0, dtype:float32
///
/// Random floats are from 0 up to 1, random integers from 0 to 127.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The module: a shared library, or what the server can link to one (.tar, .o)
    lib: PathBuf,
    #[command(flatten)]
    job: Job,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    peer: PeerArgs,
}

/// What to do with a module.
#[derive(Debug, clap::Args)]
pub(super) struct Job {
    /// The function of the module
    #[arg(long, value_name = "NAME", default_value = "main")]
    func: String,
    /// The device to run on
    #[arg(long, value_name = "KIND:ID", default_value = "cpu:0")]
    device: Device,
    /// An argument of the function, see above
    #[arg(long = "arg", value_name = "ARG", allow_negative_numbers = true)]
    args: Vec<GivenArg>,
    /// Write argument I (from 0) to a file after the call; with ret, what the function returns
    #[arg(long = "out", value_name = "I=FILE.npy")]
    outs: Vec<OutSpec>,
    /// Time it: number=10,repeat=3,min-repeat-ms=0,cooldown-ms=0,cache-flush-bytes=0
    #[arg(long, value_name = "KEY=N,...", value_parser = timespec::parse)]
    pub(super) time: Option<TimeEvaluatorOptions>,
    /// What random numbers start from: the same seed gives the same numbers
    #[arg(long, value_name = "N", default_value = "0")]
    seed: u64,
}

/// An argument, with the text that it was read from.
#[derive(Debug, Clone)]
struct GivenArg {
    text: String,
    spec: ArgSpec,
}

impl FromStr for GivenArg {
    type Err = ArgSpecError;

    fn from_str(text: &str) -> Result<Self, ArgSpecError> {
        Ok(Self {
            text: text.to_owned(),
            spec: text.parse()?,
        })
    }
}

/// An argument on this side, ready to be sent.
enum LocalArg {
    Scalar(OwnedValue),
    Tensor(LocalTensor),
}

/// An argument on the server's side.
enum RemoteArg<'a> {
    Scalar(&'a OwnedValue),
    Tensor(Tensor),
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let prepared = arguments.job.prepare(&arguments.lib)?;
    let session = open::open(&arguments.peer)?;
    let report = prepared.run(&session, arguments.job.time.as_ref())?;
    match arguments.json {
        true => stdio::print_json(&report),
        false => stdio::print(&report.to_string()),
    }
}

/// A job whose files and arguments are there.
pub(super) struct Prepared<'a> {
    lib: &'a Path,
    bytes: u64,
    job: &'a Job,
    local: Vec<LocalArg>,
}

impl Job {
    /// Does whatever can go wrong without a device, before one is taken.
    pub(super) fn prepare<'a>(&'a self, lib: &'a Path) -> Result<Prepared<'a>> {
        let bytes = super::file_bytes(lib)?;
        let local = local_args(self)?;
        check_outs(&self.outs, &local)?;
        Ok(Prepared {
            lib,
            bytes,
            job: self,
            local,
        })
    }
}

impl Prepared<'_> {
    /// Does it, and times it where it is said how.
    pub(super) fn run(
        &self,
        session: &RemoteSession,
        time: Option<&TimeEvaluatorOptions>,
    ) -> Result<RunReport> {
        let (job, local) = (self.job, &self.local);
        let device = session.device(job.device);
        let exists = device.exists()?;
        ensure!(exists, "{} has no device {}", session.peer(), job.device);
        let (module, upload_seconds) = load(session, self.lib)?;
        let name = &job.func;
        let function = module.get_function(name)?.with_context(|| {
            format!(
                "{} has no function {name:?}; name one that it has with --func",
                self.lib.display()
            )
        })?;
        let remote = send_args(local, &device)?;
        let args: Vec<_> = remote.iter().map(RemoteArg::as_argument).collect();

        let output = function.call(&args)?;
        let outputs = outputs(&job.outs, &remote, &output)?;
        let timing = |options| -> Result<_> {
            let evaluator = module.time_evaluator(name, job.device, options)?;
            Ok(TimingReport::new(options, &evaluator.run(&args)?))
        };
        Ok(RunReport {
            server: session.peer().to_owned(),
            device: job.device.to_string(),
            module: ModuleReport {
                file: self.lib.display().to_string(),
                bytes: self.bytes,
                upload_seconds,
            },
            function: name.clone(),
            args: job.args.iter().zip(local).map(arg_report).collect(),
            result: ReturnedValue::of(output)?,
            outputs,
            timing: time.map(timing).transpose()?,
        })
    }
}

fn local_args(job: &Job) -> Result<Vec<LocalArg>> {
    let mut rng = fastrand::Rng::with_seed(job.seed);
    let mut local = |given: &GivenArg| {
        let tensor = match &given.spec {
            ArgSpec::Scalar(value) => return Ok(LocalArg::Scalar(value.clone())),
            ArgSpec::File(path) => npy::read(path),
            ArgSpec::Tensor {
                dtype,
                shape,
                source,
            } => LocalTensor::make(*dtype, shape, source, &mut rng),
        };
        let tensor = tensor.with_context(|| format!("--arg {}", given.text))?;
        Ok(LocalArg::Tensor(tensor))
    };
    job.args.iter().map(&mut local).collect()
}

fn check_outs(outs: &[OutSpec], args: &[LocalArg]) -> Result<()> {
    for out in outs {
        let Target::Argument(index) = out.target else {
            continue;
        };
        match args.get(index) {
            Some(LocalArg::Tensor(tensor)) => npy::check(tensor.dtype)?,
            Some(LocalArg::Scalar(_)) => {
                return Err(wrong_usage(format!("--out: argument {index} is no tensor")));
            }
            None => {
                return Err(wrong_usage(format!(
                    "--out: there is no argument {index}, they are counted from 0"
                )));
            }
        }
    }
    Ok(())
}

/// Sends the module and loads it; also how long sending took, in seconds.
fn load(session: &RemoteSession, lib: &Path) -> Result<(Module, f64)> {
    let start = Instant::now();
    let title = lib.display().to_string();
    let name = progress::with_bar(&title, |progress| {
        session.files().upload_file(lib, progress)
    })?;
    let seconds = start.elapsed().as_secs_f64();
    let module = session
        .load_module(&name)
        .with_context(|| format!("{title} cannot be loaded"))?;
    Ok((module, seconds))
}

fn send_args<'a>(args: &'a [LocalArg], device: &RemoteDevice) -> Result<Vec<RemoteArg<'a>>> {
    let send = |arg: &'a LocalArg| {
        Ok(match arg {
            LocalArg::Scalar(value) => RemoteArg::Scalar(value),
            LocalArg::Tensor(tensor) => RemoteArg::Tensor(tensor.send(device)?),
        })
    };
    args.iter().map(send).collect()
}

impl RemoteArg<'_> {
    fn as_argument(&self) -> Argument<'_> {
        match self {
            Self::Scalar(value) => Argument::Value(value.as_borrowed()),
            Self::Tensor(tensor) => tensor.into(),
        }
    }
}

/// The tensors that were asked for, written to their files; if none was, a look at the last tensor
/// among the arguments, where compiled functions put their result.
fn outputs(outs: &[OutSpec], args: &[RemoteArg<'_>], output: &Output) -> Result<Vec<OutputReport>> {
    if !outs.is_empty() {
        return outs.iter().map(|out| write(out, args, output)).collect();
    }
    let tensors = args.iter().enumerate().rev();
    let mut tensors = tensors.filter_map(|(index, arg)| match arg {
        RemoteArg::Tensor(tensor) => Some((index, tensor)),
        RemoteArg::Scalar(_) => None,
    });
    let look = |(index, tensor)| {
        Ok(OutputReport {
            target: Target::Argument(index),
            tensor: TensorSummary::look_at(tensor)?,
            file: None,
        })
    };
    tensors.next().map(look).into_iter().collect()
}

fn write(out: &OutSpec, args: &[RemoteArg<'_>], output: &Output) -> Result<OutputReport> {
    let tensor = match (out.target, output) {
        (Target::Returned, Output::Tensor(tensor)) => tensor,
        (Target::Returned, other) => {
            anyhow::bail!("--out: the function returns {}, no tensor", other.kind())
        }
        (Target::Argument(index), _) => match args.get(index) {
            Some(RemoteArg::Tensor(tensor)) => tensor,
            _ => anyhow::bail!("--out: argument {index} is no tensor"),
        },
    };
    let tensor = LocalTensor::fetch(tensor)?;
    npy::write(&out.file, &tensor)?;
    Ok(OutputReport {
        target: out.target,
        tensor: TensorSummary::of(&tensor),
        file: Some(out.file.display().to_string()),
    })
}

fn arg_report((given, local): (&GivenArg, &LocalArg)) -> ArgReport {
    ArgReport {
        text: given.text.clone(),
        tensor: match local {
            LocalArg::Scalar(_) => None,
            LocalArg::Tensor(tensor) => Some(TensorType {
                dtype: tensor.dtype.to_string(),
                shape: tensor.shape.clone(),
            }),
        },
    }
}
