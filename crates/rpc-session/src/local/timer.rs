//! Times functions where they run, as the reference does.

use std::ops::RangeInclusive;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rpc_proto::DeviceType;

use super::{Arg, Exception, Functions, LocalFunction, LocalModule, LocalValue};

/// The most measurements of one evaluation.
const MOST_REPEATS: i64 = 1 << 20;
/// The most bytes that are written between measurements.
const MOST_FLUSHED: i64 = 256 << 20;

/// How one function is timed.
struct Evaluator {
    function: LocalFunction,
    preprocess: Option<LocalFunction>,
    number: u64,
    repeat: u64,
    min_repeat: Duration,
    zero_limit: u64,
    cooldown: Duration,
    repeats_to_cooldown: u64,
    flush: usize,
}

/// The function that makes time evaluators.
pub(super) fn evaluators(name: &str, functions: &Functions) -> LocalFunction {
    let functions = functions.clone();
    LocalFunction::new(
        name,
        // The order is that of the reference.
        move |module: Option<LocalModule>,
              name: &str,
              device_type: i32,
              _device: i32,
              number: i64,
              repeat: i64,
              min_repeat: i64,
              zero_limit: i64,
              cooldown: i64,
              repeats_to_cooldown: i64,
              flush: i64,
              preprocess: &str| {
            const INT: i64 = i32::MAX as i64;
            if device_type != DeviceType::CPU.0 {
                return Err(refused(format!(
                    "device type {device_type} has no timer, only cpu has one"
                )));
            }
            let function = match module {
                Some(module) => module.get_function(name, true)?,
                None => functions.get(name),
            };
            let evaluator = Evaluator {
                function: function.ok_or_else(|| refused(format!("no function {name:?}")))?,
                preprocess: match preprocess {
                    "" => None,
                    name => Some(functions.get(name).ok_or_else(|| {
                        refused(format!(
                            "no function {name:?} to run before each measurement"
                        ))
                    })?),
                },
                number: within("number", number, 1..=INT)?,
                repeat: within("repeat", repeat, 1..=MOST_REPEATS)?,
                min_repeat: millis("min_repeat_ms", min_repeat)?,
                zero_limit: within("limit_zero_time_iterations", zero_limit, 0..=INT)?,
                cooldown: millis("cooldown_interval_ms", cooldown)?,
                repeats_to_cooldown: within("repeats_to_cooldown", repeats_to_cooldown, 1..=INT)?,
                flush: within("cache_flush_bytes", flush, 0..=MOST_FLUSHED)?
                    .try_into()
                    .unwrap_or(usize::MAX),
            };
            let called = format!("time evaluator of {name}");
            Ok(LocalFunction::packed(&called, move |args| {
                evaluator.run(args)
            }))
        },
    )
}

impl Evaluator {
    /// For each measurement the seconds of one run, 8 bytes each.
    fn run(&self, args: &[Arg<'_>]) -> Result<LocalValue, Exception> {
        // The first run may have to fetch and to prepare things.
        self.function.call_with(args)?;
        let mut caches = Caches::new(self.flush)?;
        let mut costs = Vec::new();
        // What one measurement needed is where the next begins.
        let mut number = self.number;
        for measurement in 0..self.repeat {
            if let Some(preprocess) = &self.preprocess {
                preprocess.call_with(args)?;
            }
            let cost = self.measure(args, &mut number, &mut caches)?;
            costs.extend_from_slice(&cost.to_le_bytes());
            if measurement % self.repeats_to_cooldown == 0 {
                sleep(self.cooldown);
            }
        }
        Ok(LocalValue::Bytes(costs))
    }

    fn measure(
        &self,
        args: &[Arg<'_>],
        number: &mut u64,
        caches: &mut Caches,
    ) -> Result<f64, Exception> {
        let mut zeros = 0;
        loop {
            caches.flush();
            let start = Instant::now();
            for _ in 0..*number {
                self.function.call_with(args)?;
            }
            let time = start.elapsed();
            if time.is_zero() {
                zeros += 1;
            }
            if time >= self.min_repeat || zeros >= self.zero_limit {
                return Ok(time.as_secs_f64() / as_float(*number));
            }
            *number = more(*number, time, self.min_repeat);
        }
    }
}

/// How many runs shall take `wanted`, where `number` took `time`, which is less.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at least 1, and what is above 64 bits becomes the highest number"
)]
fn more(number: u64, time: Duration, wanted: Duration) -> u64 {
    // So that it grows fast enough also when the guess is too low.
    const GROWTH: f64 = 1.618;
    if time.is_zero() {
        return number;
    }
    let guess = wanted.as_secs_f64() / (time.as_secs_f64() / as_float(number)) + 1.0;
    guess.max(as_float(number) * GROWTH) as u64
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a count of runs is far below 2^52"
)]
fn as_float(number: u64) -> f64 {
    number as f64
}

/// Two pieces of memory; to copy one to the other fills the caches with them.
struct Caches([Box<[u8]>; 2]);

impl Caches {
    fn new(nbytes: usize) -> Result<Self, Exception> {
        let zeroed = || {
            bytemuck::try_zeroed_slice_box(nbytes).map_err(|()| {
                Exception::new(
                    "MemoryError",
                    format!("there are no {nbytes} bytes to flush caches"),
                )
            })
        };
        Ok(Self([zeroed()?, zeroed()?]))
    }

    fn flush(&mut self) {
        let [target, source] = &mut self.0;
        target.copy_from_slice(source);
        std::hint::black_box(target);
    }
}

fn millis(name: &str, value: i64) -> Result<Duration, Exception> {
    within(name, value, 0..=i32::MAX.into()).map(Duration::from_millis)
}

fn within(name: &str, value: i64, allowed: RangeInclusive<i64>) -> Result<u64, Exception> {
    let found = Some(value).filter(|value| allowed.contains(value));
    found
        .and_then(|value| u64::try_from(value).ok())
        .ok_or_else(|| {
            let (least, most) = (allowed.start(), allowed.end());
            refused(format!(
                "expected {name} from {least} to {most}, found {value}"
            ))
        })
}

fn refused(why: impl std::fmt::Display) -> Exception {
    Exception::new("ValueError", format!("time evaluator: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_grows_towards_what_is_wanted() {
        let wanted = Duration::from_millis(100);
        assert_eq!(more(10, Duration::from_millis(1), wanted), 1001);
        assert_eq!(more(10, Duration::from_millis(99), wanted), 16);
        assert_eq!(more(10, Duration::ZERO, wanted), 10);
        let forever = Duration::from_millis(i32::MAX.unsigned_abs().into());
        let most = more(u64::MAX, Duration::from_nanos(1), forever);
        assert_eq!(most, u64::MAX);
    }
}
