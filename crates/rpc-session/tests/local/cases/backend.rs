//! A session on a backend with a device whose memory is not this machine's.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use rpc_proto::{
    DataType, Device, DeviceAttr, DeviceType, OwnedValue, Returned, TensorView, Value,
};
use rpc_session::{
    Arg, Backend, CompiledModule, DeviceMemory, Exception, Functions, LocalFunction, LocalModule,
    LocalOptions, LocalTensor, WorkDir,
};

use super::client::{Client, value, view};
use super::{LocalSession, Session as _, bisync, twin_test};

const BOARD: Device = Device {
    device_type: DeviceType::EXT_DEV,
    id: 0,
};

/// What a backend was asked, in short.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Memory that is copied to and fro.
struct BoardMemory(Mutex<Vec<u8>>);

impl DeviceMemory for BoardMemory {
    fn nbytes(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    fn device(&self) -> Device {
        BOARD
    }

    fn is_host(&self) -> bool {
        false
    }

    fn read(&self, range: Range<usize>, reader: &mut dyn FnMut(&[u8])) -> Result<(), Exception> {
        let copy = self.0.lock().unwrap()[range].to_vec();
        reader(&copy);
        Ok(())
    }

    fn write(
        &self,
        range: Range<usize>,
        writer: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), Exception> {
        // What the writer finds means nothing, so it has to write all.
        let mut copy = vec![0xaa; range.len()];
        writer(&mut copy);
        self.0.lock().unwrap()[range].copy_from_slice(&copy);
        Ok(())
    }
}

/// A module with one function, `seven`.
struct Compiled(Log);

impl CompiledModule for Compiled {
    fn get_function(&self, name: &str, _: bool) -> Result<Option<LocalFunction>, Exception> {
        match name {
            "seven" => Ok(Some(LocalFunction::new(name, || 7))),
            "broken" => Err(Exception::new("OSError", "the library is gone")),
            _ => Ok(None),
        }
    }

    fn import(&self, _: &dyn CompiledModule) -> Result<(), Exception> {
        self.0.note("import");
        Ok(())
    }
}

struct Board(Log);

impl Board {
    fn memory(nbytes: u64) -> Box<dyn DeviceMemory> {
        let len = usize::try_from(nbytes).unwrap();
        Box::new(BoardMemory(Mutex::new(vec![0; len])))
    }
}

impl Backend for Board {
    fn function(&self, name: &str, files: Option<&WorkDir>) -> Option<LocalFunction> {
        assert!(files.is_none());
        let log = self.0.clone();
        match name {
            "load" => Some(LocalFunction::new(name, move || {
                LocalModule::compiled(Compiled(log.clone()))
            })),
            "runtime.RPCTimeEvaluator" => Some(LocalFunction::packed(name, move |_| {
                log.note("time");
                Ok(LocalFunction::new("evaluator", || b"12345678".to_vec()).into())
            })),
            _ => None,
        }
    }

    fn check_device(&self, device: Device) -> Result<(), Exception> {
        match device {
            BOARD => Ok(()),
            other => Err(Exception::runtime(format!("no {other}"))),
        }
    }

    fn attr(&self, _: Device, attr: DeviceAttr) -> Result<OwnedValue, Exception> {
        Ok(match attr {
            DeviceAttr::TOTAL_GLOBAL_MEMORY => Value::Int(1 << 40),
            _ => Value::Int(attr.0.into()),
        })
    }

    fn allocate(
        &self,
        _: Device,
        nbytes: u64,
        alignment: u64,
        _: DataType,
    ) -> Result<Box<dyn DeviceMemory>, Exception> {
        self.0.note(format!("allocate {nbytes} {alignment}"));
        Ok(Self::memory(nbytes))
    }

    fn allocate_tensor(
        &self,
        tensor: &TensorView,
        scope: Option<&str>,
    ) -> Result<Box<dyn DeviceMemory>, Exception> {
        self.0.note(format!("allocate in {scope:?}"));
        Ok(Self::memory(tensor.nbytes().unwrap()))
    }

    fn copy(&self, from: &LocalTensor, to: &LocalTensor, stream: u64) -> Result<(), Exception> {
        self.0.note(format!("copy on {stream}"));
        from.copy_to(to)
    }

    fn create_stream(&self, _: Device) -> Result<u64, Exception> {
        Ok(5)
    }

    fn free_stream(&self, device: Device, stream: u64) -> Result<(), Exception> {
        self.sync_stream(device, stream)
    }

    fn set_stream(&self, device: Device, stream: u64) -> Result<(), Exception> {
        self.sync_stream(device, stream)
    }

    fn current_stream(&self, _: Device) -> Result<u64, Exception> {
        Ok(6)
    }

    fn sync_stream(&self, _: Device, stream: u64) -> Result<(), Exception> {
        self.0.note(format!("stream {stream}"));
        Ok(())
    }
}

fn client(functions: &Functions) -> (Client, Log) {
    let log = Log::default();
    let options = LocalOptions::default().with_memory(8 << 20);
    let session = LocalSession::new(functions, None, options);
    let session = session.with_backend(Arc::new(Board(log.clone())));
    (Client { session }, log)
}

fn on_board(data: u64, nbytes: i64) -> TensorView {
    TensorView {
        device: BOARD,
        ..view(data, &[nbytes], DataType::UINT8)
    }
}

#[bisync]
#[twin_test]
async fn copies_to_another_device_are_exact() {
    let (mut client, log) = client(&Functions::new());
    let sizes = [0, 1, 4097, (1 << 20) + 5, 3_000_001];
    for size in sizes {
        let mut there = on_board(0, size);
        there.data = client
            .session
            .allocate_tensor(&there, Some("texture"))
            .await
            .unwrap();
        assert_eq!(log.take(), [r#"allocate in Some("texture")"#]);
        let sent: Vec<_> = (0..size)
            .map(|index| (index * 31).to_le_bytes()[0])
            .collect();
        client.write(&there, &sent).await.unwrap();
        assert!(client.read_all(&there).await == sent, "{size} bytes differ");
        client.session.free_data(BOARD, there.data).await.unwrap();
    }
    assert_eq!(client.session.memory(), 0);
}

#[bisync]
#[twin_test]
async fn a_part_of_a_device_memory_leaves_the_rest() {
    let (mut client, log) = client(&Functions::new());
    let data = client
        .session
        .allocate(BOARD, 8, 16, DataType::FLOAT32)
        .await
        .unwrap();
    assert_eq!(log.take(), ["allocate 8 16"]);
    client.write(&on_board(data, 8), b"abcdefgh").await.unwrap();
    client.write(&on_board(data + 2, 3), b"XYZ").await.unwrap();
    let there = on_board(data, 8);
    assert_eq!(client.read_all(&there).await, b"abXYZfgh");
    let (from, to) = (on_board(data, 3), on_board(data + 5, 3));
    client.session.copy_among(&from, &to, 5).await.unwrap();
    assert_eq!(log.take(), ["copy on 5"]);
    assert_eq!(client.read_all(&there).await, b"abXYZabX");
}

#[bisync]
#[twin_test]
async fn what_a_session_checks_it_checks_ahead_of_a_backend() {
    let (mut client, log) = client(&Functions::new());
    let over = client
        .session
        .allocate(BOARD, 9 << 20, 0, DataType::INT8)
        .await;
    assert_eq!(over.unwrap_err().kind(), "MemoryError");
    let odd = client.session.allocate(BOARD, 1, 3, DataType::INT8).await;
    assert_eq!(odd.unwrap_err().kind(), "ValueError");
    let elsewhere = client
        .session
        .allocate(Device::cpu(0), 1, 0, DataType::INT8)
        .await;
    assert_eq!(elsewhere.unwrap_err().message(), "no cpu:0");
    let wild = client.read(&on_board(4096, 1), 1).await;
    assert_eq!(wild.unwrap_err().kind(), "ValueError");
    assert_eq!(log.take(), [""; 0]);
    let data = client
        .session
        .allocate(BOARD, 4, 0, DataType::INT8)
        .await
        .unwrap();
    let beyond = client.read(&on_board(data + 1, 4), 4).await;
    assert_eq!(beyond.unwrap_err().kind(), "ValueError");
    let memory = client
        .session
        .attr(BOARD, DeviceAttr::TOTAL_GLOBAL_MEMORY)
        .await;
    assert_eq!(memory.unwrap(), Value::Int(8 << 20));
}

#[bisync]
#[twin_test]
async fn streams_are_those_of_the_backend() {
    let (mut client, log) = client(&Functions::new());
    assert_eq!(client.session.create_stream(BOARD).await.unwrap(), 5);
    assert_eq!(client.session.current_stream(BOARD).await.unwrap(), 6);
    client.session.sync_stream(BOARD, 5).await.unwrap();
    client.session.set_stream(BOARD, 6).await.unwrap();
    client.session.free_stream(BOARD, 7).await.unwrap();
    assert_eq!(log.take(), ["stream 5", "stream 6", "stream 7"]);
}

#[bisync]
#[twin_test]
async fn compiled_modules_are_modules() {
    let mut functions = Functions::new();
    functions
        .add("own", || LocalModule::new().with("eight", || 8))
        .add("add", |x: i64| x + 1);
    let (mut client, log) = client(&functions);
    let mut modules = Vec::new();
    for name in ["load", "load", "own"] {
        let Value::Module(handle) = value(client.call_named(name, &[]).await.unwrap()) else {
            panic!("{name} gives no module")
        };
        modules.push(Value::Module(handle));
    }
    let [compiled, other, own] = &modules[..] else {
        unreachable!("there are three")
    };
    const IMPORT: &str = "tvm.rpc.server.ImportModule";
    const GET: &str = "tvm.rpc.server.ModuleGetFunction";
    client
        .call_named(IMPORT, &[compiled.clone(), other.clone()])
        .await
        .unwrap();
    assert_eq!(log.take(), ["import"]);
    let refused = client
        .call_named(IMPORT, &[compiled.clone(), own.clone()])
        .await;
    assert_eq!(refused.unwrap_err().kind(), "TypeError");
    client
        .call_named(IMPORT, &[own.clone(), compiled.clone()])
        .await
        .unwrap();
    for (module, name, expected) in [(compiled, "seven", 7), (own, "eight", 8), (own, "seven", 7)] {
        let args = [module.clone(), name.into(), true.into()];
        let Value::Function(found) = value(client.call_named(GET, &args).await.unwrap()) else {
            panic!("there is no {name}")
        };
        let called = client.call(found, &[]).await.unwrap();
        assert_eq!(called, Returned::Value(Value::Int(expected)));
    }
    let args = [own.clone(), "broken".into(), true.into()];
    let broken = client.call_named(GET, &args).await.unwrap_err();
    assert_eq!(broken.message(), "the library is gone");

    // A backend times what is compiled, and what it alone knows; a session its own functions.
    for (module, name, by_backend) in [
        (compiled.clone(), "seven", true),
        (Value::None, "load", true),
        (Value::None, "own", false),
        (own.clone(), "eight", false),
    ] {
        let mut args = vec![module, name.into()];
        args.extend([12, 0, 1, 1, 0, 1, 0, 1, 0].map(Value::Int));
        args[2] = Value::Int(1);
        args.push("".into());
        client
            .call_named("runtime.RPCTimeEvaluator", &args)
            .await
            .unwrap();
        assert_eq!(!log.take().is_empty(), by_backend, "{name}");
    }
}

#[test]
fn a_function_is_known_by_what_it_is_made_of() {
    let closure = |_: &[Arg<'_>]| Ok(rpc_session::LocalValue::None);
    let function = LocalFunction::of("f", closure);
    assert_eq!(function.name(), "f");
    assert!(function.call(&[]).is_ok());
    let other = |_: &[Arg<'_>]| Ok(rpc_session::LocalValue::None);
    fn is<T: rpc_session::Callable>(function: &LocalFunction, _: &T) -> bool {
        function.downcast_ref::<T>().is_some()
    }
    assert!(is(&function, &closure));
    assert!(!is(&function, &other));
}
