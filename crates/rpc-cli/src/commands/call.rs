use std::fs;

use anyhow::{Context, Result};
use rpc_proto::OwnedValue;
use rpc_session::blocking::Argument;
use serde::Serialize;

use crate::args::PeerArgs;
use crate::scalar::{self, ScalarError};
use crate::value::ReturnedValue;
use crate::{open, stdio};

/// Call a function of a server by its name, and print what it returns
///
/// Arguments are none, true, false, integers, floats, device:cpu:0, dtype:float32, @FILE for the
/// bytes in a file, and text: "in quotes" as in JSON, or any other word as it is. Arguments that
/// start with a dash and are no numbers follow a `--`.
///
/// Bytes are printed as text if they are some, else as hexadecimal digits.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The function
    name: String,
    /// Its arguments
    #[arg(value_name = "ARG", value_parser = parse, allow_negative_numbers = true)]
    args: Vec<CallArg>,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    peer: PeerArgs,
}

#[derive(Debug, Clone, PartialEq)]
enum CallArg {
    Value(OwnedValue),
    /// The bytes in this file.
    File(String),
}

#[derive(Serialize)]
struct Document<'a> {
    server: &'a str,
    function: &'a str,
    result: ReturnedValue,
}

fn parse(text: &str) -> Result<CallArg, ScalarError> {
    if let Some(path) = text.strip_prefix('@') {
        return Ok(CallArg::File(path.to_owned()));
    }
    let value = scalar::parse(text)?;
    Ok(CallArg::Value(
        value.unwrap_or_else(|| text.to_owned().into()),
    ))
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    // Before a device is taken.
    let values = arguments
        .args
        .iter()
        .map(value)
        .collect::<Result<Vec<_>>>()?;
    let args: Vec<_> = values
        .iter()
        .map(|value| Argument::Value(value.as_borrowed()))
        .collect();

    let session = open::open(&arguments.peer)?;
    let output = session.function(&arguments.name)?.call(&args)?;
    let result = ReturnedValue::of(output)?;
    if !arguments.json {
        return stdio::print(&format!("{result}\n"));
    }
    stdio::print_json(&Document {
        server: session.peer(),
        function: &arguments.name,
        result,
    })
}

fn value(arg: &CallArg) -> Result<OwnedValue> {
    match arg {
        CallArg::Value(value) => Ok(value.clone()),
        CallArg::File(path) => {
            let bytes = fs::read(path).with_context(|| path.clone())?;
            Ok(bytes.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_texts() {
        for (text, expected) in [
            ("word", CallArg::Value("word".into())),
            ("cpu:0", CallArg::Value("cpu:0".into())),
            ("", CallArg::Value("".into())),
            ("\"5\"", CallArg::Value("5".into())),
            ("5", CallArg::Value(5_i64.into())),
            ("@a.bin", CallArg::File("a.bin".to_owned())),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
        assert!(parse("\"open").is_err());
    }
}
