//! Soaks: figures of many short conversations.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::anyhow;
use rpc_conformance::{Load, Options, Role, Soaked, Target, soak};

use super::arguments::SoakArguments;
use super::output::{show, tell};
use super::play::{status, stop_when_interrupted};
use super::{Failure, suite, usage};

pub(super) fn run(arguments: SoakArguments) -> Result<u8, Failure> {
    let role = arguments.role;
    let peer = arguments.peer.peer();
    let peer =
        peer.ok_or_else(|| usage(anyhow!("which {role}? --addr HOST:PORT or --cmd COMMAND")))?;
    let target = match role {
        Role::Tracker => Target::Tracker(peer),
        Role::Server => Target::Server {
            peer,
            key: arguments.key,
        },
        _ => return Err(usage(anyhow!("a soak is for a tracker or a server"))),
    };
    let load = Load {
        connections: arguments.connections.into(),
        cycles: usize::try_from(arguments.cycles).unwrap_or(usize::MAX),
    };
    let stop = stop_when_interrupted()?;
    let options = Options::default()
        .with_slow(arguments.slow)
        .with_patience(Duration::from_secs_f64(arguments.patience))
        .with_stop(Arc::clone(&stop));
    let soaked = soak(&target, &options, load).map_err(|error| Failure {
        status: status(&error),
        error: error.into(),
    })?;
    if arguments.json {
        let figures = serde_json::to_string_pretty(&soaked).map_err(suite)?;
        show(&(figures + "\n"));
    } else {
        show(&text(&soaked));
    }
    let Some(failure) = &soaked.failure else {
        return match stop.load(Ordering::Relaxed) {
            false => Ok(0),
            true => Err(suite(anyhow!("the soak was interrupted"))),
        };
    };
    let failed = failure.checks.iter().find(|check| !check.holds);
    let why = failed.map_or_else(
        || failure.note.clone(),
        |check| {
            format!(
                "{}: expected {}, found {}",
                check.name, check.expected, check.found
            )
        },
    );
    let ended = "the soak ended at a conversation that failed";
    tell(&format!("{ended}: {why}"));
    Ok(1)
}

fn text(soaked: &Soaked) -> String {
    let a_second = match soaked.seconds {
        0.0 => 0.0,
        seconds => f64::from(u32::try_from(soaked.done).unwrap_or(u32::MAX)) / seconds,
    };
    let mut text = format!(
        "{}: {} conversations, {} at a time, {} failed\n\
         time    {a_second:.0} a second; half within {:.1} ms, 99 of 100 within {:.1} ms, all within {:.1} ms\n",
        soaked.role,
        soaked.done,
        soaked.connections,
        soaked.failed,
        soaked.median,
        soaked.percentile_99,
        soaked.longest
    );
    if let Some(left) = soaked.left {
        let _ = writeln!(
            text,
            "left    {} devices, {} requests, {} keys, {} servers",
            left.free, left.pending, left.keys, left.servers
        );
    }
    if let Some((before, after)) = soaked.used {
        let _ = writeln!(
            text,
            "memory  {} KiB before, {} KiB after; open files {} and {}",
            before.memory, after.memory, before.files, after.files
        );
    }
    text
}
