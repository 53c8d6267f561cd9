//! What cannot be done is said, and the session goes on.

use rpc_tests::modules::{VADD, VADD_LEN};

use super::*;

/// A session with a function that works, to be called wrongly.
struct Bench {
    session: RemoteSession,
    module: Module,
    operands: Operands,
    _server: Server,
}

impl Bench {
    fn new() -> Self {
        let server = Server::with_runtime(KEY, &[]);
        let session = connect(&server);
        Self {
            module: load(&session, &VADD.shared_library()),
            operands: Operands::new(&session, [VADD_LEN]),
            session,
            _server: server,
        }
    }

    /// That the server refused it for a reason with these words, and the session goes on.
    #[track_caller]
    fn assert_refused<T: std::fmt::Debug>(&self, refused: Result<T, SessionError>, words: &[&str]) {
        let error = refused.unwrap_err();
        let said = message(&error);
        for word in words {
            assert!(said.contains(word), "{word:?} is not in {said:?}");
        }
        assert!(!error.is_fatal(), "{error:?}");
        self.assert_works();
    }

    #[track_caller]
    fn assert_works(&self) {
        let sums = self.operands.run(&self.module, VADD.function).unwrap();
        assert_eq!(sums, self.operands.sums());
    }
}

#[test]
fn too_few_arguments() {
    let bench = Bench::new();
    let vadd = bench.module.function(VADD.function).unwrap();
    let Operands { a, b, .. } = &bench.operands;
    let words = ["Expected 3 arguments when calling:", "`vadd(a: Tensor("];
    bench.assert_refused(vadd.call(&[]), &words);
    bench.assert_refused(vadd.call(args![a, b]), &words);
}

#[test]
fn a_wrong_shape() {
    let bench = Bench::new();
    let vadd = bench.module.function(VADD.function).unwrap();
    let Operands { a, c, .. } = &bench.operands;
    let cpu = bench.session.cpu(0);
    for shape in [&[3][..], &[1025], &[32, 32], &[]] {
        let odd = cpu.empty(shape, DataType::FLOAT32).unwrap();
        bench.assert_refused(vadd.call(args![a, &odd, c]), &["argument #1", "1024"]);
    }
}

#[test]
fn a_wrong_type() {
    let bench = Bench::new();
    let vadd = bench.module.function(VADD.function).unwrap();
    let Operands { a, b, c, .. } = &bench.operands;
    let cpu = bench.session.cpu(0);
    for dtype in [DataType::INT32, DataType::FLOAT64] {
        let odd = cpu.empty(a.shape(), dtype).unwrap();
        bench.assert_refused(vadd.call(args![a, &odd, c]), &["argument #1", "float32"]);
    }
    bench.assert_refused(vadd.call(args![a, b, "a text"]), &["argument #2", "Tensor"]);
}

#[test]
fn a_file_that_is_not_there() {
    let bench = Bench::new();
    for name in ["missing.so", "missing.tar", "missing.o"] {
        let words = [name, "No such file"];
        bench.assert_refused(bench.session.load_module(name), &words);
    }
}

#[test]
fn a_file_that_is_no_module() {
    let bench = Bench::new();
    let files = [
        ("garbage.so", "Failed to load dynamic shared library"),
        ("garbage.tar", "cannot read"),
        ("garbage.o", "failed (exit status: 1)"),
    ];
    for (name, why) in files {
        // Long enough to hold the header of each.
        let garbage = b"no library at all".repeat(100);
        bench.session.files().upload(name, &garbage).unwrap();
        bench.assert_refused(bench.session.load_module(name), &[name, why]);
    }
}

#[test]
fn a_function_that_is_not_there() {
    let bench = Bench::new();
    let error = bench.module.function("missing").unwrap_err();
    assert_eq!(error.to_string(), r#"the module has no function "missing""#);
    bench.assert_works();
    let error = bench.session.function("no.such").unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with(r#"the server has no function "no.such""#),
        "{error}"
    );
    bench.assert_works();
    let cpu = bench.session.cpu(0).device();
    let options = TimeEvaluatorOptions::default();
    let evaluator = bench.module.time_evaluator("missing", cpu, &options);
    bench.assert_refused(evaluator, &["missing"]);
}

#[test]
fn their_client_is_told_the_same() {
    let server = Server::with_runtime(KEY, &[]);
    run_client("wrong_calls", &server);
}
