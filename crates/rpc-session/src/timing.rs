use std::fmt;
use std::time::Duration;

use rpc_proto::Device;

use crate::SessionError;

/// How a function is timed. The names and defaults are those of the reference.
///
/// The function runs `number` times in a row, that is one measurement; there are `repeat` of them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimeEvaluatorOptions {
    /// Runs that one measurement averages over, at least 1; default 10.
    pub number: u32,
    /// Measurements, at least 1; default 1.
    pub repeat: u32,
    /// A measurement shorter than this is done again with more runs; default 0. Whole milliseconds.
    pub min_repeat: Duration,
    /// How often a measurement of no time at all is done again; default 100.
    pub limit_zero_time_iterations: u32,
    /// A pause after every [`TimeEvaluatorOptions::repeats_to_cooldown`] measurements; default 0. Whole
    /// milliseconds.
    pub cooldown_interval: Duration,
    /// Measurements between two pauses, at least 1; default 1.
    pub repeats_to_cooldown: u32,
    /// Bytes that are written between measurements to empty the caches; default 0.
    pub cache_flush_bytes: u32,
    /// A function of the server that runs before each measurement; default none.
    pub preprocess: Option<String>,
}

impl Default for TimeEvaluatorOptions {
    fn default() -> Self {
        Self {
            number: 10,
            repeat: 1,
            min_repeat: Duration::ZERO,
            limit_zero_time_iterations: 100,
            cooldown_interval: Duration::ZERO,
            repeats_to_cooldown: 1,
            cache_flush_bytes: 0,
            preprocess: None,
        }
    }
}

impl TimeEvaluatorOptions {
    /// Replaces [`TimeEvaluatorOptions::number`].
    #[must_use]
    pub fn with_number(mut self, runs: u32) -> Self {
        self.number = runs;
        self
    }

    /// Replaces [`TimeEvaluatorOptions::repeat`].
    #[must_use]
    pub fn with_repeat(mut self, measurements: u32) -> Self {
        self.repeat = measurements;
        self
    }

    /// Replaces [`TimeEvaluatorOptions::min_repeat`].
    #[must_use]
    pub fn with_min_repeat(mut self, time: Duration) -> Self {
        self.min_repeat = time;
        self
    }

    /// Replaces [`TimeEvaluatorOptions::limit_zero_time_iterations`].
    #[must_use]
    pub fn with_limit_zero_time_iterations(mut self, times: u32) -> Self {
        self.limit_zero_time_iterations = times;
        self
    }

    /// Replaces [`TimeEvaluatorOptions::cooldown_interval`].
    #[must_use]
    pub fn with_cooldown_interval(mut self, pause: Duration) -> Self {
        self.cooldown_interval = pause;
        self
    }

    /// Replaces [`TimeEvaluatorOptions::repeats_to_cooldown`].
    #[must_use]
    pub fn with_repeats_to_cooldown(mut self, measurements: u32) -> Self {
        self.repeats_to_cooldown = measurements;
        self
    }

    /// Replaces [`TimeEvaluatorOptions::cache_flush_bytes`].
    #[must_use]
    pub fn with_cache_flush_bytes(mut self, bytes: u32) -> Self {
        self.cache_flush_bytes = bytes;
        self
    }

    /// Replaces [`TimeEvaluatorOptions::preprocess`].
    #[must_use]
    pub fn with_preprocess(mut self, function: impl Into<String>) -> Self {
        self.preprocess = Some(function.into());
        self
    }

    /// The integers that the server's evaluator takes, behind module and name.
    pub(crate) fn integers(&self, device: Device) -> Result<[i64; 9], SessionError> {
        for (name, value) in [
            ("number", self.number),
            ("repeat", self.repeat),
            ("repeats_to_cooldown", self.repeats_to_cooldown),
        ] {
            if value == 0 {
                return Err(SessionError::BadOption(format!(
                    "{name} of a time evaluator is at least 1, not 0"
                )));
            }
        }
        // The reference takes integers of 32 bits with a sign, and computes with whatever becomes of
        // larger ones.
        let integer = |name: &str, value: u32| {
            i32::try_from(value).map(i64::from).map_err(|_| {
                SessionError::BadOption(format!(
                    "{name} of a time evaluator is at most {}, not {value}",
                    i32::MAX
                ))
            })
        };
        let millis = |name: &str, time: Duration| {
            i32::try_from(time.as_millis()).map(i64::from).map_err(|_| {
                SessionError::BadOption(format!(
                    "{name} of a time evaluator is at most 24 days, not {time:?}"
                ))
            })
        };
        Ok([
            device.device_type.0.into(),
            device.id.into(),
            integer("number", self.number)?,
            integer("repeat", self.repeat)?,
            millis("min_repeat", self.min_repeat)?,
            integer(
                "limit_zero_time_iterations",
                self.limit_zero_time_iterations,
            )?,
            millis("cooldown_interval", self.cooldown_interval)?,
            integer("repeats_to_cooldown", self.repeats_to_cooldown)?,
            integer("cache_flush_bytes", self.cache_flush_bytes)?,
        ])
    }
}

/// How long a function took: one cost for each measurement, in seconds for one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Timing {
    costs: Vec<f64>,
}

impl Timing {
    /// Reads the evaluator's answer: for each measurement the seconds of one run, 8 bytes each.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, SessionError> {
        let (costs, rest) = bytes.as_chunks();
        if costs.is_empty() || !rest.is_empty() {
            return Err(SessionError::WrongType {
                expected: "8 bytes for each measurement",
                found: "bytes of another length",
            });
        }
        Ok(Self {
            costs: costs.iter().map(|cost| f64::from_le_bytes(*cost)).collect(),
        })
    }

    /// Seconds of one run, for each measurement.
    #[must_use]
    pub fn costs(&self) -> &[f64] {
        &self.costs
    }

    /// Mean of the costs, in seconds.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.costs.iter().sum::<f64>() / self.count()
    }

    /// Median of the costs, in seconds; the mean of the middle two if there is no middle.
    #[must_use]
    pub fn median(&self) -> f64 {
        let mut sorted = self.costs.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        }
    }

    /// Smallest cost, in seconds.
    #[must_use]
    pub fn min(&self) -> f64 {
        self.costs.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Largest cost, in seconds.
    #[must_use]
    pub fn max(&self) -> f64 {
        self.costs.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// Standard deviation of the costs, in seconds (of all of them, not estimated from a sample).
    #[must_use]
    pub fn std(&self) -> f64 {
        let mean = self.mean();
        let squares = self.costs.iter().map(|cost| (cost - mean).powi(2));
        (squares.sum::<f64>() / self.count()).sqrt()
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "a count of measurements is far below 2^52"
    )]
    fn count(&self) -> f64 {
        self.costs.len() as f64
    }
}

impl fmt::Display for Timing {
    /// One line, in milliseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [mean, median, min, max, std] = [
            self.mean(),
            self.median(),
            self.min(),
            self.max(),
            self.std(),
        ]
        .map(|s| s * 1e3);
        write!(
            f,
            "mean {mean:.4} ms, median {median:.4} ms, min {min:.4} ms, max {max:.4} ms, std {std:.4} ms"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(costs: &[f64]) -> Timing {
        let bytes: Vec<u8> = costs.iter().flat_map(|cost| cost.to_le_bytes()).collect();
        Timing::from_bytes(&bytes).unwrap()
    }

    #[test]
    fn statistics_are_those_of_the_reference() {
        // numpy's mean, median and std of [1, 2, 4, 9].
        let timing = timing(&[4.0, 1.0, 9.0, 2.0]);
        assert_eq!((timing.mean(), timing.median()), (4.0, 3.0));
        assert_eq!((timing.min(), timing.max()), (1.0, 9.0));
        assert!((timing.std() - 3.082_207_001_484_488).abs() < 1e-12);
    }

    #[test]
    fn an_answer_of_another_length_is_refused() {
        for bytes in [&[][..], &[0; 7], &[0; 12]] {
            assert!(Timing::from_bytes(bytes).is_err());
        }
    }

    #[test]
    fn the_integers_stand_in_the_order_of_the_evaluator() {
        let options = TimeEvaluatorOptions::default()
            .with_number(3)
            .with_repeat(2)
            .with_min_repeat(Duration::from_millis(7))
            .with_cooldown_interval(Duration::from_millis(5))
            .with_repeats_to_cooldown(4)
            .with_cache_flush_bytes(64);
        let integers = options.integers(Device::cpu(0)).unwrap();
        assert_eq!(integers, [1, 0, 3, 2, 7, 100, 5, 4, 64]);
        assert!(
            TimeEvaluatorOptions::default()
                .with_number(0)
                .integers(Device::cpu(0))
                .is_err()
        );
    }
}
