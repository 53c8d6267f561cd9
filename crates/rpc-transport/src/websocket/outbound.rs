use std::io::{self, ErrorKind, IoSlice};

use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};

use super::violation::Violation;
use super::{LONGEST_CONTROL, Role, mask};

/// Most bytes of payload in a frame of ours. A direction keeps no more than one frame.
const LONGEST_FRAME: usize = 64 << 10;

/// The direction that goes to the peer.
#[derive(Debug)]
pub(crate) struct Outbound {
    ours: Role,
    /// A frame, of which `sent` bytes are gone.
    frame: Vec<u8>,
    sent: usize,
    /// Who pings again before the answer is on its way gets one answer.
    pong: Option<Vec<u8>>,
    close: Close,
}

#[derive(Debug)]
enum Close {
    No,
    /// A close frame of this payload is due.
    Due(Vec<u8>),
    /// It was the last frame.
    Framed,
}

impl Outbound {
    pub(crate) fn new(ours: Role) -> Self {
        Self {
            ours,
            frame: Vec::new(),
            sent: 0,
            pong: None,
            close: Close::No,
        }
    }

    /// What has to be sent before more can be [put](Self::put). Nothing if all is.
    pub(crate) fn unsent(&mut self) -> io::Result<&[u8]> {
        if self.sent == self.frame.len() {
            self.frame.clear();
            self.sent = 0;
            if let Some(payload) = self.pong.take() {
                self.begin(OpCode::Control(Control::Pong), payload.len())?;
                self.append(&[IoSlice::new(&payload)], payload.len());
            } else if let Close::Due(payload) = &mut self.close {
                let payload = std::mem::take(payload);
                self.close = Close::Framed;
                self.begin(OpCode::Control(Control::Close), payload.len())?;
                self.append(&[IoSlice::new(&payload)], payload.len());
            }
        }
        Ok(&self.frame[self.sent..])
    }

    /// So many bytes of [`Outbound::unsent`] are gone.
    pub(crate) fn sent(&mut self, count: usize) {
        self.sent += count;
    }

    /// Makes a frame of the first bytes of `slices`, and says of how many. Nothing may be unsent.
    pub(crate) fn put(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if !matches!(self.close, Close::No) {
            let told = "the WebSocket was closed for writing";
            return Err(io::Error::new(ErrorKind::BrokenPipe, told));
        }
        let all = slices.iter().map(|slice| slice.len());
        let count = all.fold(0, usize::saturating_add).min(LONGEST_FRAME);
        if count > 0 {
            self.begin(OpCode::Data(Data::Binary), count)?;
            self.append(slices, count);
        }
        Ok(count)
    }

    /// Answers a ping.
    pub(crate) fn pong(&mut self, payload: Vec<u8>) {
        if matches!(self.close, Close::No) {
            self.pong = Some(payload);
        }
    }

    /// Nothing is sent behind what is there but a close frame.
    pub(crate) fn close(&mut self, code: Option<u16>) {
        let payload = code.map(|code| code.to_be_bytes().to_vec());
        self.close_with(payload.unwrap_or_default());
    }

    /// Tells the peer what it did.
    pub(crate) fn refuse(&mut self, violation: Violation) {
        let mut payload = violation.code().to_be_bytes().to_vec();
        payload.extend(violation.to_string().bytes());
        payload.truncate(LONGEST_CONTROL);
        self.close_with(payload);
    }

    fn close_with(&mut self, payload: Vec<u8>) {
        if matches!(self.close, Close::No) {
            self.close = Close::Due(payload);
        }
    }

    /// Writes the head of a frame.
    fn begin(&mut self, opcode: OpCode, length: usize) -> io::Result<()> {
        let mask = match self.ours {
            Role::Client => {
                let mut key = [0; 4];
                getrandom::fill(&mut key).map_err(io::Error::other)?;
                Some(key)
            }
            Role::Server => None,
        };
        let header = FrameHeader {
            opcode,
            mask,
            ..FrameHeader::default()
        };
        self.frame.clear();
        self.sent = 0;
        let length = length as u64;
        let formatted = header.format(length, &mut self.frame);
        formatted.map_err(io::Error::other)
    }

    /// Writes the payload of a frame: the first `count` bytes of `slices`.
    fn append(&mut self, slices: &[IoSlice<'_>], count: usize) {
        let start = self.frame.len();
        let end = start + count;
        self.frame.reserve_exact(count);
        for slice in slices {
            let taken = slice.len().min(end - self.frame.len());
            self.frame.extend_from_slice(&slice[..taken]);
        }
        if self.ours == Role::Client
            && let Some((head, payload)) = self.frame.split_at_mut_checked(start)
            && let Some(key) = head.last_chunk()
        {
            // The key is what a head ends with.
            mask::apply(&mut { *key }, payload);
        }
    }
}
