//! The reader of one direction: slices in, steps out. A message is a data frame and its continuations; control frames
//! may stand between them.

use std::fmt;

/// Bytes of payload that are unmasked at a time: the bound of the one copy.
pub const UNMASKED_BYTES: usize = 1024;

/// Reads the frames of one direction.
#[derive(Debug)]
pub struct FrameReader {
    /// The header of the current frame, as far as it was read.
    header: [u8; HEADER_MAX_BYTES],
    header_len: usize,
    /// The current frame, from the end of its header on.
    frame: Option<Frame>,
    /// A message began and has not ended.
    is_in_message: bool,
    /// The framing is invalid: nothing after it can be read.
    violation: Option<Violation>,
    unmasked: Box<[u8; UNMASKED_BYTES]>,
}

/// A frame whose header was read.
#[derive(Clone, Copy, Debug)]
struct Frame {
    opcode: Opcode,
    is_final: bool,
    /// The message of this frame was reported to begin.
    is_begun: bool,
    /// Bytes of payload that have not arrived.
    left: u64,
    mask: Option<[u8; 4]>,
    /// The index in the mask of the next byte of payload.
    phase: usize,
    /// The first bytes of a close frame's payload: its code.
    code: [u8; 2],
    code_len: usize,
}

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opcode {
    /// A message begins: text or binary, which are read alike.
    Data,
    Continuation,
    Close,
    Ping,
    Pong,
}

/// One step in a direction.
#[derive(Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// A message begins.
    Begin,
    /// The next bytes of the message, unmasked. At least one.
    Payload(&'a [u8]),
    /// The message is complete.
    End,
    /// A control frame is complete.
    Control(Control),
}

/// A control frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// The sender closes the connection, with this code, if it states one.
    Close(Option<u16>),
    /// The sender expects a pong.
    Ping,
    /// The response to a ping, or an unsolicited keepalive.
    Pong,
}

/// The reason why a direction cannot be read: no WebSocket peer accepts such a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A reserved bit is set: an extension is in use.
    Reserved,
    /// The opcode is unknown.
    Opcode,
    /// A control frame is fragmented or longer than 125 bytes.
    Control,
    /// A continuation without a message, or a message within another one.
    Continuation,
    /// The length is above 2^63 − 1.
    Length,
}

/// Two bytes, eight of length, four of mask.
const HEADER_MAX_BYTES: usize = 14;

/// The longest payload of a control frame, bytes.
pub(crate) const CONTROL_MAX_BYTES: usize = 125;

impl Default for FrameReader {
    fn default() -> Self {
        Self::new()
    }
}

impl FrameReader {
    /// A reader at the start of a direction: after the handshake.
    pub fn new() -> Self {
        Self {
            header: [0; HEADER_MAX_BYTES],
            header_len: 0,
            frame: None,
            is_in_message: false,
            violation: None,
            unmasked: Box::new([0; UNMASKED_BYTES]),
        }
    }

    /// Returns true between two frames: another frame may be inserted here.
    pub fn is_between_frames(&self) -> bool {
        self.frame.is_none() && self.header_len == 0 && self.violation.is_none()
    }

    /// Returns true between two messages, with no frame begun.
    pub fn is_between_messages(&self) -> bool {
        self.is_between_frames() && !self.is_in_message
    }

    /// Returns the next step in `bytes` from `at` on, which it advances; `None` if more bytes are needed. Once the
    /// framing is broken, every call fails.
    pub fn step<'a>(&'a mut self, bytes: &'a [u8], at: &mut usize) -> Result<Option<Step<'a>>, Violation> {
        if let Some(violation) = self.violation {
            return Err(violation);
        }
        loop {
            if self.frame.is_none() && !self.read_header(bytes, at)? {
                return Ok(None);
            }
            let Some(frame) = &mut self.frame else { return Ok(None) };
            if frame.opcode == Opcode::Data && !frame.is_begun {
                frame.is_begun = true;
                return Ok(Some(Step::Begin));
            }
            let available = &bytes[*at..];
            let len = usize::try_from(frame.left).unwrap_or(usize::MAX).min(available.len());
            if len > 0 && frame.opcode.is_data() {
                let Some(mask) = frame.mask else {
                    frame.left -= len as u64;
                    *at += len;
                    return Ok(Some(Step::Payload(&available[..len])));
                };
                let len = len.min(UNMASKED_BYTES);
                let into = &mut self.unmasked[..len];
                into.copy_from_slice(&available[..len]);
                apply_mask(into, mask, frame.phase);
                frame.phase = (frame.phase + len) % mask.len();
                frame.left -= len as u64;
                *at += len;
                return Ok(Some(Step::Payload(into)));
            }
            frame.read_control(&available[..len]);
            *at += len;
            if frame.left > 0 {
                return Ok(None);
            }
            let ended = *frame;
            self.frame = None;
            match ended.control() {
                Some(control) => return Ok(Some(Step::Control(control))),
                None if ended.is_final => {
                    self.is_in_message = false;
                    return Ok(Some(Step::End));
                }
                // The next frame continues the message.
                None => {}
            }
        }
    }

    /// Reads the header of the next frame; false if it is incomplete.
    fn read_header(&mut self, bytes: &[u8], at: &mut usize) -> Result<bool, Violation> {
        loop {
            let needed = match self.header_len {
                0 | 1 => 2,
                _ => header_len(self.header[1]),
            };
            if self.header_len == needed {
                break;
            }
            let Some(&byte) = bytes.get(*at) else { return Ok(false) };
            self.header[self.header_len] = byte;
            self.header_len += 1;
            *at += 1;
        }
        self.frame = Some(self.frame_of_header().inspect_err(|violation| self.violation = Some(*violation))?);
        self.header_len = 0;
        Ok(true)
    }

    /// Interprets a complete header.
    fn frame_of_header(&mut self) -> Result<Frame, Violation> {
        let [first, second, rest @ ..] = self.header;
        if first & 0x70 != 0 {
            return Err(Violation::Reserved);
        }
        let is_final = first & 0x80 != 0;
        let opcode = match first & 0x0F {
            0x0 => Opcode::Continuation,
            0x1 | 0x2 => Opcode::Data,
            0x8 => Opcode::Close,
            0x9 => Opcode::Ping,
            0xA => Opcode::Pong,
            _ => return Err(Violation::Opcode),
        };
        let length_bytes = length_bytes(second);
        let left = match length_bytes {
            0 => u64::from(second & 0x7F),
            wide => rest[..wide].iter().fold(0, |length, &byte| length << 8 | u64::from(byte)),
        };
        if left > i64::MAX as u64 {
            return Err(Violation::Length);
        }
        if !opcode.is_data() && (!is_final || left > CONTROL_MAX_BYTES as u64) {
            return Err(Violation::Control);
        }
        if opcode.is_data() {
            if (opcode == Opcode::Continuation) != self.is_in_message {
                return Err(Violation::Continuation);
            }
            self.is_in_message = true;
        }
        let mask = (second & 0x80 != 0).then(|| {
            let key = &rest[length_bytes..];
            [key[0], key[1], key[2], key[3]]
        });
        Ok(Frame { opcode, is_final, is_begun: false, left, mask, phase: 0, code: [0; 2], code_len: 0 })
    }
}

impl Frame {
    /// Reads bytes of a control frame's payload; none for a data frame.
    fn read_control(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if let Some(slot) = self.code.get_mut(self.code_len) {
                *slot = byte ^ self.mask.map_or(0, |mask| mask[self.phase]);
                self.code_len += 1;
                self.phase += 1;
            }
        }
        self.left -= bytes.len() as u64;
    }

    /// The control frame that it is; `None` for a data frame.
    fn control(&self) -> Option<Control> {
        match self.opcode {
            Opcode::Data | Opcode::Continuation => None,
            Opcode::Ping => Some(Control::Ping),
            Opcode::Pong => Some(Control::Pong),
            Opcode::Close => {
                let code = (self.code_len == self.code.len()).then(|| u16::from_be_bytes(self.code));
                Some(Control::Close(code))
            }
        }
    }
}

impl Opcode {
    fn is_data(self) -> bool {
        matches!(self, Self::Data | Self::Continuation)
    }
}

/// The bytes of an extended length, by the second byte of a header.
fn length_bytes(second: u8) -> usize {
    match second & 0x7F {
        126 => 2,
        127 => 8,
        _ => 0,
    }
}

/// The bytes of a header, by its second byte.
fn header_len(second: u8) -> usize {
    2 + length_bytes(second) + if second & 0x80 != 0 { 4 } else { 0 }
}

/// Masks or unmasks `bytes`, of which the first has the index `phase` in the mask.
pub(crate) fn apply_mask(bytes: &mut [u8], mut mask: [u8; 4], phase: usize) {
    mask.rotate_left(phase % 4);
    let mut chunks = bytes.chunks_exact_mut(4);
    for chunk in &mut chunks {
        for (byte, key) in chunk.iter_mut().zip(mask) {
            *byte ^= key;
        }
    }
    for (byte, key) in chunks.into_remainder().iter_mut().zip(mask) {
        *byte ^= key;
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reserved => "a reserved bit of a WebSocket frame is set",
            Self::Opcode => "the opcode of a WebSocket frame is unknown",
            Self::Control => "a WebSocket control frame is fragmented or longer than 125 bytes",
            Self::Continuation => {
                "a WebSocket continuation has no message, or a message begins within another one"
            }
            Self::Length => "the length of a WebSocket frame is above 2^63 − 1",
        })
    }
}

impl std::error::Error for Violation {}
