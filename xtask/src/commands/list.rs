//! What becomes of each command.

use super::How::{self, As, AsIs, Ends, NotHere};

/// A tracker that nobody has used yet, and a relay to it, through which one conversation passes.
const RELAY: &str = r#"
port_of() {
    tries=0
    until port=$(sed -n 's/.*listening on 127.0.0.1:\([0-9]*\).*/\1/p' $1) && [ -n "$port" ]; do
        tries=$((tries + 1))
        [ $tries -lt 100 ] && kill -0 $2
        sleep 0.1
    done
    echo $port
}
cd $SCRATCH
tracker= relay=
trap 'kill $tracker $relay 2>/dev/null' EXIT
tvm-rpc tracker --host 127.0.0.1 --port 0 >tracker.txt 2>&1 &
tracker=$!
to=$(port_of tracker.txt $tracker)
tvm-rpc relay --listen 127.0.0.1:0 --to 127.0.0.1:$to --record talk.json >relay.txt 2>&1 &
relay=$!
port=$(port_of relay.txt $relay)
tvm-rpc query --host 127.0.0.1 --port $port
kill -INT $relay $tracker
wait $relay
wait $tracker
trap - EXIT
"#;

/// The commands of the documentation, each on one line. They are run in the order of the pages, and some go
/// on with files that those before them have left in `$SCRATCH`.
pub(super) const COMMANDS: &[(&str, How)] = &[
    // README.md
    (
        "cargo run --release --bin tvm-rpc -- demo",
        As("tvm-rpc demo"),
    ),
    ("cargo test --workspace", NotHere("a step of .ci/run")),
    ("cargo xtask try", NotHere("a step of .ci/run")),
    (
        "pip install apache-tvm tornado psutil cloudpickle",
        NotHere("cargo xtask try does it"),
    ),
    (
        "python -m tvm.exec.rpc_tracker --host 127.0.0.1 --port 9190",
        NotHere("cargo xtask try does it"),
    ),
    (
        "python -m tvm.exec.rpc_server --host 127.0.0.1 --tracker 127.0.0.1:9190 --key rasp4b",
        NotHere("cargo xtask try does it"),
    ),
    (
        "cargo run --release --bin tvm-rpc -- run target/interop/modules/vadd.so --tracker 127.0.0.1:9190 --key rasp4b --func vadd --arg 'float32[1024]=random' --arg 'float32[1024]=ones' --arg 'float32[1024]=zeros' --out 2=sum.npy --time number=10,repeat=3",
        NotHere("cargo xtask try does it"),
    ),
    ("cargo build --bin tvm-rpc", AsIs),
    (
        "tvm-rpc tracker --host 0.0.0.0",
        NotHere("tests of rpc-cli: tests/services.rs"),
    ),
    (
        "tvm-rpc server --host 0.0.0.0 --tracker farm.example:9190 --key rasp4b",
        NotHere("tests of rpc-cli: tests/services.rs"),
    ),
    (
        "tvm-rpc query --host farm.example",
        As("tvm-rpc query --host 127.0.0.1 --port ${TRACKER##*:}"),
    ),
    (
        "tvm-rpc demo --lib target/interop/modules/vadd.so --func vadd --arg 'float32[1024]=random' --arg 'float32[1024]=ones' --arg 'float32[1024]=zeros'",
        NotHere("cargo xtask interop does it: tests/tests/runtime/demo.rs"),
    ),
    ("cargo xtask conformance tracker", AsIs),
    // docs/client-script.md
    (
        "cargo xtask conformance client --cmd 'PROGRAM {tracker} {key}'",
        As("cargo xtask conformance client --cmd 'conformance_client --async {tracker} {key}'"),
    ),
    ("cargo build -p rpc-tests --bin conformance_client", AsIs),
    (
        "cargo xtask conformance client --cmd 'target/debug/conformance_client --blocking {tracker} {key}'",
        As("cargo xtask conformance client --cmd 'conformance_client --blocking {tracker} {key}'"),
    ),
    (
        "cargo xtask conformance client --cmd 'target/debug/conformance_client --async {tracker} {key}'",
        As("cargo xtask conformance client --cmd 'conformance_client --async {tracker} {key}'"),
    ),
    (
        "cargo xtask conformance client --cmd 'python tests/peers/conformance_client.py {tracker} {key}' --slow 4",
        NotHere("cargo xtask results does it"),
    ),
    // docs/conformance.md
    (
        "cargo xtask conformance tracker --addr 127.0.0.1:9190",
        As("cargo xtask conformance tracker --addr $TRACKER"),
    ),
    (
        "cargo xtask conformance tracker --cmd './my-tracker --host {host} --port {port}'",
        As("cargo xtask conformance tracker --cmd 'tvm-rpc tracker --host {host} --port {port}'"),
    ),
    (
        "cargo xtask conformance server --cmd './my-server --port {port} --key {key}'",
        As(
            "cargo xtask conformance server --cmd 'tvm-rpc server --test-functions --host 127.0.0.1 --port {port} --key {key}'",
        ),
    ),
    ("cargo xtask conformance tracker --list", AsIs),
    (
        "cargo xtask conformance tracker --cmd '…' --only 'TRK-HELLO-*,TRK-PUT-*'",
        As(
            "cargo xtask conformance tracker --cmd 'tvm-rpc tracker --host {host} --port {port}' --only 'TRK-HELLO-*,TRK-PUT-*'",
        ),
    ),
    (
        "cargo xtask conformance tracker --cmd '…' --write-known-failures known.txt",
        Ends(
            "cargo xtask conformance tracker --cmd 'tvm-rpc tracker --host {host} --port {port}' --broken priority-turned --write-known-failures $SCRATCH/known.txt",
            1,
        ),
    ),
    (
        "cargo xtask conformance tracker --cmd '…' --known-failures known.txt",
        As(
            "cargo xtask conformance tracker --cmd 'tvm-rpc tracker --host {host} --port {port}' --broken priority-turned --known-failures $SCRATCH/known.txt",
        ),
    ),
    (
        "cargo xtask conformance diff old.json new.json",
        As(r"cd $SCRATCH
for report in old new; do
    tvm-rpc-conformance tracker --addr $TRACKER --only 'TRK-PUT-*' --report json=$report.json
done
tvm-rpc-conformance diff old.json new.json"),
    ),
    (
        "cargo xtask conformance matrix ours=ours.json reference=reference.json --notes notes.txt --out results.md",
        As(
            "cargo xtask conformance matrix ours=$SCRATCH/old.json reference=$SCRATCH/new.json --notes docs/conformance/notes.txt --out $SCRATCH/results.md",
        ),
    ),
    (
        "cargo xtask conformance client --cmd 'gdbserver 127.0.0.1:2345 ./my-client {tracker} {key}' --only CLI-EXC-001 --slow 1000",
        As(
            "cargo xtask conformance client --cmd 'env conformance_client --blocking {tracker} {key}' --only CLI-EXC-001 --slow 1000",
        ),
    ),
    (
        "cargo run --bin tvm-rpc -- relay --listen 127.0.0.1:9191 --to 127.0.0.1:9190 --record talk.json",
        As(RELAY),
    ),
    (
        "cargo xtask conformance tracker --cmd './my-tracker --port {port}' --replay talk.json",
        As(
            "cargo xtask conformance tracker --cmd 'tvm-rpc tracker --host 127.0.0.1 --port {port}' --replay $SCRATCH/talk.json",
        ),
    ),
    (
        "cargo xtask conformance check talk.json",
        As("cargo xtask conformance check $SCRATCH/talk.json"),
    ),
    (
        "cargo xtask conformance soak tracker --connections 64 --cycles 20000",
        AsIs,
    ),
    (
        "cargo xtask conformance soak server --connections 4 --cycles 1000 --json",
        AsIs,
    ),
    (
        "cargo xtask conformance server --broken missing-flush --only SRV-CALL-001",
        Ends(
            "cargo xtask conformance server --broken missing-flush --only SRV-CALL-001",
            1,
        ),
    ),
    // docs/tracker-example.md
    (
        "cargo xtask conformance tracker --cmd 'python3 docs/examples/tracker.py {port}' --only 'TRK-HELLO-*'",
        AsIs,
    ),
    (
        "cargo xtask conformance tracker --cmd 'python3 docs/examples/tracker.py {port}' --only 'TRK-FRAME-*,TRK-BAD-*'",
        AsIs,
    ),
    (
        "cargo xtask conformance tracker --cmd 'python3 docs/examples/tracker.py {port}' --only 'TRK-PUT-*,TRK-INFO-*,TRK-LEFT-*,TRK-SUM-*,TRK-STOP-*'",
        AsIs,
    ),
    (
        "cargo xtask conformance tracker --cmd 'python3 docs/examples/tracker.py {port}' --only 'TRK-FRAME-*,TRK-BAD-*,TRK-QUEUE-*'",
        AsIs,
    ),
    (
        "cargo xtask conformance tracker --cmd 'python3 docs/examples/tracker.py {port}' --only 'TRK-LIFE-*'",
        AsIs,
    ),
    (
        "cargo xtask conformance tracker --cmd 'python3 docs/examples/tracker.py {port}'",
        AsIs,
    ),
    (
        "cargo xtask conformance tracker --cmd 'python3 docs/examples/tracker.py {port}' --exhaustive",
        AsIs,
    ),
    // docs/vectors.md
    ("python3 docs/examples/check_vectors.py tests/vectors", AsIs),
    (
        "cargo run --bin tvm-rpc -- relay --listen 127.0.0.1:9191 --to 127.0.0.1:9190 --record session.json",
        NotHere("as on the page of the suite"),
    ),
    (
        "cargo run --bin tvm-rpc -- decode session.json",
        As("tvm-rpc decode $SCRATCH/talk.json"),
    ),
    (
        "cargo run --bin tvm-rpc -- decode --brief tests/vectors/traces/apache-tvm-0.27.0.post1/session_files.json",
        AsIs,
    ),
];
