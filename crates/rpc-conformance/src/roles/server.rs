//! A server under test: the suite plays clients.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rpc_proto::codes::{HandshakeCode, RPC_MAGIC};
use rpc_proto::{
    DataType, Device, Dialect, OwnedValue, Packet, Returned, Shape, Syscall, TensorView, Value,
    Values,
};

use super::packets::{Came, PacketWire};
use super::served::Listening;
use crate::peer::Running;
use crate::stage::{Conditions, Outcome, SERVED_FOR, Stage, Stop};
use crate::wire::{Shortfall, Wire, own_ip};

/// The longest key that the suite takes from a peer, in bytes.
const LONGEST_KEY: usize = 64 * 1024;

/// The server under test.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) stage: Arc<Stage>,
    pub(crate) running: Arc<Running>,
    /// The key that it accepts: the match key of a server without a tracker.
    pub(crate) key: String,
    pub(crate) dialect: Dialect,
}

/// A session on the server under test.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) packets: PacketWire,
}

/// The bytes of a handshake as a client sends them.
pub(crate) fn introduction(key: &[u8]) -> Vec<u8> {
    let length = u32::try_from(key.len()).unwrap_or(u32::MAX);
    [&RPC_MAGIC.to_le_bytes(), &length.to_le_bytes(), key].concat()
}

/// The length and the text of a key, which either side sends behind the first word of a handshake.
pub(super) fn key_text(wire: &mut Wire) -> Result<String, String> {
    let short = |short: Shortfall| short.to_string();
    let length = wire.read(4).map_err(short)?;
    let length = i32::from_le_bytes(length.try_into().unwrap_or_default());
    let length = usize::try_from(length)
        .ok()
        .filter(|&length| length <= LONGEST_KEY)
        .ok_or_else(|| format!("a length of {length}"))?;
    let key = wire.read(length).map_err(short)?;
    String::from_utf8(key).map_err(|error| error.to_string())
}

impl Server {
    /// Where it listens.
    pub(crate) fn addr(&self) -> SocketAddr {
        self.running.addr()
    }

    /// Where the suite plays the next server of a chain.
    pub(crate) fn listening(&self, as_whom: &'static str) -> Outcome<Listening> {
        Listening::new(&self.stage, own_ip(self.addr()), as_whom)
    }

    /// The same server apart from this case: with time and checks of its own, and this long for a step.
    pub(crate) fn apart(&self, step: Duration) -> Self {
        let conditions = Conditions {
            step,
            is_recorded: false,
            ..self.stage.conditions.clone()
        };
        Self {
            stage: Stage::new(self.stage.case, conditions),
            ..self.clone()
        }
    }

    /// Sees that the server serves the next client after what was tried before (8.2.3). One that does not
    /// is started again where the suite can do that: what is tried next is not to be blamed for it.
    pub(crate) fn recovered(&self, check: &str) -> Outcome {
        let began = Instant::now();
        let life = self.running.life();
        // A server that is alive needs a moment.
        let apart = self.apart(self.stage.conditions.step / 5);
        if apart.expect_alive().is_ok() {
            return Ok(());
        }
        let name = format!("{SERVED_FOR}{check}");
        let expected = "a server that serves the next client";
        let failed = self
            .stage
            .fail(&name, expected, apart.stage.first_failure());
        if !self.running.is_ours() {
            return Err(failed);
        }
        let again = self.running.again(life);
        self.stage.extend(began.elapsed());
        again.map_err(|error| Stop::Suite(format!("the server does not come back: {error}")))
    }

    /// A connection on which nothing was said.
    pub(crate) fn connect(&self) -> Outcome<PacketWire> {
        let wire = Wire::connect(&self.stage, self.addr(), "suite")?;
        Ok(PacketWire {
            wire,
            dialect: self.dialect,
        })
    }

    /// The key that a client of this server names, with options behind it.
    pub(crate) fn client_key(&self, options: &str) -> String {
        format!("client:{}{options}", self.key)
    }

    /// A connection after the handshake.
    pub(crate) fn shaken(&self, options: &str) -> Outcome<PacketWire> {
        let mut packets = self.connect()?;
        let key = self.client_key(options);
        packets.wire.send_whole(&introduction(key.as_bytes()));
        packets.expect_accepted("handshake")?;
        Ok(packets)
    }

    /// A local session.
    pub(crate) fn session(&self) -> Outcome<Session> {
        self.constructed("", Vec::new())
    }

    /// A session that this constructor makes, with options behind the key of the handshake.
    pub(crate) fn constructed(
        &self,
        options: &str,
        constructor: Vec<Value<'_>>,
    ) -> Outcome<Session> {
        let mut packets = self.shaken(options)?;
        packets.send(&Packet::init(Values::from_iter(constructor)))?;
        let came = packets.packet("init")?;
        let holds = matches!(came.packet, Packet::Return(_));
        packets.came_check("init-accepted", holds, "a return packet", None, &came)?;
        Ok(Session { packets })
    }

    /// Checks that the server still serves others.
    pub(crate) fn expect_alive(&self) -> Outcome {
        let mut session = self.session()?;
        session.shut_down()
    }
}

impl PacketWire {
    /// Checks that the handshake was accepted, and gives the server's key.
    pub(crate) fn expect_accepted(&mut self, check: &str) -> Outcome<String> {
        self.expect_code(check, HandshakeCode::SUCCESS)?;
        let stage = self.stage();
        let key = key_text(&mut self.wire);
        key.map_err(|found| stage.fail("server-key", "the length and the text of a key", found))
    }

    /// Checks the code that answers a handshake.
    pub(crate) fn expect_code(&mut self, check: &str, expected: HandshakeCode) -> Outcome {
        let expected_bytes = expected.0.to_le_bytes();
        let stage = self.stage();
        let words = format!("the code {expected}");
        match self.wire.read(4) {
            Ok(bytes) if bytes == expected_bytes => stage.passes(check),
            Ok(bytes) => {
                let code = i32::from_le_bytes(bytes.as_slice().try_into().unwrap_or_default());
                let found = HandshakeCode(code).to_string();
                Err(stage.fail_with(check, &words, found, Some(&expected_bytes), Some(&bytes)))
            }
            Err(short) => {
                let found = short.to_string();
                Err(stage.fail_with(check, &words, found, Some(&expected_bytes), None))
            }
        }
    }
}

impl Session {
    pub(crate) fn stage(&self) -> Arc<Stage> {
        self.packets.stage()
    }

    /// Sends a syscall and takes the one value that answers it.
    pub(crate) fn syscall(&mut self, check: &str, syscall: Syscall<'_>) -> Outcome<OwnedValue> {
        self.packets.send(&Packet::Syscall(syscall))?;
        self.value(check)
    }

    /// Takes a return packet of one value.
    pub(crate) fn value(&mut self, check: &str) -> Outcome<OwnedValue> {
        let came = self.packets.packet(check)?;
        match &came.packet {
            Packet::Return(values) if values.len() == 1 => Ok(values[0].clone()),
            _ => {
                let failed = self.packets.came_check(
                    check,
                    false,
                    "a return packet of one value",
                    None,
                    &came,
                );
                Err(failed.err().unwrap_or(Stop::Failed))
            }
        }
    }

    /// Checks that a return packet of nothing comes.
    pub(crate) fn expect_void(&mut self, check: &str) -> Outcome {
        self.packets.expect(check, &Packet::void())
    }

    /// Checks that an exception comes, and gives its text.
    pub(crate) fn expect_exception(&mut self, check: &str) -> Outcome<String> {
        let came = self.packets.packet(check)?;
        match &came.packet {
            Packet::Exception { text } => Ok(text.clone().into_owned()),
            _ => {
                let failed = self
                    .packets
                    .came_check(check, false, "an exception", None, &came);
                Err(failed.err().unwrap_or(Stop::Failed))
            }
        }
    }

    /// The handle of a global function; 0 where the server has none of that name.
    pub(crate) fn look_up(&mut self, name: &str) -> Outcome<u64> {
        let syscall = Syscall::GetGlobalFunc { name: name.into() };
        let value = self.syscall("look-up", syscall)?;
        match value {
            Value::Pointer(handle) => Ok(handle),
            Value::None => Ok(0),
            other => Err(self.stage().fail("look-up", "a pointer", other.kind())),
        }
    }

    /// The handle of a global function that the case needs.
    pub(crate) fn function(&mut self, name: &str) -> Outcome<u64> {
        match self.look_up(name)? {
            0 => Err(Stop::Unsupported(format!(
                "the server has no function {name}"
            ))),
            handle => Ok(handle),
        }
    }

    /// Sends a call.
    pub(crate) fn send_call(&mut self, function: u64, args: Vec<Value<'_>>) -> Outcome {
        self.packets.send(&Packet::Call {
            function,
            args: Values::from_iter(args),
            bulk: None,
        })
    }

    /// Calls a function and takes its result.
    pub(crate) fn call(
        &mut self,
        check: &str,
        function: u64,
        args: Vec<Value<'_>>,
    ) -> Outcome<Returned<'static>> {
        self.send_call(function, args)?;
        self.returned(check)
    }

    /// Takes the result of a call.
    pub(crate) fn returned(&mut self, check: &str) -> Outcome<Returned<'static>> {
        let came = self.packets.packet(check)?;
        let found = match &came.packet {
            Packet::Return(values) => Packet::returned(values.clone(), self.packets.dialect)
                .map(Returned::into_owned)
                .map_err(|error| error.to_string()),
            Packet::BulkReturn { .. } => bulk_returned(&came),
            other => Err(format!("{other:?}")),
        };
        found.map_err(|why| {
            let failed = self
                .packets
                .came_check(check, false, "the result of a call", None, &came);
            self.packets.wire.note(why);
            failed.err().unwrap_or(Stop::Failed)
        })
    }

    /// Calls a function and checks that it gives this value.
    pub(crate) fn expect_call(
        &mut self,
        check: &str,
        function: u64,
        args: Vec<Value<'_>>,
        expected: &Value<'_>,
    ) -> Outcome {
        let found = self.call(check, function, args)?;
        let holds = matches!(&found, Returned::Value(value) if value == expected);
        self.stage()
            .check(check, holds, Shown(expected), format_args!("{found:?}"))
    }

    /// Gives up a handle.
    pub(crate) fn free(&mut self, check: &str, handle: u64) -> Outcome {
        self.packets
            .send(&Packet::Syscall(Syscall::FreeHandle { handle, kind: None }))?;
        self.expect_void(check)
    }

    /// Allocates a tensor on the first processor.
    pub(crate) fn allocate(&mut self, shape: &[i64], dtype: DataType) -> Outcome<TensorView> {
        let mut tensor = TensorView {
            data: 0,
            device: Device::cpu(0),
            dtype,
            shape: Shape::from(shape),
            byte_offset: 0,
        };
        let syscall = Syscall::AllocDataWithScope {
            tensor: tensor.clone(),
            scope: None,
        };
        match self.syscall("allocate", syscall)? {
            Value::Pointer(data) => tensor.data = data,
            other => return Err(self.stage().fail("allocate", "a pointer", other.kind())),
        }
        Ok(tensor)
    }

    /// Copies bytes into a tensor, from its byte offset on.
    pub(crate) fn upload(&mut self, check: &str, tensor: &TensorView, bytes: &[u8]) -> Outcome {
        let packet = Packet::CopyTo {
            tensor: tensor.clone(),
            nbytes: bytes.len() as u64,
        };
        self.packets.send_with(&packet, bytes)?;
        self.expect_void(check)
    }

    /// Copies bytes out of a tensor, from its byte offset on.
    pub(crate) fn download(
        &mut self,
        check: &str,
        tensor: &TensorView,
        nbytes: usize,
    ) -> Outcome<Vec<u8>> {
        self.packets.send(&Packet::CopyFrom {
            tensor: tensor.clone(),
            nbytes: nbytes as u64,
        })?;
        let came = self.packets.packet(check)?;
        let holds = matches!(came.packet, Packet::CopyAck { .. }) && came.payload.len() == nbytes;
        let expected = format!("a copy ack with {nbytes} bytes");
        self.packets
            .came_check(check, holds, &expected, None, &came)?;
        Ok(came.payload)
    }

    /// Frees the memory of a tensor.
    pub(crate) fn release(&mut self, check: &str, tensor: &TensorView) -> Outcome {
        let syscall = Syscall::FreeData {
            device: tensor.device,
            data: tensor.data,
        };
        self.packets.send(&Packet::Syscall(syscall))?;
        self.expect_void(check)
    }

    /// Ends the session, and checks that the server closes the connection.
    pub(crate) fn shut_down(&mut self) -> Outcome {
        self.packets.send(&Packet::Shutdown)?;
        self.packets.expect_end("shutdown").map(drop)
    }
}

/// A value, shortened: text and bytes of megabytes are not for reading.
struct Shown<'a>(&'a Value<'a>);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Value::Bytes(bytes) if bytes.len() > 64 => write!(f, "{} bytes", bytes.len()),
            Value::Str(text) if text.len() > 256 => write!(f, "a text of {} bytes", text.len()),
            value => write!(f, "{value:?}"),
        }
    }
}

fn bulk_returned(came: &Came) -> Result<Returned<'static>, String> {
    use rpc_proto::BulkKind;
    let Packet::BulkReturn { kind, .. } = came.packet else {
        return Err("no payload".to_owned());
    };
    let payload = came.payload.clone();
    Ok(Returned::Value(match kind {
        BulkKind::Bytes => Value::from(payload),
        BulkKind::Text => Value::from(String::from_utf8(payload).map_err(|e| e.to_string())?),
    }))
}
