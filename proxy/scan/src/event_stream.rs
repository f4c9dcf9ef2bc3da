//! AWS event streams (`application/vnd.amazon.eventstream`), as Bedrock sends them. A message is a prelude (its length,
//! the length of its headers, a checksum; numbers are big-endian), headers, a payload and a checksum. The payload is
//! JSON. In answers to `invoke-with-response-stream` its first member is `bytes`, the JSON of the model's own API in
//! base64, which is read in place of the payload.
//!
//! Payload bytes pass on as they arrive; only a beginning of the headers, and decoded bytes until the next step, are kept.
//! The checksums are left to the client.

use crate::limits::{DECODED_BYTES, MESSAGE_HEADERS_BYTES, MESSAGE_MAX_BYTES};
use crate::short::Short;

/// Bytes of a prelude.
const PRELUDE_BYTES: usize = 12;

/// Bytes of the checksum that ends a message.
const CHECKSUM_BYTES: u32 = 4;

/// The beginning of a payload that wraps another one.
pub(crate) const WRAPPER: &[u8] = b"{\"bytes\":\"";

/// The headers that only errors have.
const ERROR_HEADERS: [&[u8]; 2] = [b":exception-type", b":error-code"];

/// The state between two slices.
#[derive(Debug)]
pub(crate) struct EventStream {
    part: Part,
    /// Bytes of the part that are still to come.
    left: u32,
    prelude: Short<PRELUDE_BYTES>,
    payload_bytes: u32,
    headers: Short<MESSAGE_HEADERS_BYTES>,
    wrapped: Wrapped,
    /// Bits of base64 that do not fill a byte yet, and their number.
    bits: (u32, u32),
    /// The bytes of [`Step::Decoded`].
    pub(crate) decoded: [u8; DECODED_BYTES],
}

/// The parts of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Prelude,
    Headers,
    Payload,
    Checksum,
    /// The lengths of a prelude contradict each other: where the next message begins is unknown.
    Broken,
}

/// The form of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrapped {
    /// This many bytes of it are the beginning of [`WRAPPER`].
    Maybe(usize),
    No,
    /// It wraps another one, of which bytes follow.
    Yes,
    /// The wrapped one has ended.
    Over,
}

/// A result of reading a slice, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Payload bytes at these offsets of the slice.
    Payload(usize, usize),
    /// Payload bytes equal to the first ones of [`WRAPPER`].
    Held(usize),
    /// Payload bytes at the beginning of [`EventStream::decoded`].
    Decoded(usize),
    /// The end of a message.
    End { error: bool },
}

impl EventStream {
    pub(crate) fn new() -> Self {
        Self {
            part: Part::Prelude,
            left: PRELUDE_BYTES as u32,
            prelude: Short::default(),
            payload_bytes: 0,
            headers: Short::default(),
            wrapped: Wrapped::Maybe(0),
            bits: (0, 0),
            decoded: [0; DECODED_BYTES],
        }
    }

    /// Returns true inside a message, and after a broken one.
    pub(crate) fn is_open(&self) -> bool {
        self.part != Part::Prelude || !self.prelude.word().is_empty()
    }

    /// Reads on from `at`, which advances. Returns each result, `None` at the slice's end.
    pub(crate) fn step(&mut self, bytes: &[u8], at: &mut usize) -> Option<Step> {
        loop {
            if self.left == 0 {
                if let Some(step) = self.end_part() {
                    return Some(step);
                }
                continue;
            }
            let rest = &bytes[*at..];
            let rest = &rest[..rest.len().min(self.left as usize)];
            if rest.is_empty() {
                return None;
            }
            let (read, step) = match self.part {
                Part::Prelude => {
                    self.prelude.push(rest);
                    (rest.len(), None)
                }
                Part::Headers => {
                    self.headers.push(rest);
                    (rest.len(), None)
                }
                Part::Payload => self.payload(rest, *at),
                Part::Checksum | Part::Broken => (rest.len(), None),
            };
            *at += read;
            if self.part != Part::Broken {
                self.left -= read as u32;
            }
            if step.is_some() {
                return step;
            }
        }
    }

    /// Reads bytes of the payload, which are at `at` of the slice. Returns the number of bytes read, and their result.
    fn payload(&mut self, bytes: &[u8], at: usize) -> (usize, Option<Step>) {
        match self.wrapped {
            Wrapped::Maybe(seen) => {
                let same = bytes.iter().zip(&WRAPPER[seen..]).take_while(|(one, other)| one == other).count();
                let held = seen + same;
                let is_other = same < bytes.len() && held < WRAPPER.len();
                self.wrapped = match held == WRAPPER.len() {
                    true => Wrapped::Yes,
                    false if is_other => Wrapped::No,
                    false => Wrapped::Maybe(held),
                };
                (same, (is_other && held > 0).then_some(Step::Held(held)))
            }
            Wrapped::No => (bytes.len(), Some(Step::Payload(at, at + bytes.len()))),
            Wrapped::Yes => self.decode(bytes),
            Wrapped::Over => (bytes.len(), None),
        }
    }

    /// Decodes base64 up to the quotation mark at its end, or until the place for decoded bytes is full.
    fn decode(&mut self, bytes: &[u8]) -> (usize, Option<Step>) {
        let (mut read, mut len) = (0, 0);
        for &byte in bytes {
            if len == DECODED_BYTES {
                break;
            }
            read += 1;
            if byte == b'"' {
                self.wrapped = Wrapped::Over;
                break;
            }
            let Some(value) = sextet(byte) else { continue };
            let (bits, count) = (self.bits.0 << 6 | value, self.bits.1 + 6);
            self.bits = (bits, count);
            if count >= 8 {
                self.decoded[len] = (bits >> (count - 8)) as u8;
                len += 1;
                self.bits = (bits & 0xFF, count - 8);
            }
        }
        (read, (len > 0).then_some(Step::Decoded(len)))
    }

    /// Ends a part of which no byte is left.
    fn end_part(&mut self) -> Option<Step> {
        match self.part {
            Part::Prelude => {
                let number = |at: usize| {
                    let word = self.prelude.word().get(at..at + 4)?;
                    Some(u32::from_be_bytes(word.try_into().ok()?))
                };
                let (total, headers) = (number(0).unwrap_or(0), number(4).unwrap_or(0));
                let around = headers.saturating_add(PRELUDE_BYTES as u32 + CHECKSUM_BYTES);
                (self.part, self.left) = match total.checked_sub(around) {
                    Some(payload) if total <= MESSAGE_MAX_BYTES => {
                        self.payload_bytes = payload;
                        (Part::Headers, headers)
                    }
                    _ => (Part::Broken, u32::MAX),
                };
            }
            Part::Headers => {
                (self.part, self.left) = (Part::Payload, self.payload_bytes);
                (self.wrapped, self.bits) = (Wrapped::Maybe(0), (0, 0));
            }
            Part::Payload => {
                (self.part, self.left) = (Part::Checksum, CHECKSUM_BYTES);
                if let Wrapped::Maybe(held @ 1..) = self.wrapped {
                    return Some(Step::Held(held));
                }
            }
            Part::Checksum => {
                let headers = self.headers.word();
                let has = |name: &&[u8]| headers.windows(name.len()).any(|part| part == *name);
                let error = ERROR_HEADERS.iter().any(has);
                (self.part, self.left) = (Part::Prelude, PRELUDE_BYTES as u32);
                self.prelude.clear();
                self.headers.clear();
                return Some(Step::End { error });
            }
            Part::Broken => self.left = u32::MAX,
        }
        None
    }
}

/// The value of a character of base64; `None` for padding and any other.
fn sextet(byte: u8) -> Option<u32> {
    let value = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(value.into())
}
