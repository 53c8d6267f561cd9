//! Tests against the reference implementation.

use anyhow::{Context, Result, bail};
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

    let mut test = sh::cargo();
    test.args([
        "test",
        "--package",
        TESTS_PACKAGE,
        "--features",
        TESTS_FEATURE,
    ]);
    for target in test_targets(&metadata)? {
        test.args(["--test", &target]);
    }
    test.arg("--")
        .args(&arguments.filter)
        .args(&arguments.runner);
    sh::run(reference.tell(&mut test))
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
