//! The conformance suite, by default on our own implementation.

use std::process::{Command, ExitCode};

use anyhow::{Result, ensure};
use cargo_metadata::MetadataCommand;

use crate::sh;

#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    /// tracker, server or client, and what tvm-rpc-conformance is to be told. Without --addr and --cmd our
    /// own implementation is tested; of a client both, and {client} in an argument is the name of each.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENTS"
    )]
    arguments: Vec<String>,
}

/// Runs the suite, once for each of our peers of the role, and says how it ended: the worst of them.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut worst = 0;
    for arguments in runs(&arguments.arguments, &peers(&arguments.arguments)?)? {
        let mut suite = suite();
        let status = suite.args(arguments).status()?;
        let status = status.code().and_then(|code| u8::try_from(code).ok());
        worst = worst.max(status.unwrap_or(4));
    }
    Ok(ExitCode::from(worst))
}

fn suite() -> Command {
    let mut suite = sh::cargo();
    suite
        .args(["run", "--quiet", "--package", "rpc-conformance", "--"])
        .env("TVM_RPC_CONFORMANCE_COMMAND", "cargo xtask conformance");
    suite
}

/// One of our own peers: its name, and the command that starts it.
type Own = (&'static str, String);

/// Our own peers that the arguments ask for, built.
fn peers(arguments: &[String]) -> Result<Vec<Own>> {
    const SERVICES: [&str; 4] = ["build", "--quiet", "--package", "rpc-cli"];
    const CLIENTS: [&str; 6] = [
        "build",
        "--quiet",
        "--package",
        "rpc-tests",
        "--bin",
        "conformance_client",
    ];
    let has_peer = arguments.iter().any(|argument| {
        let name = argument.split('=').next().unwrap_or_default();
        ["--addr", "--cmd", "--list", "--help", "-h"].contains(&name)
    });
    // A role, or `soak` and a role.
    let role = arguments.iter().find(|argument| *argument != "soak");
    let (build, commands): (&[&str], &[_]) = match role.map(String::as_str) {
        _ if has_peer => return Ok(Vec::new()),
        Some("tracker") => (
            &SERVICES,
            &[("tracker", "tvm-rpc' tracker --host {host} --port 0")],
        ),
        Some("server") => (
            &SERVICES,
            &[(
                "server",
                "tvm-rpc' server --test-functions --host {host} --port 0 --key {key}",
            )],
        ),
        Some("client") => (
            &CLIENTS,
            &[
                ("blocking", "conformance_client' --blocking {tracker} {key}"),
                ("async", "conformance_client' --async {tracker} {key}"),
            ],
        ),
        _ => return Ok(Vec::new()),
    };
    sh::run(sh::cargo().args(build))?;
    let metadata = MetadataCommand::new().no_deps().exec()?;
    let folder = metadata.target_directory.join("debug");
    let commands = commands.iter();
    Ok(commands
        .map(|(name, command)| (*name, format!("'{folder}/{command}")))
        .collect())
}

/// The arguments of each run.
fn runs(arguments: &[String], peers: &[Own]) -> Result<Vec<Vec<String>>> {
    if peers.is_empty() {
        return Ok(vec![arguments.to_vec()]);
    }
    let is_shared =
        peers.len() > 1 && writes(arguments) && !arguments.concat().contains("{client}");
    ensure!(
        !is_shared,
        "both clients would write the same file: put {{client}} into its name"
    );
    let runs = peers.iter().map(|(name, command)| {
        let own = ["--cmd".to_owned(), command.clone()];
        let given = arguments
            .iter()
            .map(|argument| argument.replace("{client}", name));
        given.chain(own).collect()
    });
    Ok(runs.collect())
}

/// Whether the suite is to write a file.
fn writes(arguments: &[String]) -> bool {
    let names = ["--out", "--record", "--write-known-failures"];
    arguments.iter().enumerate().any(|(at, argument)| {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (argument.as_str(), arguments.get(at + 1).map(String::as_str)),
        };
        names.contains(&name)
            || name == "--report" && value.is_some_and(|value| value.contains('='))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_peer_that_is_given_is_the_one() {
        for given in [
            "tracker --addr h:1",
            "client --cmd=x",
            "server --list",
            "diff a b",
        ] {
            assert_eq!(peers(&words(given)).unwrap(), []);
            assert_eq!(runs(&words(given), &[]).unwrap(), [words(given)]);
        }
    }

    #[test]
    fn each_client_has_its_own_files() {
        let clients = [("blocking", "b".to_owned()), ("async", "a".to_owned())];
        let given = words("client --report junit={client}.xml");
        assert_eq!(
            runs(&given, &clients).unwrap(),
            [
                words("client --report junit=blocking.xml --cmd b"),
                words("client --report junit=async.xml --cmd a"),
            ]
        );
        for shared in [
            "--out report.json",
            "--report junit=a.xml",
            "--report=html=a.html",
        ] {
            let given = words(&format!("client {shared}"));
            assert!(runs(&given, &clients).is_err(), "{shared}");
        }
        assert!(runs(&words("client --only X"), &clients).is_ok());
    }
}
