//! The feature matrix: nobody who picks one feature finds out that it needs another.

use anyhow::Result;
use cargo_metadata::{MetadataCommand, Package};

use crate::sh;

pub(crate) fn run() -> Result<()> {
    let metadata = MetadataCommand::new().no_deps().exec()?;
    for package in metadata.workspace_packages() {
        if is_publishable(package) {
            for arguments in matrix(package.features.keys().map(String::as_str)) {
                sh::run(
                    sh::cargo()
                        .args(arguments)
                        .args(["--package", &package.name]),
                )?;
            }
        }
    }
    Ok(())
}

fn is_publishable(package: &Package) -> bool {
    package
        .publish
        .as_ref()
        .is_none_or(|registries| !registries.is_empty())
}

/// Tests against the reference implementation, which have tasks of their own.
const PREPARED: &str = "interop";

/// The cargo commands for a crate with these features: none of them only has to compile, since
/// a crate may be empty without; each alone and all together are tested.
fn matrix<'a>(features: impl Iterator<Item = &'a str>) -> Vec<Vec<&'a str>> {
    let (prepared, features): (Vec<_>, Vec<_>) = features
        .filter(|&feature| feature != "default")
        .partition(|&feature| feature == PREPARED);
    if features.is_empty() {
        return vec![vec!["test"]];
    }
    assert!(
        prepared.is_empty(),
        "the feature {PREPARED} stands alone, or --all-features would need what it needs"
    );
    let none = vec!["check", "--no-default-features"];
    let each = features
        .into_iter()
        .map(|feature| vec!["test", "--no-default-features", "--features", feature]);
    let all = vec!["test", "--all-features"];
    std::iter::once(none).chain(each).chain([all]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_feature_but_default_is_tested_alone() {
        assert_eq!(
            matrix(["async", "default", "sync"].into_iter()),
            [
                vec!["check", "--no-default-features"],
                vec!["test", "--no-default-features", "--features", "async"],
                vec!["test", "--no-default-features", "--features", "sync"],
                vec!["test", "--all-features"],
            ]
        );
    }

    #[test]
    fn a_crate_without_features_is_tested_once() {
        assert_eq!(matrix([].into_iter()), [["test"]]);
        assert_eq!(matrix(["interop"].into_iter()), [["test"]]);
    }
}
