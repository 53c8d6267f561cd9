//! The command `tvm-rpc` against a tracker and a server of the reference.
#![allow(
    clippy::unwrap_used,
    reason = "the lint spares test functions, not their helpers"
)]

use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use assert_cmd::Command;
use npyz::{NpyFile, WriterBuilder};
use rpc_tests::modules::{ANSWER, VADD, VADD_LEN};
use rpc_tests::peers::{Server, Tracker, python};
use rpc_tests::wait_until;
use serde_json::{Value, json};
use tempfile::TempDir;

const SOON: Duration = Duration::from_secs(10);
/// Longer than anything that a test asks for.
const HANGS: Duration = Duration::from_secs(60);
const KEY: &str = "board";

fn program() -> std::process::Command {
    let path = env::var_os("TVM_RPC_BIN").expect("run `cargo xtask interop`");
    let mut command = std::process::Command::new(path);
    for variable in [
        "TVM_TRACKER_HOST",
        "TVM_TRACKER_PORT",
        "TVM_TRACKER_KEY",
        "TVM_RPC_LOG",
    ] {
        command.env_remove(variable);
    }
    command
}

fn tvm_rpc(args: &[&str]) -> Output {
    let mut command = Command::from_std(program());
    command.args(args).timeout(HANGS).output().unwrap()
}

/// Standard output of a command that succeeds and has nothing to say on standard error.
fn success(args: &[&str]) -> String {
    let output = tvm_rpc(args);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{args:?}: {stderr}");
    assert_eq!(stderr, "", "{args:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Standard error of a command that fails and prints nothing.
fn failure(args: &[&str]) -> String {
    let output = tvm_rpc(args);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{args:?}: {stderr}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "", "{args:?}");
    stderr
}

fn document(stdout: &str) -> Value {
    serde_json::from_str(stdout).unwrap()
}

/// A tracker with one free device of [`KEY`].
struct Farm {
    tracker: Tracker,
    server: Server,
}

impl Farm {
    fn start() -> Self {
        let tracker = Tracker::start();
        let server = Server::builder()
            .key(KEY)
            .tracker(tracker.addr())
            .test_functions()
            .start();
        let farm = Self { tracker, server };
        wait_until(SOON, "the server in the tracker's queue", || {
            farm.summary()["queue_info"][KEY]["free"] == json!(1)
        });
        farm
    }

    fn port(&self) -> String {
        self.tracker.addr().port().to_string()
    }

    fn summary(&self) -> Value {
        document(&success(&["query", "--port", &self.port(), "--json"]))
    }
}

/// Options that connect to the server directly.
fn direct(server: &Server) -> [String; 2] {
    ["--server".to_owned(), server.addr().to_string()]
}

fn words<'a>(parts: &[&'a [&'a str]], options: &'a [String]) -> Vec<&'a str> {
    let parts = parts.iter().copied().flatten().copied();
    parts.chain(options.iter().map(String::as_str)).collect()
}

fn save(path: &Path, numbers: &[f32]) {
    let mut writer = npyz::WriteOptions::new()
        .default_dtype()
        .shape(&[numbers.len() as u64])
        .writer(File::create(path).unwrap())
        .begin_nd()
        .unwrap();
    writer.extend(numbers.iter().copied()).unwrap();
    writer.finish().unwrap();
}

fn load(path: &Path) -> Vec<f32> {
    let file = NpyFile::new(File::open(path).unwrap()).unwrap();
    assert_eq!(file.shape(), [VADD_LEN as u64]);
    file.into_vec().unwrap()
}

#[test]
fn a_query_prints_what_the_tool_of_the_reference_prints() {
    let farm = Farm::start();
    let port = farm.port();
    let reference = python(&format!(
        "import runpy, sys\n\
         sys.argv = ['query', '--host', '127.0.0.1', '--port', '{port}']\n\
         runpy.run_module('tvm.exec.query_rpc_tracker', run_name='__main__')"
    ));
    assert!(reference.contains(&format!("server:{KEY}")), "{reference}");
    assert_eq!(success(&["query", "--port", &port]), reference);

    let server_port = farm.server.addr().port();
    let expected = json!({
        "tracker": farm.tracker.addr().to_string(),
        "queue_info": {KEY: {"free": 1, "pending": 0}},
        "server_info": [{"key": format!("server:{KEY}"), "addr": ["127.0.0.1", server_port]}],
    });
    assert_eq!(farm.summary(), expected);
}

#[test]
fn watching_prints_a_document_a_line_and_ends_with_its_reader() {
    let farm = Farm::start();
    let mut child = program()
        .args(["query", "--port", &farm.port(), "--json"])
        .args(["--watch", "--interval", "0.01"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..2 {
        let document = document(&lines.next().unwrap().unwrap());
        assert_eq!(document["queue_info"][KEY]["free"], json!(1));
    }
    drop(lines);
    let mut status = None;
    wait_until(SOON, "the end of the query", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(0));
}

#[test]
fn a_module_runs_on_a_borrowed_device() {
    let farm = Farm::start();
    let files = TempDir::new().unwrap();
    let path = |name: &str| files.path().join(name);
    #[expect(clippy::cast_precision_loss, reason = "small integers")]
    let a: Vec<f32> = (0..VADD_LEN).map(|i| i as f32 / 4.0).collect();
    save(&path("a.npy"), &a);

    let lib = VADD.shared_library();
    let tracker = farm.tracker.addr().to_string();
    let arg_a = format!("@{}", path("a.npy").display());
    let [out_b, out_c] = [(1, "b.npy"), (2, "c.npy")]
        .map(|(index, name)| format!("{index}={}", path(name).display()));
    let stdout = success(&[
        "run",
        lib.to_str().unwrap(),
        "--func",
        VADD.function,
        "--json",
        "--tracker",
        &tracker,
        "--key",
        KEY,
        "--priority",
        "3",
        "--session-timeout",
        "60",
        "--arg",
        &arg_a,
        "--arg",
        "float32[1024]=random",
        "--arg",
        "float32[1024]=zeros",
        "--out",
        &out_b,
        "--out",
        &out_c,
        "--time",
        "number=5,repeat=3",
    ]);

    let (b, c) = (load(&path("b.npy")), load(&path("c.npy")));
    assert!(b.iter().all(|b| (0.0..1.0).contains(b)));
    assert!(
        b.iter().any(|other| *other != b[0]),
        "random numbers differ"
    );
    let sums: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    assert_eq!(c, sums);

    let report = document(&stdout);
    let bytes = fs::metadata(&lib).unwrap().len();
    assert_eq!(report["server"], json!(farm.server.addr().to_string()));
    assert_eq!(report["device"], json!("cpu:0"));
    assert_eq!(report["module"]["bytes"], json!(bytes));
    assert_eq!(report["function"], json!("vadd"));
    assert_eq!(
        report["args"][0],
        json!({"text": arg_a, "dtype": "float32", "shape": [1024]})
    );
    assert_eq!(report["result"], json!({"type": "none"}));
    let output = &report["outputs"][1];
    assert_eq!(output["target"], json!("2"));
    assert_eq!(output["first"][7], json!(f64::from(sums[7])));
    let timing = &report["timing"];
    assert_eq!(
        (&timing["number"], &timing["repeat"]),
        (&json!(5), &json!(3))
    );
    assert_eq!(timing["costs"].as_array().unwrap().len(), 3);
    assert!(timing["mean"].as_f64().unwrap() > 0.0, "{timing}");
}

#[test]
fn a_run_is_reported_for_people() {
    let server = Server::builder().key(KEY).start();
    let options = [&direct(&server)[..], &["--key".to_owned(), KEY.to_owned()]].concat();
    let lib = VADD.shared_library();
    let run = ["run", lib.to_str().unwrap(), "--func", "vadd"];
    let args = [
        "--arg",
        "float32[1024]=ones",
        "--arg",
        "float32[1024]=2.5",
        "--arg",
        "float32[1024]=zeros",
    ];
    let report = success(&words(
        &[&run, &args, &["--time", "number=2,repeat=2"]],
        &options,
    ));
    for line in [
        &format!("server     {}", server.addr()),
        "device     cpu:0",
        "function   vadd",
        "arg 1      float32[1024]=2.5",
        "result     none",
        "out 2      float32[1024] min 3.5 max 3.5 mean 3.5 [3.5 3.5 3.5 3.5 3.5 3.5 3.5 3.5 …]",
        "timing     2 × 2 runs, each run took",
    ] {
        assert!(
            report.lines().any(|found| found == line),
            "no {line:?} in:\n{report}"
        );
    }

    // The server goes on after errors, so that they can be provoked one after the other.
    for (more, expected) in [
        (
            &["--func", "vsub"][..],
            format!(
                "error: {} has no function \"vsub\"; name one that it has with --func\n",
                lib.display()
            ),
        ),
        (
            &["--device", "cuda:0"],
            format!("error: {} has no device cuda:0\n", server.addr()),
        ),
        (
            &["--func", "vadd", "--out", "ret=unused.npy"],
            "error: --out: the function returns nothing, no tensor\n".to_owned(),
        ),
    ] {
        let run = ["run", lib.to_str().unwrap()];
        assert_eq!(failure(&words(&[&run, &args, more], &options)), expected);
    }
    let short = ["--arg", "float32[1023]=ones"];
    let stderr = failure(&words(&[&run, &short, &short, &short], &options));
    assert!(stderr.starts_with("error: the server reports "), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");

    let lib = ANSWER.shared_library();
    let run = [
        "run",
        lib.to_str().unwrap(),
        "--func",
        "answer_of",
        "--arg",
        "7",
    ];
    let report = success(&words(&[&run], &options));
    assert!(report.contains("arg 0      7\nresult     42\n"), "{report}");
}

#[test]
fn functions_are_called_by_name() {
    let server = Server::builder().test_functions().start();
    let options = direct(&server);
    let call = |words_of: &[&str]| success(&words(&[&["call"], words_of], &options));
    assert_eq!(call(&["rpc.test.addone", "41"]), "42\n");
    assert_eq!(call(&["rpc.test.addone", "-1.5"]), "-0.5\n");
    assert_eq!(call(&["rpc.test.strcat", "a b", "5"]), "a b:5\n");
    assert_eq!(call(&["rpc.test.ret", "bytes_short"]), "0001feff\n");
    assert_eq!(call(&["rpc.test.ret", "\"none\""]), "none\n");
    assert_eq!(
        call(&["rpc.test.ret", "function"]),
        "a function of the server\n"
    );
    let tensor = "float32[2, 3] min 0 max 5 mean 2.5 [0 1 2 3 4 5]\n";
    assert_eq!(call(&["rpc.test.ret", "tensor"]), tensor);

    let files = TempDir::new().unwrap();
    let file = files.path().join("bytes");
    fs::write(&file, [0, 1, 255]).unwrap();
    let described = call(&[
        "rpc.test.describe",
        "5",
        "1.5",
        "true",
        "none",
        "word",
        "\"5\"",
        "device:cpu:0",
        "dtype:float32",
        &format!("@{}", file.display()),
    ]);
    let expected = "int 5; float 1.5; bool true; none; str \"word\"; str \"5\"; device 1:0; \
                    dtype float32; bytes \"0001ff\"\n";
    assert_eq!(described, expected);

    let json = call(&["rpc.test.ret", "str_unicode", "--json"]);
    let expected = json!({
        "server": server.addr().to_string(),
        "function": "rpc.test.ret",
        "result": {"type": "str", "value": "grüße, 世界"},
    });
    assert_eq!(document(&json), expected);

    let failed = |words_of: &[&str]| failure(&words(&[&["call"], words_of], &options));
    let stderr = failed(&["rpc.test.raise", "ValueError", "first\nsecond"]);
    assert_eq!(
        stderr,
        "error: the server reports an exception: first second\n"
    );
    assert_eq!(
        failed(&["no.such"]),
        "error: the server has no function \"no.such\"\n"
    );
}

#[test]
fn files_go_there_and_back() {
    let server = Server::builder().start();
    let options = direct(&server);
    let here = TempDir::new().unwrap();
    let there = TempDir::new().unwrap();
    let bytes: Vec<u8> = (0..1_000_003_u32).map(|i| i.to_le_bytes()[0]).collect();
    let original = here.path().join("original");
    fs::write(&original, &bytes).unwrap();
    // The server's work directory goes with the session, absolute names stay.
    let name = there.path().join("stored").display().to_string();

    let upload = ["upload", original.to_str().unwrap(), "--as", &name];
    let stdout = success(&words(&[&upload], &options));
    let expected = format!("{name}: 1000003 bytes to {} in ", server.addr());
    assert!(stdout.starts_with(&expected), "{stdout}");
    assert_eq!(fs::read(&name).unwrap(), bytes);

    let copy = here.path().join("copy").display().to_string();
    let stdout = success(&words(&[&["download", &name, "-o", &copy]], &options));
    let expected = format!("{copy}: 1000003 bytes from {} in ", server.addr());
    assert!(stdout.starts_with(&expected), "{stdout}");
    assert_eq!(fs::read(&copy).unwrap(), bytes);
    let output = tvm_rpc(&words(&[&["download", &name, "-o", "-"]], &options));
    assert!(output.status.success());
    assert!(output.stdout == bytes, "standard output is the file");

    for _ in 0..2 {
        // That there is none any more is no error.
        assert_eq!(success(&words(&[&["rm", &name]], &options)), "");
        assert!(!Path::new(&name).exists());
    }
    let stderr = failure(&words(&[&["download", &name, "-o", &copy]], &options));
    assert!(stderr.starts_with("error: the server reports "), "{stderr}");
    assert_eq!(
        fs::read(&copy).unwrap(),
        bytes,
        "a failed download leaves the file alone"
    );

    let stderr = failure(&words(&[&["ls"]], &options));
    assert!(stderr.contains("it cannot list files"), "{stderr}");
}

#[test]
fn nobody_waits_longer_than_they_want_to() {
    let farm = Farm::start();
    let tracker = farm.tracker.addr().to_string();
    let stderr = failure(&[
        "call",
        "rpc.test.addone",
        "1",
        "--tracker",
        &tracker,
        "--key",
        "bored",
        "--wait-timeout",
        "0.3",
    ]);
    let expected = "\
note: key \"bored\": no server of this key is registered, only of board; waiting for 300ms
error: no device of key \"bored\" within 300ms
";
    assert_eq!(stderr, expected);

    let server = farm.server.addr().to_string();
    let stderr = failure(&[
        "call",
        "rpc.test.addone",
        "1",
        "--server",
        &server,
        "--key",
        "wrong",
    ]);
    assert!(
        stderr.starts_with(&format!("error: no session at {server}: ")),
        "{stderr}"
    );
}
