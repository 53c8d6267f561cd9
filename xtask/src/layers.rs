//! Which crate may know which: the arrows of the workspace, and the libraries and words that
//! a layer must do without.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use cargo_metadata::{Metadata, MetadataCommand};

use crate::sh;

/// The workspace's crates from the bottom up. A crate may depend on those in lines above its
/// own here, not on one in its own line or below.
const LAYERS: &[&[&str]] = &[
    &["rpc-bisync"],
    &["rpc-proto"],
    &["rpc-recording"],
    &["rpc-conformance", "rpc-transport"],
    &["rpc-tracker-client"],
    &["rpc-session", "rpc-tracker"],
    &["rpc-runtime", "rpc-server"],
    &["rpc-cli"],
    &["rpc-tests", "xtask"],
];

/// A crate, built with these features alone, and the libraries that it must not reach through
/// normal dependencies.
const FORBIDDEN_LIBRARIES: &[(&str, &[&str], &[&str])] = &[
    ("rpc-proto", &[], &["mio", "socket2", "tokio"]),
    ("rpc-conformance", &["cli"], &["mio", "tokio"]),
    ("rpc-transport", &["sync"], &["mio", "tokio"]),
    ("rpc-transport", &["sync", "websocket"], &["mio", "tokio"]),
    ("rpc-tracker-client", &["sync"], &["mio", "tokio"]),
    ("rpc-session", &["sync"], &["mio", "tokio"]),
];

/// The crate without I/O, whose sources must not name these.
const NO_IO_CRATE: &str = "rpc-proto";
const FORBIDDEN_NAMES: &[&str] = &[
    "std::env",
    "env::",
    "std::fs",
    "fs::",
    "std::net",
    "net::",
    "std::process",
    "process::",
    "std::thread",
    "thread::",
    "Instant",
    "SystemTime",
    "socket2",
    "tokio",
];

pub(crate) fn run() -> Result<()> {
    let metadata = MetadataCommand::new().no_deps().exec()?;

    let mut violations = wrong_arrows(LAYERS, &arrows(&metadata));
    for &(package, features, forbidden) in FORBIDDEN_LIBRARIES {
        let reached = normal_dependencies(package, features)?;
        violations.extend(wrong_libraries(package, features, forbidden, &reached));
    }
    for path in rust_files(&source_directory(&metadata, NO_IO_CRATE)?)? {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        violations.extend(wrong_names(&path.display().to_string(), &text));
    }

    if violations.is_empty() {
        println!("layers: every arrow points down");
        return Ok(());
    }
    for violation in &violations {
        eprintln!("{violation}");
    }
    bail!(
        "{} violation(s) of the layers (xtask/src/layers.rs)",
        violations.len()
    );
}

/// The crates of the workspace, each with those that it depends on, in any kind of dependency.
fn arrows(metadata: &Metadata) -> Vec<(String, Vec<String>)> {
    let packages = metadata.workspace_packages();
    let is_ours = |name: &str| packages.iter().any(|package| package.name.as_str() == name);
    let our_dependencies = |package: &cargo_metadata::Package| {
        let names = package
            .dependencies
            .iter()
            .map(|dependency| dependency.name.clone());
        names.filter(|name| is_ours(name)).collect()
    };
    packages
        .iter()
        .map(|package| (package.name.to_string(), our_dependencies(package)))
        .collect()
}

fn wrong_arrows(layers: &[&[&str]], arrows: &[(String, Vec<String>)]) -> Vec<String> {
    let layer_of = |name: &str| layers.iter().position(|layer| layer.contains(&name));
    let mut violations = Vec::new();
    for (from, targets) in arrows {
        let Some(from_layer) = layer_of(from) else {
            violations.push(format!(
                "{from}: a crate without a layer; give it a line in LAYERS"
            ));
            continue;
        };
        for to in targets {
            // A target without a layer is reported as the crate that it is.
            let Some(to_layer) = layer_of(to) else {
                continue;
            };
            if to_layer == from_layer {
                violations.push(format!(
                    "{from} -> {to}: crates of one layer must not know each other"
                ));
            } else if to_layer > from_layer {
                violations.push(format!(
                    "{from} -> {to}: {from} is below {to} and must not depend on it"
                ));
            }
        }
    }
    violations
}

/// The names of all packages that a package reaches, itself included.
fn normal_dependencies(package: &str, features: &[&str]) -> Result<Vec<String>> {
    let tree = sh::output(
        sh::cargo()
            .args([
                "tree", "--edges", "normal", "--prefix", "none", "--format", "{p}",
            ])
            .args(["--no-default-features", "--features", &features.join(",")])
            .args(["--package", package]),
    )?;
    let names = tree
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    Ok(names.map(str::to_owned).collect())
}

fn wrong_libraries(
    package: &str,
    features: &[&str],
    forbidden: &[&str],
    reached: &[String],
) -> Vec<String> {
    let reaches = |library: &str| reached.iter().any(|name| name == library);
    let flags = format!("--no-default-features --features '{}'", features.join(","));
    forbidden
        .iter()
        .filter(|library| reaches(library))
        .map(|library| {
            format!(
                "{package} must not reach {library}; \
                 see `cargo tree -p {package} -e normal {flags} -i {library}`"
            )
        })
        .collect()
}

fn source_directory(metadata: &Metadata, package: &str) -> Result<PathBuf> {
    let packages = metadata.workspace_packages();
    let package = packages
        .iter()
        .find(|candidate| candidate.name.as_str() == package)
        .with_context(|| format!("the workspace has no crate {package}"))?;
    let root = package
        .manifest_path
        .parent()
        .context("a manifest lies in a folder")?;
    Ok(root.join("src").into())
}

fn rust_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(files)
}

/// Comments may speak of sockets and clocks; code may not.
fn wrong_names(path: &str, text: &str) -> Vec<String> {
    let mut violations = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let code = without_comment(line);
        if let Some(name) = FORBIDDEN_NAMES.iter().find(|name| names(code, name)) {
            let number = index + 1;
            violations.push(format!(
                "{path}:{number}: {NO_IO_CRATE} does no I/O and must not name `{name}`"
            ));
        }
    }
    violations
}

/// The line up to a `//` that does not stand in a string.
fn without_comment(line: &str) -> &str {
    let (mut in_string, mut escaped) = (false, false);
    for (at, c) in line.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            // Not the character '"'.
            '"' if in_string || !line[..at].ends_with('\'') => in_string = !in_string,
            '/' if !in_string && line[at..].starts_with("//") => return &line[..at],
            _ => {}
        }
    }
    line
}

/// Whether `code` has `name` other than as a part of a longer word.
fn names(code: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(name).any(|(start, _)| {
        let starts_word = !code[..start].ends_with(is_word);
        let ends_word =
            !name.ends_with(is_word) || !code[start + name.len()..].starts_with(is_word);
        starts_word && ends_word
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MADE_UP_LAYERS: &[&[&str]] = &[&["codec"], &["framing"], &["client", "server"]];

    fn check(arrows: &[(&str, &[&str])]) -> Vec<String> {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let arrows: Vec<_> = arrows
            .iter()
            .map(|(from, to)| ((*from).to_owned(), owned(to)))
            .collect();
        wrong_arrows(MADE_UP_LAYERS, &arrows)
    }

    #[test]
    fn arrows_down_pass() {
        let graph: &[(&str, &[&str])] = &[
            ("codec", &[]),
            ("framing", &["codec"]),
            ("server", &["codec", "framing"]),
        ];
        assert_eq!(check(graph), [""; 0]);
    }

    #[test]
    fn an_arrow_up_fails() {
        assert_eq!(
            check(&[("codec", &["framing"])]),
            ["codec -> framing: codec is below framing and must not depend on it"]
        );
    }

    #[test]
    fn an_arrow_sideways_fails() {
        assert_eq!(
            check(&[("client", &["server"])]),
            ["client -> server: crates of one layer must not know each other"]
        );
    }

    #[test]
    fn a_crate_without_a_layer_fails() {
        assert_eq!(
            check(&[("stranger", &["codec"]), ("client", &["stranger"])]),
            ["stranger: a crate without a layer; give it a line in LAYERS"]
        );
    }

    #[test]
    fn a_forbidden_library_fails() {
        let reached = ["codec", "bytes", "tokio", "tokio-util"].map(str::to_owned);
        assert_eq!(
            wrong_libraries("codec", &["sync"], &["mio", "tokio"], &reached),
            ["codec must not reach tokio; see \
                 `cargo tree -p codec -e normal --no-default-features --features 'sync' -i tokio`"]
        );
    }

    #[test]
    fn names_in_code_fail_and_comments_pass() {
        let text = "//! Knows no tokio.\n\
                    use std::{net::TcpStream, thread};\n\
                    let started = Instant::now(); // Instant\n\
                    let Instantiated = magnet::pull();\n\
                    use std::thread;\n";
        assert_eq!(
            wrong_names("src/lib.rs", text),
            [
                "src/lib.rs:2: rpc-proto does no I/O and must not name `net::`",
                "src/lib.rs:3: rpc-proto does no I/O and must not name `Instant`",
                "src/lib.rs:5: rpc-proto does no I/O and must not name `std::thread`",
            ]
        );
    }

    #[test]
    fn files_processes_and_the_environment_are_forbidden() {
        for (line, name) in [
            ("use std::fs::File;", "std::fs"),
            ("use std::{fs::File, io};", "fs::"),
            ("let id = std::process::id();", "std::process"),
            ("process::exit(1)", "process::"),
            ("std::env::var(name)", "std::env"),
            ("env::var(name)", "env::"),
        ] {
            let told = format!("p:1: rpc-proto does no I/O and must not name `{name}`");
            assert_eq!(wrong_names("p", line), [told]);
        }
    }

    #[test]
    fn a_comment_begins_outside_of_strings() {
        for (line, code) in [
            ("let a = 1; // tokio", "let a = 1; "),
            ("//! tokio", ""),
            (
                r#"let url = "http://x"; tokio::spawn() // so"#,
                r#"let url = "http://x"; tokio::spawn() "#,
            ),
            (
                r#"let a = "\"//"; tokio::spawn()"#,
                r#"let a = "\"//"; tokio::spawn()"#,
            ),
            (r#"let quote = '"'; // tokio"#, r#"let quote = '"'; "#),
            (r#"let quote = "'"; // tokio"#, r#"let quote = "'"; "#),
        ] {
            assert_eq!(without_comment(line), code);
        }
    }
}
