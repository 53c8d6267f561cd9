//! The grammar of `--time`: `KEY=NUMBER,…`.

use std::time::Duration;

use rpc_session::TimeEvaluatorOptions;

/// The keys, as the error names them.
const KEYS: &str = "number, repeat, min-repeat-ms, cooldown-ms, cache-flush-bytes";

/// A text that is no list of options.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum TimeSpecError {
    #[error("expected KEY=NUMBER,… like number=10,repeat=3, found {found:?}")]
    NoPair { found: String },
    #[error("{key:?} is none of the keys {KEYS}")]
    UnknownKey { key: String },
    #[error("{key} is a whole number from {least} on, not {found:?}")]
    Number {
        key: String,
        least: u32,
        found: String,
    },
}

/// Reads the options of a time evaluator; what is not named is as the reference has it.
pub(crate) fn parse(text: &str) -> Result<TimeEvaluatorOptions, TimeSpecError> {
    let mut options = TimeEvaluatorOptions::default();
    for pair in text.split(',') {
        let (key, number) = pair
            .trim()
            .split_once('=')
            .ok_or_else(|| TimeSpecError::NoPair {
                found: pair.to_owned(),
            })?;
        let at_least = |least| match number.parse() {
            Ok(number) if number >= least => Ok(number),
            _ => Err(TimeSpecError::Number {
                key: key.to_owned(),
                least,
                found: number.to_owned(),
            }),
        };
        let millis = |number: u32| Duration::from_millis(number.into());
        options = match key {
            "number" => options.with_number(at_least(1)?),
            "repeat" => options.with_repeat(at_least(1)?),
            "min-repeat-ms" => options.with_min_repeat(millis(at_least(0)?)),
            "cooldown-ms" => options.with_cooldown_interval(millis(at_least(0)?)),
            "cache-flush-bytes" => options.with_cache_flush_bytes(at_least(0)?),
            _ => {
                return Err(TimeSpecError::UnknownKey {
                    key: key.to_owned(),
                });
            }
        };
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_each_key() {
        let expected = TimeEvaluatorOptions::default()
            .with_number(3)
            .with_repeat(2)
            .with_min_repeat(Duration::from_millis(7))
            .with_cooldown_interval(Duration::from_millis(5))
            .with_cache_flush_bytes(64);
        let text = "number=3,repeat=2, min-repeat-ms=7,cooldown-ms=5,cache-flush-bytes=64";
        assert_eq!(parse(text), Ok(expected));
        let expected = TimeEvaluatorOptions::default().with_repeat(9);
        assert_eq!(parse("repeat=9"), Ok(expected));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, hint) in [
            ("", "expected KEY=NUMBER"),
            ("number", "expected KEY=NUMBER"),
            ("number=1,", "expected KEY=NUMBER"),
            (
                "numbers=1",
                "\"numbers\" is none of the keys number, repeat",
            ),
            ("number=0", "number is a whole number from 1 on, not \"0\""),
            (
                "repeat=-1",
                "repeat is a whole number from 1 on, not \"-1\"",
            ),
            (
                "min-repeat-ms=0.5",
                "min-repeat-ms is a whole number from 0 on",
            ),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(hint), "{text}: {error}");
        }
    }
}
