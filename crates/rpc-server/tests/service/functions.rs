//! What the sessions of these tests can do.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, io, process, thread};

use rpc_server::{Isolation, SessionContext, WorkerCommand, worker};
use rpc_session::blocking::{Constructors, LocalSessions};
use rpc_session::{Exception, Functions, LocalOptions, ServeOptions, WorkDir, test_functions};

fn functions(session: &SessionContext) -> Functions {
    let mut functions = test_functions();
    let session = session.clone();
    functions
        .add("test.pid", || i64::from(process::id()))
        .add("test.work_dir", move || {
            session.work_dir.to_str().unwrap().to_owned()
        })
        .add("test.current_dir", || {
            env::current_dir().unwrap().to_str().unwrap().to_owned()
        })
        .add("test.temporary", || {
            env::temp_dir().to_str().unwrap().to_owned()
        })
        .add("test.abort", || -> () { process::abort() })
        .add("test.exit", || -> () { process::exit(0) })
        .add("test.hang", || -> () {
            loop {
                thread::sleep(Duration::from_secs(60));
            }
        })
        .add("test.panic", || -> () { panic!("a function of a test") })
        .add("test.print", |text: &str| println!("{text}"))
        .add("test.stdin", || {
            let mut input = String::new();
            io::stdin().read_to_string(&mut input)?;
            Ok::<_, Exception>(input)
        })
        // A child that would outlive its parent, with the parent's input.
        .add("test.leave_a_child", || {
            let child = Command::new("sleep")
                .arg("600")
                .stdout(Stdio::null())
                .spawn()?;
            Ok::<_, Exception>(i64::from(child.id()))
        });
    functions
}

fn constructors(session: &SessionContext) -> Result<Constructors, Exception> {
    let files = WorkDir::new(&session.work_dir)?;
    let options = LocalOptions::default();
    let local = LocalSessions::new(functions(session), Some(files), options);
    Ok(Constructors::new(local))
}

/// Serves a session, if a server started this process for one.
pub(crate) fn run_worker() {
    worker::run(&ServeOptions::default(), constructors).unwrap();
    // Before it is printed how the test went.
    process::exit(0);
}

/// Sessions in worker processes.
pub(crate) fn in_workers() -> Isolation {
    let program = WorkerCommand::this_program().unwrap();
    let arguments = super::process::arguments("worker_process");
    Isolation::Process(arguments.into_iter().fold(program, WorkerCommand::arg))
}

/// Sessions on threads.
pub(crate) fn on_threads() -> Isolation {
    Isolation::in_process(constructors)
}
