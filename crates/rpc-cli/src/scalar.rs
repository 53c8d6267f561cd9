//! The grammar of plain values on the command line.
//!
//! | text | value |
//! | --- | --- |
//! | `none` | nothing |
//! | `true`, `false` | a bool |
//! | `5`, `-3` | an integer of 64 bits |
//! | `1.5`, `1e3`, `inf`, `nan` | a float |
//! | `"text"` | text, with the escapes of JSON |
//! | `device:cuda:1` | a device |
//! | `dtype:float32` | a data type |

use rpc_proto::{DataType, Device, OwnedValue};

/// A text that looks like a value, but is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ScalarError(String);

/// Reads a plain value; `None` if `text` does not look like one.
pub(crate) fn parse(text: &str) -> Result<Option<OwnedValue>, ScalarError> {
    let value = match text {
        "none" => ().into(),
        "true" => true.into(),
        "false" => false.into(),
        _ if text.starts_with('"') => quoted(text)?.into(),
        _ if is_integer(text) => integer(text)?.into(),
        _ => {
            if let Some(name) = text.strip_prefix("device:") {
                let device: Device = name.parse().map_err(error)?;
                device.into()
            } else if let Some(name) = text.strip_prefix("dtype:") {
                let dtype: DataType = name.parse().map_err(error)?;
                dtype.into()
            } else if let Some(float) = float(text) {
                float.into()
            } else {
                return Ok(None);
            }
        }
    };
    Ok(Some(value))
}

/// A float, or an integer as a float. Of its names, only the short ones in lower case count: others
/// are words.
pub(crate) fn float(text: &str) -> Option<f64> {
    let numeric = text.contains(|c: char| c.is_ascii_digit());
    let named = matches!(text.trim_start_matches(['+', '-']), "inf" | "nan");
    (numeric || named).then(|| text.parse().ok()).flatten()
}

/// Has `text` the form of an integer, however large?
pub(crate) fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn integer(text: &str) -> Result<i64, ScalarError> {
    text.parse()
        .map_err(|_| ScalarError(format!("{text} is no integer of 64 bits")))
}

fn quoted(text: &str) -> Result<String, ScalarError> {
    serde_json::from_str(text)
        .map_err(|error| ScalarError(format!("{text} is no text in quotes, as in JSON: {error}")))
}

fn error(error: impl std::error::Error) -> ScalarError {
    ScalarError(error.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rpc_proto::Value;

    use super::*;

    #[test]
    fn reads_each_kind() {
        for (text, value) in [
            ("none", Value::None),
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
            ("5", Value::Int(5)),
            ("-3", Value::Int(-3)),
            ("9223372036854775807", Value::Int(i64::MAX)),
            ("-9223372036854775808", Value::Int(i64::MIN)),
            ("1.5", Value::Float(1.5)),
            ("1e3", Value::Float(1000.0)),
            ("-inf", Value::Float(f64::NEG_INFINITY)),
            (r#""""#, Value::from("")),
            (r#""5""#, Value::from("5")),
            (r#""a\n\u00fc""#, Value::from("a\nü")),
            ("device:cpu:0", Value::Device(Device::cpu(0))),
            ("dtype:float32", Value::DataType(DataType::FLOAT32)),
        ] {
            assert_eq!(parse(text), Ok(Some(value)), "{text}");
        }
    }

    #[test]
    fn words_are_left_to_the_caller() {
        for text in [
            "", "word", "-", "cpu:0", "float32", "infinity", "NaN", "None", "e5", "1 2",
        ] {
            assert_eq!(parse(text), Ok(None), "{text}");
        }
    }

    #[test]
    fn broken_values_are_errors_and_no_words() {
        for (text, hint) in [
            ("9223372036854775808", "64 bits"),
            (r#""open"#, "in quotes"),
            (r#""a" b"#, "in quotes"),
            ("device:gpus", "not a device"),
            ("dtype:flat32", "not a data type"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(hint), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn integers_and_texts_survive(number: i64, text: String) {
            prop_assert_eq!(parse(&number.to_string()), Ok(Some(Value::Int(number))));
            let quoted = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(parse(&quoted), Ok(Some(Value::from(text))));
        }

        #[test]
        fn floats_survive(number: f64) {
            // With a point or an exponent, so that none reads as an integer.
            prop_assert_eq!(parse(&format!("{number:?}")), Ok(Some(Value::Float(number))));
        }

        #[test]
        fn no_text_panics(text in ".*") {
            let _ = parse(&text);
        }
    }
}
