//! Close frames that the proxy itself sends.

use crate::frame::{CONTROL_MAX_BYTES, apply_mask};

/// A close frame: its code and the reason for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloseFrame {
    code: u16,
    reason: Box<str>,
}

impl CloseFrame {
    /// A close frame. The reason is cut to 123 bytes on a character boundary.
    pub fn new(code: u16, reason: &str) -> Self {
        Self { code, reason: reason[..reason.floor_char_boundary(CONTROL_MAX_BYTES - 2)].into() }
    }

    /// Going away (1001): the sender shuts down, or has no more use for the connection.
    pub fn going_away() -> Self {
        Self::new(1001, "")
    }

    /// Policy violation (1008): the sender does not accept what it received.
    pub fn policy(reason: &str) -> Self {
        Self::new(1008, reason)
    }

    /// The bytes of the frame as a server sends it.
    pub fn unmasked(&self) -> Vec<u8> {
        self.bytes(None)
    }

    /// The bytes of the frame as a client sends it. `mask`: four random bytes.
    pub fn masked(&self, mask: [u8; 4]) -> Vec<u8> {
        self.bytes(Some(mask))
    }

    fn bytes(&self, mask: Option<[u8; 4]>) -> Vec<u8> {
        let payload = [&self.code.to_be_bytes(), self.reason.as_bytes()].concat();
        let mask_bit = if mask.is_some() { 0x80 } else { 0 };
        let mut frame = vec![0x88, mask_bit | payload.len() as u8];
        frame.extend(mask.iter().flatten());
        let from = frame.len();
        frame.extend(payload);
        if let Some(mask) = mask {
            apply_mask(&mut frame[from..], mask, 0);
        }
        frame
    }
}
