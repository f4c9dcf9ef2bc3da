//! The oracle: reads a direction that it has in one slice, one frame after another, and copies all it reads.

use websocket::{Control, Violation};

/// A message, or a control frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Message(Vec<u8>),
    Control(Control),
}

/// Returns the complete items, and the violation at which the reading stopped.
pub(crate) fn read(bytes: &[u8]) -> (Vec<Item>, Option<Violation>) {
    let (mut items, mut message, mut rest) = (Vec::new(), None::<Vec<u8>>, bytes);
    loop {
        let frame = match frame(rest, message.is_some()) {
            Ok(Some(frame)) => frame,
            Ok(None) => return (items, None),
            Err(violation) => return (items, Some(violation)),
        };
        rest = frame.rest;
        match frame.opcode {
            8 => {
                let code = frame.payload.first_chunk().map(|code| u16::from_be_bytes(*code));
                items.push(Item::Control(Control::Close(code)));
            }
            9 => items.push(Item::Control(Control::Ping)),
            10 => items.push(Item::Control(Control::Pong)),
            _ => {
                message.get_or_insert_default().extend(frame.payload);
                if frame.is_final {
                    items.push(Item::Message(message.take().unwrap_or_default()));
                }
            }
        }
    }
}

struct Frame<'a> {
    is_final: bool,
    opcode: u8,
    payload: Vec<u8>,
    rest: &'a [u8],
}

/// Reads the first frame; `None` if it is incomplete.
fn frame(bytes: &[u8], is_in_message: bool) -> Result<Option<Frame<'_>>, Violation> {
    let [first, second, rest @ ..] = bytes else { return Ok(None) };
    let (length_bytes, mask_bytes) = match second % 128 {
        126 => (2, second / 128 * 4),
        127 => (8, second / 128 * 4),
        _ => (0, second / 128 * 4),
    };
    if rest.len() < length_bytes + usize::from(mask_bytes) {
        return Ok(None);
    }
    let (length, rest) = rest.split_at(length_bytes);
    let (mask, rest) = rest.split_at(usize::from(mask_bytes));
    let length = match length {
        [] => u64::from(second % 128),
        length => length.iter().fold(0, |sum, byte| sum * 256 + u64::from(*byte)),
    };
    let (is_final, opcode) = (first >= &128, first % 16);
    let is_control = opcode >= 8;
    if first / 16 % 8 != 0 {
        return Err(Violation::Reserved);
    }
    if !matches!(opcode, 0 | 1 | 2 | 8 | 9 | 10) {
        return Err(Violation::Opcode);
    }
    if length >= 1 << 63 {
        return Err(Violation::Length);
    }
    if is_control && (!is_final || length > 125) {
        return Err(Violation::Control);
    }
    if !is_control && is_in_message != (opcode == 0) {
        return Err(Violation::Continuation);
    }
    if (rest.len() as u64) < length {
        return Ok(None);
    }
    let (payload, rest) = rest.split_at(length as usize);
    let payload = payload.iter().enumerate().map(|(at, byte)| match mask {
        [] => *byte,
        mask => byte ^ mask[at % 4],
    });
    Ok(Some(Frame { is_final, opcode, payload: payload.collect(), rest }))
}
