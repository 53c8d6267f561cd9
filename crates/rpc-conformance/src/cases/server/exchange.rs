//! What cases for servers say and expect again and again, beyond [`Session`]'s own.

use rpc_proto::{DataType, Packet, Returned, Syscall, TensorView, Value};

use super::by_hand;
use crate::roles::packets::NoPacket;
use crate::roles::server::Session;
use crate::stage::{Outcome, Stop};
use crate::wire::Shortfall;

/// How a server refuses a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refused {
    /// By an exception with this text.
    Exception(String),
    /// By ending the session.
    Ended,
}

impl Session {
    /// Sends a call whose arguments are written by hand.
    pub(super) fn call_by_hand(&mut self, function: u64, args: &[Vec<u8>]) {
        self.packets.wire.send(&by_hand::call(function, args));
    }

    /// Sends messages in one go, so that many of them take no time that counts.
    pub(super) fn send_together(&mut self, messages: &[Vec<u8>]) {
        self.packets.wire.send(&messages.concat());
    }

    /// Checks that the next packet is one of these, byte for byte.
    pub(super) fn expect_bytes(
        &mut self,
        check: &str,
        words: &str,
        allowed: &[Vec<u8>],
    ) -> Outcome {
        let first = allowed.first().map(Vec::as_slice);
        match self.packets.receive() {
            Ok(came) => {
                let holds = allowed.contains(&came.bytes);
                self.packets.came_check(check, holds, words, first, &came)
            }
            Err(none) => Err(self.packets.no_packet(check, words, first, &none)),
        }
    }

    /// Calls a function with arguments written by hand, and checks that it gives this value.
    pub(super) fn expect_by_hand(
        &mut self,
        check: &str,
        function: u64,
        args: &[Vec<u8>],
        expected: &Value<'_>,
    ) -> Outcome {
        self.call_by_hand(function, args);
        let found = self.returned(check)?;
        let holds = matches!(&found, Returned::Value(value) if value == expected);
        let shown = |text: String| text.chars().take(200).collect::<String>();
        self.stage().check(
            check,
            holds,
            shown(format!("{expected:?}")),
            shown(format!("{found:?}")),
        )
    }

    /// Checks that the request before is refused: by an exception, or by the end of the session.
    pub(super) fn expect_refused(&mut self, check: &str) -> Outcome<Refused> {
        const EXPECTED: &str = "an exception, or the end of the session";
        match self.packets.receive() {
            Ok(came) => match &came.packet {
                Packet::Exception { text } => {
                    self.stage().passes(check)?;
                    Ok(Refused::Exception(text.clone().into_owned()))
                }
                Packet::Shutdown => {
                    self.packets.expect_end(check)?;
                    Ok(Refused::Ended)
                }
                _ => {
                    let failed = self.packets.came_check(check, false, EXPECTED, None, &came);
                    Err(failed.err().unwrap_or(Stop::Failed))
                }
            },
            Err(NoPacket::Short(Shortfall::Ended(_))) => {
                self.stage().passes(check)?;
                Ok(Refused::Ended)
            }
            Err(none) => Err(self.packets.no_packet(check, EXPECTED, None, &none)),
        }
    }

    /// Checks that the request before is refused by an exception, and that the session goes on.
    pub(super) fn expect_exception_only(&mut self, check: &str) -> Outcome<String> {
        let text = self.expect_exception(check)?;
        self.expect_goes_on(check)?;
        Ok(text)
    }

    /// Checks that the session still does what it is asked: it looks for a function that nobody has.
    pub(super) fn expect_goes_on(&mut self, check: &str) -> Outcome {
        let found = self.look_up("conformance.no.such.function")?;
        let name = format!("{check}-session-goes-on");
        self.stage()
            .check(&name, found == 0, "a null pointer", found)
    }

    /// Checks that a syscall is answered by nothing.
    pub(super) fn expect_done(&mut self, check: &str, syscall: Syscall<'_>) -> Outcome {
        self.packets.send(&Packet::Syscall(syscall))?;
        self.expect_void(check)
    }

    /// Sends a syscall, and checks that it is refused by an exception and the session goes on.
    pub(super) fn expect_refused_syscall(
        &mut self,
        check: &str,
        syscall: Syscall<'_>,
    ) -> Outcome<String> {
        self.packets.send(&Packet::Syscall(syscall))?;
        self.expect_exception_only(check)
    }

    /// Takes a pointer that answers a syscall.
    pub(super) fn pointer(&mut self, check: &str, syscall: Syscall<'_>) -> Outcome<u64> {
        match self.syscall(check, syscall)? {
            Value::Pointer(address) => Ok(address),
            other => Err(self
                .stage()
                .fail(check, "a pointer", format_args!("{other:?}"))),
        }
    }

    /// A tensor with these bytes in it.
    pub(super) fn filled(
        &mut self,
        shape: &[i64],
        dtype: DataType,
        bytes: &[u8],
    ) -> Outcome<TensorView> {
        let tensor = self.allocate(shape, dtype)?;
        self.upload("fill", &tensor, bytes)?;
        Ok(tensor)
    }

    /// Checks the bytes of a tensor.
    pub(super) fn expect_content(
        &mut self,
        check: &str,
        tensor: &TensorView,
        expected: &[u8],
    ) -> Outcome {
        let found = self.download(check, tensor, expected.len())?;
        let at = found.iter().zip(expected).position(|(a, b)| a != b);
        let found = match at {
            None => String::new(),
            Some(at) => format!(
                "another byte at {at}: {} instead of {}",
                found[at], expected[at]
            ),
        };
        let expected = format!("{} bytes as they were sent", expected.len());
        self.stage().check(check, at.is_none(), expected, found)
    }

    /// The handle of a function that a call returns.
    pub(super) fn function_of(
        &mut self,
        check: &str,
        function: u64,
        args: Vec<Value<'_>>,
    ) -> Outcome<u64> {
        match self.call(check, function, args)? {
            Returned::Value(Value::Function(handle)) if handle != 0 => Ok(handle),
            other => Err(self
                .stage()
                .fail(check, "a function", format_args!("{other:?}"))),
        }
    }

    /// A tensor that a call returns, and its handle.
    pub(super) fn tensor_of(
        &mut self,
        check: &str,
        function: u64,
        args: Vec<Value<'_>>,
    ) -> Outcome<(TensorView, u64)> {
        match self.call(check, function, args)? {
            Returned::Tensor { tensor, handle } if handle != 0 => Ok((tensor, handle)),
            other => {
                Err(self
                    .stage()
                    .fail(check, "a tensor and its handle", format_args!("{other:?}")))
            }
        }
    }

    /// The handle of an object that a call returns.
    pub(super) fn object_of(
        &mut self,
        check: &str,
        function: u64,
        args: Vec<Value<'_>>,
    ) -> Outcome<u64> {
        match self.call(check, function, args)? {
            Returned::Object { handle, .. } if handle != 0 => Ok(handle),
            other => Err(self
                .stage()
                .fail(check, "an object", format_args!("{other:?}"))),
        }
    }
}

/// Bytes that differ from place to place, and with `seed`.
pub(super) fn pattern(len: usize, seed: u8) -> Vec<u8> {
    let step = u64::from(seed) * 2 + 1;
    let bytes = (0..len as u64).map(|i| {
        let mixed = (i + 1)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_mul(step);
        mixed.to_le_bytes()[7]
    });
    bytes.collect()
}

/// The bytes of floats.
pub(super) fn floats(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}
