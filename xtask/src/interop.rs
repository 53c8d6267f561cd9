//! Tests against the reference implementation.

use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use cargo_metadata::{Metadata, MetadataCommand};

use crate::reference::Reference;
use crate::sh;

const TESTS_PACKAGE: &str = "rpc-tests";
const TESTS_FEATURE: &str = "interop";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Run only the tests whose names contain this.
    #[arg(long, value_name = "STR")]
    filter: Option<String>,
    /// Further arguments of the test runner.
    #[arg(last = true)]
    runner: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let metadata = MetadataCommand::new().no_deps().exec()?;
    let reference = Reference::prepare(&metadata)?;

    let targets = test_targets(&metadata)?;
    if let Some(filter) = &arguments.filter {
        let listed = sh::output(runner(&targets).args([filter, "--list"]))?;
        ensure!(
            names_a_test(&listed),
            "no test has {filter:?} in its name; without --filter all are run"
        );
    }
    let mut tests = runner(&targets);
    tests.args(&arguments.filter).args(&arguments.runner);
    sh::run(reference.tell(&mut tests))
}

/// Builds and runs test targets; what is added are arguments of the test runner.
fn runner(targets: &[String]) -> Command {
    let mut test = sh::cargo();
    test.args(["test", "--package", TESTS_PACKAGE])
        .args(["--features", TESTS_FEATURE]);
    for target in targets {
        test.args(["--test", target]);
    }
    test.arg("--");
    test
}

/// Whether the runner's list of tests has any.
fn names_a_test(listed: &str) -> bool {
    listed.lines().any(|line| line.ends_with(": test"))
}

/// The test targets that require the feature; a plain `cargo test` does not build them.
fn test_targets(metadata: &Metadata) -> Result<Vec<String>> {
    let packages = metadata.workspace_packages();
    let package = packages
        .iter()
        .find(|package| package.name.as_str() == TESTS_PACKAGE)
        .with_context(|| format!("the workspace has no package {TESTS_PACKAGE}"))?;
    let requires = |target: &&cargo_metadata::Target| {
        target.is_test()
            && target
                .required_features
                .iter()
                .any(|name| name == TESTS_FEATURE)
    };
    let targets: Vec<_> = package
        .targets
        .iter()
        .filter(requires)
        .map(|target| target.name.clone())
        .collect();
    if targets.is_empty() {
        bail!("no test target of {TESTS_PACKAGE} requires the feature {TESTS_FEATURE}");
    }
    Ok(targets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_has_no_test() {
        assert!(!names_a_test(
            "0 tests, 0 benchmarks\n\n0 tests, 0 benchmarks\n"
        ));
        assert!(names_a_test(
            "0 tests, 0 benchmarks\ncalls::a_call: test\n\n1 test, 0 benchmarks\n"
        ));
    }
}
