//! What `run` did, for people and as JSON.

use std::fmt;

use rpc_session::{TimeEvaluatorOptions, Timing};
use serde::Serialize;

use crate::argspec::Target;
use crate::value::{ReturnedValue, TensorSummary};

/// One run. As JSON, times are in seconds.
#[derive(Debug, Serialize)]
pub(crate) struct RunReport {
    pub(crate) server: String,
    pub(crate) device: String,
    pub(crate) module: ModuleReport,
    pub(crate) function: String,
    pub(crate) args: Vec<ArgReport>,
    pub(crate) result: ReturnedValue,
    pub(crate) outputs: Vec<OutputReport>,
    pub(crate) timing: Option<TimingReport>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ModuleReport {
    pub(crate) file: String,
    pub(crate) bytes: u64,
    pub(crate) upload_seconds: f64,
}

#[derive(Debug, Serialize)]
pub(crate) struct ArgReport {
    /// As the user gave it.
    pub(crate) text: String,
    /// What it became, if it is a tensor.
    #[serde(flatten)]
    pub(crate) tensor: Option<TensorType>,
}

#[derive(Debug, Serialize)]
pub(crate) struct TensorType {
    pub(crate) dtype: String,
    pub(crate) shape: Vec<i64>,
}

/// A tensor after the call.
#[derive(Debug, Serialize)]
pub(crate) struct OutputReport {
    #[serde(serialize_with = "as_text")]
    pub(crate) target: Target,
    #[serde(flatten)]
    pub(crate) tensor: TensorSummary,
    /// Where it was written to.
    pub(crate) file: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct TimingReport {
    number: u32,
    repeat: u32,
    mean: f64,
    median: f64,
    min: f64,
    max: f64,
    std: f64,
    costs: Vec<f64>,
}

impl TimingReport {
    pub(crate) fn new(options: &TimeEvaluatorOptions, timing: &Timing) -> Self {
        Self {
            number: options.number,
            repeat: options.repeat,
            mean: timing.mean(),
            median: timing.median(),
            min: timing.min(),
            max: timing.max(),
            std: timing.std(),
            costs: timing.costs().to_vec(),
        }
    }
}

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ModuleReport {
            file,
            bytes,
            upload_seconds,
        } = &self.module;
        writeln!(f, "server     {}", self.server)?;
        writeln!(f, "device     {}", self.device)?;
        let sent = Seconds(*upload_seconds);
        writeln!(f, "module     {file}, {bytes} bytes, sent in {sent}")?;
        writeln!(f, "function   {}", self.function)?;
        for (index, arg) in self.args.iter().enumerate() {
            write!(f, "{:<10} {}", format!("arg {index}"), arg.text)?;
            match &arg.tensor {
                // Its text says the type already, unless it is a file alone.
                Some(TensorType { dtype, shape }) if arg.text.starts_with('@') => {
                    writeln!(f, ", {dtype}{shape:?}")?;
                }
                _ => writeln!(f)?,
            }
        }
        writeln!(f, "result     {}", self.result)?;
        for OutputReport {
            target,
            tensor,
            file,
        } in &self.outputs
        {
            write!(f, "{:<10} {tensor}", format!("out {target}"))?;
            match file {
                Some(file) => writeln!(f, ", written to {file}")?,
                None => writeln!(f)?,
            }
        }
        self.timing.as_ref().map_or(Ok(()), |timing| timing.fmt(f))
    }
}

impl fmt::Display for TimingReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, repeat, .. } = self;
        let [mean, median, min, max, std] =
            [self.mean, self.median, self.min, self.max, self.std].map(Seconds);
        writeln!(f, "timing     {repeat} × {number} runs, each run took")?;
        writeln!(
            f,
            "           mean {mean}, median {median}, min {min}, max {max}, std {std}"
        )?;
        let costs: Vec<_> = self
            .costs
            .iter()
            .map(|cost| Seconds(*cost).to_string())
            .collect();
        writeln!(f, "costs      {}", costs.join(", "))
    }
}

/// A time in the unit that suits it.
pub(crate) struct Seconds(pub(crate) f64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            s if s < 1e-3 => write!(f, "{:.3} us", s * 1e6),
            s if s < 1.0 => write!(f, "{:.3} ms", s * 1e3),
            s => write!(f, "{s:.3} s"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument(index) => index.fmt(f),
            Self::Returned => f.write_str("ret"),
        }
    }
}

fn as_text<S: serde::Serializer>(target: &Target, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(target)
}

#[cfg(test)]
mod tests {
    use rpc_proto::DataType;
    use serde_json::json;

    use super::*;
    use crate::tensor::LocalTensor;

    fn report() -> RunReport {
        let sum = LocalTensor {
            dtype: DataType::INT8,
            shape: vec![2],
            bytes: vec![3, 5],
        };
        let arg = |text: &str| ArgReport {
            text: text.to_owned(),
            tensor: Some(TensorType {
                dtype: "int8".to_owned(),
                shape: vec![2],
            }),
        };
        RunReport {
            server: "127.0.0.1:9090".to_owned(),
            device: "cpu:0".to_owned(),
            module: ModuleReport {
                file: "add.so".to_owned(),
                bytes: 2048,
                upload_seconds: 0.0125,
            },
            function: "add".to_owned(),
            args: vec![
                arg("@a.npy"),
                arg("int8[2]=zeros"),
                ArgReport {
                    text: "5".to_owned(),
                    tensor: None,
                },
            ],
            result: ReturnedValue::None,
            outputs: vec![OutputReport {
                target: Target::Argument(1),
                tensor: TensorSummary::of(&sum),
                file: Some("y.npy".to_owned()),
            }],
            timing: Some(TimingReport {
                number: 10,
                repeat: 2,
                mean: 1.5e-6,
                median: 1.5e-6,
                min: 1e-6,
                max: 2e-6,
                std: 5e-7,
                costs: vec![1e-6, 2e-6],
            }),
        }
    }

    #[test]
    fn for_people() {
        let expected = "\
server     127.0.0.1:9090
device     cpu:0
module     add.so, 2048 bytes, sent in 12.500 ms
function   add
arg 0      @a.npy, int8[2]
arg 1      int8[2]=zeros
arg 2      5
result     none
out 1      int8[2] min 3 max 5 mean 4 [3 5], written to y.npy
timing     2 × 10 runs, each run took
           mean 1.500 us, median 1.500 us, min 1.000 us, max 2.000 us, std 0.500 us
costs      1.000 us, 2.000 us
";
        assert_eq!(report().to_string(), expected);
    }

    #[test]
    fn for_programs() {
        let expected = json!({
            "server": "127.0.0.1:9090",
            "device": "cpu:0",
            "module": {"file": "add.so", "bytes": 2048, "upload_seconds": 0.0125},
            "function": "add",
            "args": [
                {"text": "@a.npy", "dtype": "int8", "shape": [2]},
                {"text": "int8[2]=zeros", "dtype": "int8", "shape": [2]},
                {"text": "5"},
            ],
            "result": {"type": "none"},
            "outputs": [{
                "target": "1", "dtype": "int8", "shape": [2],
                "min": 3.0, "max": 5.0, "mean": 4.0, "first": [3, 5], "file": "y.npy",
            }],
            "timing": {
                "number": 10, "repeat": 2, "mean": 1.5e-6, "median": 1.5e-6,
                "min": 1e-6, "max": 2e-6, "std": 5e-7, "costs": [1e-6, 2e-6],
            },
        });
        assert_eq!(serde_json::to_value(report()).unwrap(), expected);
    }
}
