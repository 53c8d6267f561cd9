//! A server under test between the suite as its client and the suite as the next server.

use rpc_proto::{OwnedValue, Packet, Syscall, Value, Values};

use crate::roles::Server;
use crate::roles::packets::Came;
use crate::roles::served::{Listening, Served};
use crate::roles::server::Session;
use crate::stage::Outcome;

/// Both ends of a chain whose middle is the server under test.
#[derive(Debug)]
pub(super) struct Hop {
    pub(super) session: Session,
    pub(super) next: Served,
}

/// The constructor of a session on the suite.
pub(super) fn to_next(
    next: &Listening,
    key: &str,
    constructor: Vec<OwnedValue>,
) -> Values<'static> {
    let first = [
        Value::from("rpc.Connect"),
        Value::from(next.host()),
        Value::Int(next.port().into()),
        Value::from(key.to_owned()),
        Value::Bool(false),
    ];
    first.into_iter().chain(constructor).collect()
}

/// A session for which this was asked, and whose answer has yet to come.
pub(super) fn open(server: &Server, constructor: Values<'static>) -> Outcome<Session> {
    let mut packets = server.shaken("")?;
    packets.send(&Packet::init(constructor))?;
    Ok(Session { packets })
}

impl Hop {
    pub(super) fn new(server: &Server) -> Outcome<Self> {
        let next = server.listening("the next server")?;
        let mut session = open(server, to_next(&next, "next-key", vec![]))?;
        let next = next.session("connects")?;
        session.expect_void("opened")?;
        Ok(Self { session, next })
    }

    /// Both ends.
    pub(super) fn into_ends(self) -> (Session, Served) {
        (self.session, self.next)
    }

    /// The next request at the next server. What the server in the middle wants to know for itself is
    /// answered in between.
    pub(super) fn request(&mut self, check: &str) -> Outcome<Came> {
        loop {
            let came = self.next.request(check)?;
            match &came.packet {
                Packet::Syscall(Syscall::GetGlobalFunc { name })
                    if name == "tvm.rpc.server.GetCRTMaxPacketSize" =>
                {
                    self.next.value(Value::Pointer(0))?;
                }
                _ => return Ok(came),
            }
        }
    }

    /// Sends a request, and checks that it comes to the next server as it is.
    pub(super) fn expect_passed(
        &mut self,
        check: &str,
        request: &Packet<'_>,
        payload: &[u8],
    ) -> Outcome {
        self.session.packets.send_with(request, payload)?;
        let came = self.request(check)?;
        let holds = came.packet == *request && came.payload == payload;
        let name = format!("{check}-as-it-is");
        let words = format!("{request:?}");
        self.next
            .packets
            .came_check(&name, holds, &words, None, &came)
    }
}
