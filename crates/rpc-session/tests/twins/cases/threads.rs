//! One session, many threads.

use rpc_proto::Packet;
use rpc_session::args;

use super::session::open;
use crate::support::Server;

#[test]
fn threads_take_turns() {
    const THREADS: i64 = 8;
    const CALLS: i64 = 200;
    let server = Server::start(|talk| {
        talk.function("f", 10);
        let mut calls = 0;
        loop {
            let request = talk.request();
            match request.packet() {
                Packet::Call { args, .. } => {
                    calls += 1;
                    let [rpc_proto::Value::Int(number)] = args[..] else {
                        panic!("{args:?}");
                    };
                    talk.value(number + 1);
                }
                Packet::Shutdown => return calls,
                other => panic!("{other:?}"),
            }
        }
    });
    let session = open(&server);
    let function = session.function("f").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let function = function.clone();
            scope.spawn(move || {
                for number in thread * CALLS..(thread + 1) * CALLS {
                    let next: i64 = function.call(args![number]).unwrap().try_into().unwrap();
                    assert_eq!(next, number + 1);
                }
            });
        }
    });
    drop((function, session));
    assert_eq!(server.finish(), THREADS * CALLS);
}
