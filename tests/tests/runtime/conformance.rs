//! The conformance suite on a server with the runtime, which can load modules too.

use rpc_conformance::{Options, Peer, Status, Target, Verdict, run};
use rpc_tests::ours::{runtime_folder, tvm_rpc};

use super::KEY;

/// What a server may leave out, and ours does.
const LEFT_OUT: &[&str] = &["SRV-HOP-014"];

#[test]
fn a_server_with_the_runtime_is_conformant() {
    let (program, folder) = (tvm_rpc(), runtime_folder());
    let program = program.get_program().to_str().unwrap();
    let command = format!(
        "'{program}' server --test-functions --host {{host}} --port 0 --key {{key}} --runtime '{folder}'"
    );
    let target = Target::Server {
        peer: Peer::Command(command),
        key: KEY.to_owned(),
    };
    let run = run(&target, &Options::default(), &|_, _| ()).unwrap();
    let other = run.cases.iter().filter(|case| {
        let expected = match LEFT_OUT.contains(&&*case.id) {
            true => Status::Unsupported,
            false => Status::Pass,
        };
        case.status != expected
    });
    let other: Vec<_> = other.collect();
    assert!(other.is_empty(), "{other:#?}");
    assert_eq!(run.verdict(), Verdict::Conformant);
}
