//! Modules of a server: `SRV-FILE-1`.

use rpc_proto::{Returned, Value};

use super::by_hand as hand;
use crate::case::{Case, Level};
use crate::roles::Server;
use crate::roles::server::Session;
use crate::stage::Outcome;

const SYSTEM_LIB: &str = "ffi.SystemLib";
const GET_FUNCTION: &str = "tvm.rpc.server.ModuleGetFunction";
const LOAD: &str = "tvm.rpc.server.load_module";
const MODULES: &[&str] = &[SYSTEM_LIB, GET_FUNCTION];

pub(super) const CASES: &[Case] = &[
    Case::server("SRV-FILE-101", Level::Must, "10.2.1", system_lib)
        .about(
            "The functions that are linked into the server are a module.",
            "Servers on small devices have no other.",
        )
        .functions(MODULES),
    Case::server("SRV-FILE-102", Level::Must, "10.2.2", no_such_function)
        .about(
            "A function that a module does not have is answered by nothing, and no exception.",
            "Clients look for functions that only some modules have.",
        )
        .functions(MODULES),
    Case::server("SRV-FILE-103", Level::Must, "10.2.3", truth_values)
        .about(
            "Whether to look into imported modules is taken as a truth value, and as an integer.",
            "Clients of different versions send either.",
        )
        .functions(MODULES),
    Case::server("SRV-FILE-104", Level::Must, "10.2.4", missing_module)
        .about(
            "A module of a file that there is not is refused by an exception, and the session goes on.",
            "Uploads fail.",
        )
        .functions(&[LOAD]),
    Case::server("SRV-FILE-105", Level::Must, "10.2.4", no_module)
        .about(
            "A file that is no module is refused by an exception, and the session goes on.",
            "Modules for other processors are uploaded by mistake.",
        )
        .functions(&[LOAD, "tvm.rpc.server.upload"]),
    Case::server("SRV-FILE-106", Level::Must, "10.2.5", wrong_arguments)
        .about(
            "What is no module is refused where a module has to be, by an exception, and the session goes on.",
            "A client with a mistake must learn of it.",
        )
        .functions(MODULES),
    Case::server("SRV-FILE-107", Level::Must, "10.2.1", given_up_and_again)
        .about(
            "A module can be given up, and asked for again.",
            "Clients do so for each model.",
        )
        .functions(MODULES),
];

fn module(session: &mut Session, check: &str) -> Outcome<u64> {
    let function = session.function(SYSTEM_LIB)?;
    match session.call(check, function, vec![])? {
        Returned::Value(Value::Module(handle)) if handle != 0 => Ok(handle),
        other => Err(session
            .stage()
            .fail(check, "a module", format_args!("{other:?}"))),
    }
}

fn system_lib(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let module = module(&mut session, "module")?;
    session.free("freed", module)
}

fn no_such_function(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let module = module(&mut session, "module")?;
    let get = session.function(GET_FUNCTION)?;
    for (check, imports) in [("with-imports", true), ("without-imports", false)] {
        let args = vec![
            Value::Module(module),
            "no such function".into(),
            imports.into(),
        ];
        session.send_call(get, args)?;
        let nothing = [hand::result(hand::NONE, hand::none())];
        session.expect_bytes(check, "0, and none", &nothing)?;
    }
    session.free("freed", module)
}

fn truth_values(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let module = module(&mut session, "module")?;
    let get = session.function(GET_FUNCTION)?;
    for (check, imports) in [("integer-1", hand::int(1)), ("integer-0", hand::int(0))] {
        let handle = hand::value(hand::MODULE, &module.to_le_bytes());
        let args = [handle, hand::raw(hand::RAW_STR, b"no such"), imports];
        session.expect_by_hand(check, get, &args, &Value::None)?;
    }
    Ok(())
}

fn missing_module(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let load = session.function(LOAD)?;
    session.send_call(load, vec!["no-such-module.so".into()])?;
    session.expect_exception_only("missing").map(drop)
}

fn no_module(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let upload = session.function("tvm.rpc.server.upload")?;
    let bytes: &[u8] = b"this is no library";
    let args = vec!["no-module.so".into(), bytes.into()];
    session.expect_call("uploaded", upload, args, &Value::None)?;
    let load = session.function(LOAD)?;
    session.send_call(load, vec!["no-module.so".into()])?;
    session.expect_exception_only("no-library").map(drop)
}

fn wrong_arguments(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let get = session.function(GET_FUNCTION)?;
    for (check, value) in [
        ("none", Value::None),
        ("integer", 1.into()),
        ("text", "m".into()),
    ] {
        session.send_call(get, vec![value, "vadd".into(), true.into()])?;
        session.expect_exception_only(check)?;
    }
    Ok(())
}

fn given_up_and_again(server: &Server) -> Outcome {
    let mut session = server.session()?;
    for _ in 0..3 {
        let module = module(&mut session, "module")?;
        session.free("freed", module)?;
    }
    session.shut_down()
}
