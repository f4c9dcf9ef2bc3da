//! A peer that sends frames.

use websocket::Control;

use crate::naive::Item;

/// A message as a peer sends it: in pieces, each with its mask, and a control frame after the first.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) is_text: bool,
    pub(crate) pieces: Vec<(Vec<u8>, Option<[u8; 4]>)>,
    pub(crate) control: Option<(u8, Vec<u8>)>,
}

impl Sent {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (at, (payload, mask)) in self.pieces.iter().enumerate() {
            let opcode = if at > 0 { 0 } else { 2 - u8::from(self.is_text) };
            let fin = if at + 1 == self.pieces.len() { 0x80 } else { 0 };
            bytes.extend(encode(fin | opcode, payload, *mask, 0));
            if let (0, Some((kind, payload))) = (at, &self.control) {
                bytes.extend(encode(0x88 + kind, payload, *mask, 0));
            }
        }
        bytes
    }

    pub(crate) fn items(&self) -> Vec<Item> {
        let message = self.pieces.iter().flat_map(|(payload, _)| payload).copied().collect();
        let control = self.control.as_ref().map(|(kind, payload)| {
            Item::Control(match kind {
                0 => Control::Close(payload.first_chunk().map(|code| u16::from_be_bytes(*code))),
                1 => Control::Ping,
                _ => Control::Pong,
            })
        });
        let mut items = vec![Item::Message(message)];
        items.extend(control);
        if self.pieces.len() > 1 {
            items.reverse();
        }
        items
    }
}

/// An unmasked frame with this first byte.
pub(crate) fn plain(first: u8, payload: &[u8]) -> Vec<u8> {
    encode(first, payload, None, 0)
}

/// A masked frame with this first byte.
pub(crate) fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    encode(first, payload, Some([0xA5, 0x5A, 0x01, 0xFF]), 0)
}

/// A frame whose length has at least this form: 126 for two bytes, 127 for eight.
pub(crate) fn encode(first: u8, payload: &[u8], mask: Option<[u8; 4]>, form: u8) -> Vec<u8> {
    let bit = if mask.is_some() { 0x80 } else { 0 };
    let mut bytes = vec![first];
    match payload.len() {
        len @ ..126 if form == 0 => bytes.push(bit | len as u8),
        len @ ..65_536 if form < 127 => {
            bytes.push(bit | 126);
            bytes.extend((len as u16).to_be_bytes());
        }
        len => {
            bytes.push(bit | 127);
            bytes.extend((len as u64).to_be_bytes());
        }
    }
    match mask {
        None => bytes.extend(payload),
        Some(mask) => {
            bytes.extend(mask);
            bytes.extend(payload.iter().enumerate().map(|(at, byte)| byte ^ mask[at % 4]));
        }
    }
    bytes
}
