//! The steps.

use rpc_proto::{DataType, Device, DeviceType};
use rpc_session::args;
use serde_json::json;

use super::{Output, RemoteSession, TrackerClient, bisync};
use crate::{Failure, Script, Seen, error_and_text, say};

/// Whether all steps went as they should.
#[bisync]
pub(crate) async fn run(script: &Script) -> bool {
    let tracker = match script.tracker.parse() {
        Ok(address) => TrackerClient::new(address),
        Err(error) => {
            say("session", false, error_and_text(&error));
            return false;
        }
    };
    let mut session = None;
    for name in Script::steps() {
        match step(script, &tracker, &mut session, &name).await {
            Ok(seen) => say(&name, true, seen),
            Err(error) => {
                say(&name, false, error_and_text(&*error));
                return false;
            }
        }
    }
    true
}

#[bisync]
async fn step(
    script: &Script,
    tracker: &TrackerClient,
    session: &mut Option<RemoteSession>,
    name: &str,
) -> Result<Seen, Failure> {
    if matches!(name, "end" | "again")
        && let Some(session) = session.take()
    {
        session.close().await;
    }
    if matches!(name, "session" | "again") {
        let made = RemoteSession::request(tracker, &script.request()?, &Script::session()?).await?;
        *session = Some(made);
    }
    let Some(session) = session else {
        return Ok(Vec::new());
    };
    match name {
        "call" => call(session).await,
        "give" => give(session).await,
        "tensor" => tensor(session).await,
        "missing" => missing(session).await,
        "fail" => fail(session).await,
        _ => Ok(Vec::new()),
    }
}

#[bisync]
async fn call(session: &RemoteSession) -> Result<Seen, Failure> {
    let echo = session.function("conformance.echo").await?;
    let nothing = echo.call(args![()]).await?;
    expect("nothing", matches!(nothing, Output::None))?;
    for value in [42, -1] {
        let found = i64::try_from(echo.call(args![value]).await?)?;
        expect("an integer", found == value)?;
    }
    for value in [true, false] {
        let found = bool::try_from(echo.call(args![value]).await?)?;
        expect("a bool", found == value)?;
    }
    let float = f64::try_from(echo.call(args![1.5]).await?)?;
    expect("a float", float.to_bits() == 1.5_f64.to_bits())?;
    for text in ["", "text", "a longer text", "é😀"] {
        let found = String::try_from(echo.call(args![text]).await?)?;
        expect("a text", found == text)?;
    }
    for bytes in [vec![], vec![0, 1, 255], (0..=255).collect()] {
        let found = Vec::<u8>::try_from(echo.call(args![&bytes]).await?)?;
        expect("bytes", found == bytes)?;
    }
    let dtype = DataType::try_from(echo.call(args![DataType::FLOAT32]).await?)?;
    expect("a data type", dtype == DataType::FLOAT32)?;
    let device = Device::new(DeviceType::CPU, 0);
    let found = Device::try_from(echo.call(args![device]).await?)?;
    expect("a device", found == device)?;
    let first = i64::try_from(echo.call(args![7, "second", 2.5]).await?)?;
    expect("the first of several", first == 7)?;
    Ok(Vec::new())
}

#[bisync]
async fn give(session: &RemoteSession) -> Result<Seen, Failure> {
    let give = session.function("conformance.give").await?;
    let (kind, value) = match give.call(args![]).await? {
        Output::None => ("none", String::new()),
        Output::Bool(value) => ("bool", value.to_string()),
        Output::Int(value) => ("int", value.to_string()),
        Output::Float(value) => ("float", value.to_string()),
        Output::Str(text) => ("str", text),
        Output::Bytes(bytes) => ("bytes", hex(&bytes)),
        Output::DataType(dtype) => ("dtype", dtype.to_string()),
        Output::Device(device) => {
            let Device { device_type, id } = device;
            ("device", format!("{}:{id}", device_type.0))
        }
        Output::Pointer(address) => ("pointer", address.to_string()),
        Output::Tensor(tensor) => {
            let sizes: Vec<_> = tensor.shape().iter().map(ToString::to_string).collect();
            ("tensor", sizes.join("x"))
        }
        Output::Function(_) => ("function", String::new()),
        Output::Module(_) => ("module", String::new()),
        _ => ("object", String::new()),
    };
    Ok(vec![("type", json!(kind)), ("value", json!(value))])
}

#[bisync]
async fn tensor(session: &RemoteSession) -> Result<Seen, Failure> {
    let there = Script::elements()?;
    let shape = [i64::try_from(there.len())?];
    let tensor = session.cpu(0).tensor(&shape, &there).await?;
    let back = tensor.to_vec::<f32>().await?;
    expect("the elements of the tensor", back == there)?;
    Ok(Vec::new())
}

#[bisync]
async fn missing(session: &RemoteSession) -> Result<Seen, Failure> {
    let found = session.get_function("conformance.missing").await?;
    expect("no function", found.is_none())?;
    Ok(Vec::new())
}

#[bisync]
async fn fail(session: &RemoteSession) -> Result<Seen, Failure> {
    let fail = session.function("conformance.fail").await?;
    match fail.call(args![]).await {
        Ok(_) => Err("the function did not fail".into()),
        Err(error) => Ok(error_and_text(&error)),
    }
}

fn expect(what: &str, holds: bool) -> Result<(), Failure> {
    if holds {
        Ok(())
    } else {
        Err(format!("expected {what}, as it was sent; something else came").into())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        use std::fmt::Write as _;
        let _ = write!(text, "{byte:02x}");
        text
    })
}
