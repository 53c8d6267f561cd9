//! A server as the script needs it: a few functions, memory, handles, all counted. A case takes over
//! where it wants to answer otherwise.

use std::collections::BTreeMap;

use rpc_proto::{OwnedValue, Packet, Returned, Syscall, TensorView, Value};

use crate::roles::packets::{Came, NoPacket};
use crate::roles::served::{Served, called};
use crate::stage::{Outcome, Stop};
use crate::wire::Shortfall;

/// A function that the script calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    /// Gives back its first argument.
    Echo,
    /// Gives what the case wants; 1 where it wants nothing.
    Give,
    /// Fails.
    Fail,
}

impl Name {
    const ALL: [Self; 3] = [Self::Echo, Self::Give, Self::Fail];

    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Echo => "conformance.echo",
            Self::Give => "conformance.give",
            Self::Fail => "conformance.fail",
        }
    }
}

/// The text of the exception of [`Name::Fail`].
pub(crate) const FAILURE: &str = "this function fails";

/// A session, and what the client holds in it.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) served: Served,
    functions: BTreeMap<u64, Name>,
    /// Every handle that was given out.
    handles: BTreeMap<u64, Count>,
    /// Every piece of memory that was given out and not freed.
    memory: BTreeMap<u64, Vec<u8>>,
    /// Pieces of memory that were given out.
    pub(crate) allocated: usize,
    /// The number of the next handle or address.
    next: u64,
    /// The most bytes of a packet, where the server has a limit to tell.
    pub(crate) packet_limit: Option<i64>,
    limit_function: Option<u64>,
    /// A shutdown packet came.
    pub(crate) shut_down: bool,
}

/// How often a handle was given out, and freed.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    given: u32,
    freed: u32,
}

/// The function that tells the most bytes of a packet.
const LIMIT_FUNCTION: &str = "tvm.rpc.server.GetCRTMaxPacketSize";

impl Host {
    pub(crate) fn new(served: Served) -> Self {
        Self {
            served,
            functions: BTreeMap::new(),
            handles: BTreeMap::new(),
            memory: BTreeMap::new(),
            allocated: 0,
            next: 0x1000,
            packet_limit: None,
            limit_function: None,
            shut_down: false,
        }
    }

    /// A number that nothing else has.
    fn fresh(&mut self) -> u64 {
        self.next += 0x40;
        self.next
    }

    /// A new handle that the client has to free.
    pub(crate) fn new_handle(&mut self) -> u64 {
        let handle = self.fresh();
        self.given_again(handle, 1);
        handle
    }

    /// Counts that a handle is given out so many times more.
    pub(crate) fn given_again(&mut self, handle: u64, times: u32) {
        self.handles.entry(handle).or_default().given += times;
    }

    /// Memory that the client must not free itself.
    pub(crate) fn new_memory(&mut self, bytes: Vec<u8>) -> u64 {
        let address = self.fresh();
        self.memory.insert(address, bytes);
        address
    }

    /// How often a handle was freed.
    pub(crate) fn freed(&self, handle: u64) -> u32 {
        self.handles.get(&handle).map_or(0, |count| count.freed)
    }

    /// Serves until a packet comes that the case wants to answer.
    pub(crate) fn until(
        &mut self,
        check: &str,
        wanted: impl Fn(&Self, &Packet<'_>) -> bool,
    ) -> Outcome<Came> {
        loop {
            let came = self.served.packets.packet(check)?;
            if wanted(self, &came.packet) {
                return Ok(came);
            }
            let over = matches!(came.packet, Packet::Shutdown);
            self.served
                .packets
                .came_check(check, !over, "the session to go on", None, &came)?;
            self.serve(&came)?;
        }
    }

    /// Serves until this function is called, and gives its arguments.
    pub(crate) fn until_call(&mut self, name: Name) -> Outcome<Vec<OwnedValue>> {
        let check = format!("call-of-{}", name.text());
        let came = self.until(&check, |host, packet| {
            matches!(packet, Packet::Call { function, .. }
                if host.functions.get(function) == Some(&name))
        })?;
        called(&came).map(|(_, args)| args).ok_or(Stop::Failed)
    }

    /// Serves until the function that gives is called, and answers by these bytes.
    pub(crate) fn give_bytes(&mut self, bytes: &[u8]) -> Outcome {
        self.until_call(Name::Give)?;
        self.served.packets.wire.send(bytes);
        Ok(())
    }

    /// Serves until the client ends the connection, and checks that it does.
    pub(crate) fn until_end(&mut self) -> Outcome {
        loop {
            match self.served.packets.receive() {
                Ok(came) if matches!(came.packet, Packet::Shutdown) => self.shut_down = true,
                Ok(came) => self.serve(&came)?,
                Err(NoPacket::Short(Shortfall::Ended(_))) => {
                    return self.served.stage().passes("session-ended");
                }
                Err(none) => {
                    let expected = "the end of the session";
                    let packets = &self.served.packets;
                    return Err(packets.no_packet("session-ended", expected, None, &none));
                }
            }
        }
    }

    /// The same for a session that the suite has spoilt: what comes is not understood any more. Who asks
    /// again there finds the connection closed.
    pub(crate) fn abandoned(&mut self) -> Outcome {
        let wire = &mut self.served.packets.wire;
        if wire.peek(1).is_ok() {
            wire.finish();
        }
        let short = wire.read_to_end();
        let holds = matches!(short, Shortfall::Ended(_));
        let expected = "the end of the connection";
        let stage = self.served.stage();
        stage.check("connection-ended", holds, expected, short)
    }

    /// Pieces of memory that the client has not freed.
    pub(crate) fn memory_left(&self) -> usize {
        self.memory.len()
    }

    /// Answers a request as a server does that has what the script needs.
    pub(crate) fn serve(&mut self, came: &Came) -> Outcome {
        match &came.packet {
            Packet::Call { .. } => self.serve_call(came),
            Packet::Syscall(syscall) => self.serve_syscall(syscall, came),
            Packet::CopyTo { tensor, .. } => {
                let (tensor, payload) = (tensor.clone(), came.payload.len());
                let place = self.place(&tensor, payload, came)?;
                place.copy_from_slice(&came.payload);
                self.served.void()
            }
            Packet::CopyFrom { tensor, nbytes } => {
                let nbytes = usize::try_from(*nbytes).unwrap_or(usize::MAX);
                let bytes = self.place(&tensor.clone(), nbytes, came)?.to_vec();
                self.served.copy_ack(&bytes)
            }
            _ => self.refuse("request", "a request that a server can answer", came),
        }
    }

    fn refuse(&self, check: &str, expected: &str, came: &Came) -> Outcome {
        self.served
            .packets
            .came_check(check, false, expected, None, came)
    }

    fn serve_call(&mut self, came: &Came) -> Outcome {
        let (function, args) = called(came).ok_or(Stop::Failed)?;
        if self.limit_function == Some(function)
            && let Some(limit) = self.packet_limit
        {
            return self.served.returned(&Returned::Value(Value::Int(limit)));
        }
        match self.functions.get(&function) {
            Some(Name::Echo) => {
                let first = args.into_iter().next().unwrap_or(Value::None);
                self.served.returned(&Returned::Value(first))
            }
            Some(Name::Give) => self.served.returned(&Returned::Value(Value::Int(1))),
            Some(Name::Fail) => self.served.exception(FAILURE),
            None => self.refuse("called-function", "a function of this session", came),
        }
    }

    fn serve_syscall(&mut self, syscall: &Syscall<'_>, came: &Came) -> Outcome {
        match syscall {
            Syscall::GetGlobalFunc { name } => {
                let handle = self.look_up(name);
                self.served.value(Value::Pointer(handle))
            }
            Syscall::FreeHandle { handle, .. } => match self.handles.get_mut(handle) {
                Some(count) if count.freed < count.given => {
                    count.freed += 1;
                    self.served.void()
                }
                _ => self.refuse("frees-what-it-has", "a handle that was not freed", came),
            },
            Syscall::AllocData { nbytes, .. } => self.allocate(*nbytes),
            Syscall::AllocDataWithScope { tensor, .. } => {
                self.allocate(tensor.nbytes().unwrap_or(0))
            }
            Syscall::FreeData { data, .. } => match self.memory.remove(data) {
                Some(_) => self.served.void(),
                None => self.refuse("frees-what-it-has", "memory that was not freed", came),
            },
            Syscall::CreateStream { .. } | Syscall::GetCurrentStream { .. } => {
                self.served.value(Value::Pointer(0))
            }
            // That a device exists is the only question that the script gives reason for.
            Syscall::GetAttr { .. } => self.served.value(Value::Int(1)),
            _ => self.served.void(),
        }
    }

    fn look_up(&mut self, name: &str) -> u64 {
        if name == LIMIT_FUNCTION && self.packet_limit.is_some() {
            let handle = self.new_handle();
            self.limit_function = Some(handle);
            return handle;
        }
        match Name::ALL.into_iter().find(|known| known.text() == name) {
            Some(known) => {
                let handle = self.new_handle();
                self.functions.insert(handle, known);
                handle
            }
            None => 0,
        }
    }

    fn allocate(&mut self, nbytes: u64) -> Outcome {
        const MOST: u64 = 1 << 30;
        let nbytes = usize::try_from(nbytes.min(MOST)).unwrap_or_default();
        let address = self.new_memory(vec![0; nbytes]);
        self.allocated += 1;
        self.served.value(Value::Pointer(address))
    }

    /// Where a copy goes or comes from.
    fn place(&mut self, tensor: &TensorView, nbytes: usize, came: &Came) -> Outcome<&mut [u8]> {
        let start = usize::try_from(tensor.byte_offset).unwrap_or(usize::MAX);
        let range = start..start.saturating_add(nbytes);
        let fits = self
            .memory
            .get(&tensor.data)
            .is_some_and(|memory| memory.get(range.clone()).is_some());
        if !fits {
            self.refuse(
                "copy-within-memory",
                "a copy within memory that it has",
                came,
            )?;
        }
        let place = self.memory.get_mut(&tensor.data);
        place
            .and_then(|memory| memory.get_mut(range))
            .ok_or(Stop::Failed)
    }
}
