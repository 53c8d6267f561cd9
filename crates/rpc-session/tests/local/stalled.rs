//! A client that stalls in the middle of its data, and others that use the same memory.

use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rpc_proto::{DataType, Returned};
use rpc_session::blocking::{CallResult, LocalSession, Session};
use rpc_session::{Functions, LocalOptions, LocalTensor};

/// When it has waited too long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Says that it is read from, and has nothing until it is told to go on.
struct Stalled<'a> {
    began: mpsc::Sender<()>,
    go_on: mpsc::Receiver<()>,
    over: &'a AtomicBool,
}

impl Read for Stalled<'_> {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.began.send(()).unwrap();
        let _ = self.go_on.recv_timeout(PATIENCE);
        self.over.store(true, Ordering::SeqCst);
        Err(io::Error::other("gone"))
    }
}

#[test]
fn others_do_not_wait_for_a_stalled_client() {
    let shared = LocalTensor::zeros(&[64], DataType::UINT8).unwrap();
    let mut functions = Functions::new();
    let (lent, looked_at) = (shared.clone(), shared);
    functions.add("get", move || lent.clone());
    functions.add("sum", move || -> Result<i64, rpc_session::Exception> {
        Ok(looked_at.to_vec::<u8>()?.into_iter().map(i64::from).sum())
    });
    let session = || LocalSession::new(&functions, None, LocalOptions::default());
    let (began, begins) = mpsc::channel();
    let (let_go, go_on) = mpsc::channel();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let over = &over;
        let mut first = session();
        scope.spawn(move || {
            let get = first.get_function("get").unwrap().unwrap();
            let Ok(CallResult::Value(Returned::Tensor { tensor, .. })) = first.call(get, &[], None)
            else {
                panic!("it returns a tensor");
            };
            let mut stalled = Stalled { began, go_on, over };
            first.copy_to(&tensor, 64, &mut stalled).unwrap_err();
        });
        begins.recv_timeout(PATIENCE).unwrap();
        let mut second = session();
        let sum = second.get_function("sum").unwrap().unwrap();
        assert!(second.call(sum, &[], None).is_ok());
        assert!(
            !over.load(Ordering::SeqCst),
            "it waited for the other client"
        );
        let_go.send(()).unwrap();
    });
}
