use std::io::Cursor;

use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};

use super::violation::Violation;
use super::{LONGEST_CONTROL, Role, mask};

/// Where the frames of a peer begin and end.
#[derive(Debug)]
pub(super) struct Decoder {
    ours: Role,
    /// Bytes of the present data frame that are still to come.
    left: u64,
    /// Fits the next of them.
    key: Option<[u8; 4]>,
    /// More frames of the present message follow.
    in_message: bool,
}

/// What the first bytes of some input are.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame<'i> {
    /// A part of a head, or of a control frame.
    Incomplete,
    /// The head of a data frame; see [`Decoder::left`].
    Data,
    Ping(&'i [u8]),
    Pong,
    /// With the code of the reason, if one is given.
    Close(Option<u16>),
}

impl Decoder {
    pub(super) fn new(ours: Role) -> Self {
        Self {
            ours,
            left: 0,
            key: None,
            in_message: false,
        }
    }

    /// Bytes of payload that come before the next head.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Takes bytes of payload, in place.
    pub(super) fn payload(&mut self, bytes: &mut [u8]) {
        self.left -= bytes.len() as u64;
        if let Some(key) = &mut self.key {
            mask::apply(key, bytes);
        }
    }

    /// Takes a head, or a whole control frame, from the front of `input`, and says how many bytes it was.
    /// No payload may be left.
    pub(super) fn frame<'i>(
        &mut self,
        input: &'i mut [u8],
    ) -> Result<(usize, Frame<'i>), Violation> {
        let mut cursor = Cursor::new(&*input);
        let (header, length) = match FrameHeader::parse(&mut cursor) {
            Ok(Some(parsed)) => parsed,
            Ok(None) => return Ok((0, Frame::Incomplete)),
            // Nothing else is wrong with bytes in memory.
            Err(_) => return Err(Violation::Opcode(input[0] & 0x0f)),
        };
        let head = usize::try_from(cursor.position()).unwrap_or(usize::MAX);
        if header.rsv1 || header.rsv2 || header.rsv3 {
            return Err(Violation::ReservedBits(input[0]));
        }
        match (self.ours, header.mask) {
            (Role::Client, Some(_)) => return Err(Violation::Masked),
            (Role::Server, None) => return Err(Violation::Unmasked),
            _ => {}
        }
        match header.opcode {
            OpCode::Data(data) => {
                self.data(data, &header, length)?;
                Ok((head, Frame::Data))
            }
            OpCode::Control(control) => {
                if length > LONGEST_CONTROL as u64 {
                    return Err(Violation::LongControl(length));
                }
                if !header.is_final {
                    return Err(Violation::FragmentedControl);
                }
                let end = head + usize::try_from(length).unwrap_or(usize::MAX);
                let Some(payload) = input.get_mut(head..end) else {
                    return Ok((0, Frame::Incomplete));
                };
                if let Some(mut key) = header.mask {
                    mask::apply(&mut key, payload);
                }
                Ok((end, of_control(control, payload)?))
            }
        }
    }

    fn data(&mut self, data: Data, header: &FrameHeader, length: u64) -> Result<(), Violation> {
        match (data, self.in_message) {
            (Data::Text, _) => return Err(Violation::Text),
            (Data::Continue, false) => return Err(Violation::Continuation),
            (Data::Binary, true) => return Err(Violation::Interrupted),
            _ => {}
        }
        if i64::try_from(length).is_err() {
            return Err(Violation::Length(length));
        }
        self.in_message = !header.is_final;
        self.left = length;
        self.key = header.mask;
        Ok(())
    }

    /// The head of a frame that has a new decoder go on where this one stands.
    #[cfg(feature = "async")]
    pub(super) fn resume(&self) -> Vec<u8> {
        let mut head = Vec::new();
        if self.left > 0 || self.in_message {
            let header = FrameHeader {
                is_final: !self.in_message,
                opcode: OpCode::Data(Data::Binary),
                mask: match self.ours {
                    Role::Client => None,
                    Role::Server => Some(self.key.unwrap_or_default()),
                },
                ..FrameHeader::default()
            };
            // Memory takes all that is written.
            let _ = header.format(self.left, &mut head);
        }
        head
    }
}

fn of_control(control: Control, payload: &[u8]) -> Result<Frame<'_>, Violation> {
    Ok(match control {
        Control::Ping => Frame::Ping(payload),
        Control::Pong => Frame::Pong,
        Control::Close => Frame::Close(match payload {
            [] => None,
            [_] => return Err(Violation::CloseReason),
            [high, low, ..] => Some(u16::from_be_bytes([*high, *low])),
        }),
        Control::Reserved(code) => return Err(Violation::Opcode(code)),
    })
}
