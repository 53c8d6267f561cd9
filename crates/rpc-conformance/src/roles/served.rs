//! The suite as a server: for clients under test, and as the next server of a chain. It listens on a
//! port of its own, reads who comes, and lets the case answer packet by packet.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;

use rpc_proto::codes::{HandshakeCode, PROTOCOL_VERSION, RPC_MAGIC};
use rpc_proto::packet::encode_returned;
use rpc_proto::{BulkKind, Dialect, Limits, OwnedValue, Packet, Returned, Value, Values};

use socket2::{Domain, SockRef, Socket, Type};

use super::packets::{Came, PacketWire};
use super::server::{introduction, key_text};
use crate::stage::{Outcome, Stage, Stop};
use crate::transcript::End;
use crate::wire::Wire;

/// A port on which the suite waits for the peer under test.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(crate) stage: Arc<Stage>,
    listener: TcpListener,
    addr: SocketAddr,
    dialect: Dialect,
    as_whom: &'static str,
}

/// A peer that said who it is and waits for the answer.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(crate) packets: PacketWire,
    /// All of its key, as `client:MATCHKEY -timeout=60`.
    pub(crate) key: String,
}

/// A connection behind the handshake, on which the suite serves.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) packets: PacketWire,
}

impl Listening {
    /// Listens on a free port of this address. The transcript names the suite `as_whom`.
    pub(crate) fn new(stage: &Arc<Stage>, ip: IpAddr, as_whom: &'static str) -> Outcome<Self> {
        let listening = Self::closed(stage, ip, as_whom)?;
        listening.open()?;
        Ok(listening)
    }

    /// Takes a free port, on which connections are refused until it is opened.
    pub(crate) fn closed(stage: &Arc<Stage>, ip: IpAddr, as_whom: &'static str) -> Outcome<Self> {
        let bound = || {
            let free = SocketAddr::from((ip, 0));
            let socket = Socket::new(Domain::for_address(free), Type::STREAM, None)?;
            socket.bind(&free.into())?;
            let listener = TcpListener::from(socket);
            let addr = listener.local_addr()?;
            Ok((listener, addr))
        };
        let (listener, addr) = bound().map_err(cannot_listen)?;
        Ok(Self {
            stage: Arc::clone(stage),
            listener,
            addr,
            dialect: Dialect::Ffi,
            as_whom,
        })
    }

    /// Takes connections from now on.
    pub(crate) fn open(&self) -> Outcome {
        const BACKLOG: i32 = 16;
        SockRef::from(&self.listener)
            .listen(BACKLOG)
            .map_err(cannot_listen)
    }

    /// Where it listens.
    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The address of its host, as text.
    pub(crate) fn host(&self) -> String {
        self.addr.ip().to_string()
    }

    pub(crate) fn port(&self) -> u16 {
        self.addr.port()
    }

    /// A connection that the peer makes, which has to come.
    pub(crate) fn accept(&self, check: &str) -> Outcome<Wire> {
        match Wire::accept(&self.stage, &self.listener, self.as_whom)? {
            Ok(wire) => {
                self.stage.passes(check)?;
                Ok(wire)
            }
            Err(short) => Err(self.stage.fail(check, "a connection", short)),
        }
    }

    /// A connection that the peer has made already.
    pub(crate) fn look(&self) -> Outcome<Option<Wire>> {
        Wire::accept_now(&self.stage, &self.listener, self.as_whom)
    }

    /// Packets on a connection that the peer made.
    pub(crate) fn packets(&self, wire: Wire) -> PacketWire {
        PacketWire {
            wire,
            dialect: self.dialect,
        }
    }

    /// A peer that connects and says who it is, which has to come.
    pub(crate) fn arrival(&self, check: &str) -> Outcome<Arrived> {
        let wire = self.accept(check)?;
        Arrived::read(self.packets(wire), check)
    }

    /// A peer that connects, says who it is and is accepted as by a server of this key.
    pub(crate) fn shaken(&self, check: &str, key: &str) -> Outcome<Served> {
        Ok(self.arrival(check)?.accept(key))
    }

    /// A peer that opens a local session; it is accepted, and its init answered.
    pub(crate) fn session(&self, check: &str) -> Outcome<Served> {
        let mut served = self.shaken(check, "suite")?;
        let constructor = served.init("init")?;
        let holds = constructor.is_empty();
        let found = format!("{constructor:?}");
        self.stage
            .check("no-constructor", holds, "a local session", found)?;
        served.void()?;
        Ok(served)
    }
}

fn cannot_listen(error: std::io::Error) -> Stop {
    Stop::Suite(format!("cannot listen: {error}"))
}

impl Arrived {
    /// Reads who came.
    pub(crate) fn read(mut packets: PacketWire, check: &str) -> Outcome<Self> {
        let stage = packets.stage();
        match key_of(&mut packets.wire) {
            Ok(key) => Ok(Self { packets, key }),
            Err(found) => Err(stage.fail(check, "magic, length and text of a key", found)),
        }
    }

    /// What stands behind the role, up to the first blank.
    pub(crate) fn match_key(&self) -> Option<&str> {
        self.key.strip_prefix("client:")?.split(' ').next()
    }

    /// The words behind the match key.
    pub(crate) fn options(&self) -> Vec<&str> {
        self.key.split_ascii_whitespace().skip(1).collect()
    }

    /// Checks all of its key.
    pub(crate) fn expect_key(&self, check: &str, key: &str) -> Outcome {
        let stage = self.packets.stage();
        stage.check(
            check,
            self.key == key,
            format_args!("{key:?}"),
            format_args!("{:?}", self.key),
        )
    }

    /// Accepts the peer, as a server of this key.
    pub(crate) fn accept(mut self, key: &str) -> Served {
        self.packets.wire.send(&accepted(key));
        Served {
            packets: self.packets,
        }
    }

    /// Answers by this code, and closes.
    pub(crate) fn refuse(mut self, code: HandshakeCode) {
        self.packets.wire.send(&code.0.to_le_bytes());
        self.packets.wire.finish();
    }
}

/// The bytes that accept a handshake.
pub(crate) fn accepted(key: &str) -> Vec<u8> {
    // It is the same as what a client says, with another text: the code of success is the magic.
    introduction(format!("server:{key}").as_bytes())
}

fn key_of(wire: &mut Wire) -> Result<String, String> {
    let magic = wire.read(4).map_err(|short| short.to_string())?;
    if magic != RPC_MAGIC.to_le_bytes() {
        return Err(format!("the first bytes {}", hex::encode(magic)));
    }
    key_text(wire)
}

impl Served {
    pub(crate) fn stage(&self) -> Arc<Stage> {
        self.packets.stage()
    }

    /// Takes the init packet, and gives the constructor and its arguments. It is not answered yet.
    pub(crate) fn init(&mut self, check: &str) -> Outcome<Values<'static>> {
        let came = self.packets.packet(check)?;
        let holds = matches!(&came.packet, Packet::Init { version, .. }
            if version == PROTOCOL_VERSION);
        let expected = format!("an init packet of version {PROTOCOL_VERSION}");
        self.packets
            .came_check("init-version", holds, &expected, None, &came)?;
        match came.packet {
            Packet::Init { constructor, .. } => Ok(constructor),
            _ => Err(Stop::Failed),
        }
    }

    /// Takes the next request.
    pub(crate) fn request(&mut self, check: &str) -> Outcome<Came> {
        self.packets.packet(check)
    }

    /// Answers by nothing.
    pub(crate) fn void(&mut self) -> Outcome {
        self.packets.send(&Packet::void())
    }

    /// Answers by one value, as syscalls are answered.
    pub(crate) fn value(&mut self, value: Value<'_>) -> Outcome {
        self.packets
            .send(&Packet::Return(Values::from_iter([value])))
    }

    /// Answers by the result of a call.
    pub(crate) fn returned(&mut self, returned: &Returned<'_>) -> Outcome {
        let bytes = returned_bytes(returned, self.packets.dialect)?;
        self.packets.wire.send(&bytes);
        Ok(())
    }

    /// Answers by an exception.
    pub(crate) fn exception(&mut self, text: &str) -> Outcome {
        self.packets.send(&Packet::Exception { text: text.into() })
    }

    /// Answers by bytes that a copy asked for.
    pub(crate) fn copy_ack(&mut self, bytes: &[u8]) -> Outcome {
        let nbytes = bytes.len() as u64;
        self.packets.send_with(&Packet::CopyAck { nbytes }, bytes)
    }

    /// Checks that the peer ends the session: by a shutdown or without, and then the connection.
    pub(crate) fn expect_end(&mut self, check: &str) -> Outcome<End> {
        self.packets.expect_end(check)
    }
}

/// The bytes of a packet with the result of a call.
pub(crate) fn returned_bytes(returned: &Returned<'_>, dialect: Dialect) -> Outcome<Vec<u8>> {
    let mut bytes = Vec::new();
    let limits = Limits::default().with_packet(u64::MAX);
    encode_returned(dialect, returned, limits, &mut bytes)
        .map_err(|over| Stop::Suite(format!("cannot write {returned:?}: {over}")))?;
    Ok(bytes)
}

/// The function and the arguments of a call, also where the last one came as payload.
pub(crate) fn called(came: &Came) -> Option<(u64, Vec<OwnedValue>)> {
    let Packet::Call {
        function,
        args,
        bulk,
    } = &came.packet
    else {
        return None;
    };
    let mut args = args.to_vec();
    if let Some(bulk) = bulk {
        let payload = came.payload.clone();
        args.push(match bulk.kind {
            BulkKind::Bytes => Value::from(payload),
            BulkKind::Text => Value::from(String::from_utf8_lossy(&payload).into_owned()),
        });
    }
    Some((*function, args))
}
