//! The end of a response body: by its length, by its chunks (RFC 9112 §7.1), or by the end of its connection.

use std::ops::Range;

/// The framing of a body.
pub(super) enum Framing {
    /// By its length: this many bytes remain.
    Length(u64),
    /// By its chunks.
    Chunked(Chunks),
    /// By the end of its connection.
    Close,
}

/// Decodes chunks in place.
pub(super) struct Chunks(State);

enum State {
    /// Within a chunk's size: its value and the number of its digits so far.
    Size(u64, u8),
    /// Before the LF of a chunk's size.
    SizeLf(u64),
    /// Within a chunk's data: this many bytes remain.
    Data(u64),
    /// Before the CR after a chunk's data.
    DataCr,
    /// Before the LF after a chunk's data.
    DataLf,
    /// Before the CR of the empty line after the last chunk.
    LastCr,
    /// Before the LF of that line.
    LastLf,
}

/// A part of a chunked body within one slice.
pub(super) enum Part {
    /// A chunk's data, or a piece of it.
    Data {
        data: Range<usize>,
        /// The range of the chunk with its line and its CRLF, if the slice has all of it.
        whole: Option<Range<usize>>,
    },
    /// The body ends before `end`. `line`: the beginning of the last chunk's line, if it is in the slice.
    End { line: Option<usize>, end: usize },
}

/// The framing is not valid, or has chunk extensions or trailers.
pub(super) struct Invalid;

/// The largest number of hexadecimal digits of a chunk's size, 4 PiB.
const DIGITS_MAX: u8 = 13;

impl Chunks {
    /// A decoder at the beginning of a body.
    pub(super) const fn new() -> Self {
        Self(State::Size(0, 0))
    }

    /// Returns the next part of `slice` from `at`, which moves behind it; `None` if there is no more.
    #[inline]
    pub(super) fn next(&mut self, slice: &[u8], at: &mut usize) -> Result<Option<Part>, Invalid> {
        let mut line = None;
        if let State::Size(0, 0) = self.0
            && let Some((value, len)) = chunk_line(&slice[*at..])
        {
            line = Some(*at);
            *at += len;
            self.0 = State::Data(value);
        }
        while *at < slice.len() {
            let byte = slice[*at];
            self.0 = match (&self.0, byte) {
                (&State::Size(value, digits), byte) => {
                    if digits == 0 {
                        line = Some(*at);
                    }
                    match (char::from(byte).to_digit(16), byte) {
                        (Some(digit), _) if digits < DIGITS_MAX => {
                            State::Size(value << 4 | u64::from(digit), digits + 1)
                        }
                        (None, b'\r') if digits > 0 => State::SizeLf(value),
                        _ => return Err(Invalid),
                    }
                }
                (&State::SizeLf(0), b'\n') => State::LastCr,
                (&State::SizeLf(value), b'\n') => State::Data(value),
                (&State::Data(left), _) => {
                    let here = (slice.len() - *at) as u64;
                    let data = *at..*at + left.min(here) as usize;
                    *at = data.end;
                    if here < left {
                        self.0 = State::Data(left - here);
                        return Ok(Some(Part::Data { data, whole: None }));
                    }
                    self.0 = State::DataCr;
                    let mut whole = None;
                    if slice[data.end..].starts_with(b"\r\n") {
                        *at += 2;
                        self.0 = State::Size(0, 0);
                        whole = line.map(|line| line..*at);
                    }
                    return Ok(Some(Part::Data { data, whole }));
                }
                (State::DataCr, b'\r') => State::DataLf,
                (State::DataLf, b'\n') => State::Size(0, 0),
                (State::LastCr, b'\r') => State::LastLf,
                (State::LastLf, b'\n') => return Ok(Some(Part::End { line, end: *at + 1 })),
                _ => return Err(Invalid),
            };
            *at += 1;
        }
        Ok(None)
    }
}

/// Reads the line of a chunk with data, if all of it is there: the chunk's size and the length of the line.
#[inline]
fn chunk_line(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for (digits, &byte) in bytes.iter().enumerate().take(8) {
        match char::from(byte).to_digit(16) {
            Some(digit) => value = value << 4 | u64::from(digit),
            None => {
                return (value > 0 && bytes[digits..].starts_with(b"\r\n")).then_some((value, digits + 2));
            }
        }
    }
    None
}

/// Writes bytes as one chunk; nothing if there are none, because an empty chunk ends the body.
pub(super) fn write_chunk(out: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let mut digits = [0; 16];
    let mut from = digits.len();
    let mut left = bytes.len();
    while left > 0 {
        from -= 1;
        digits[from] = b"0123456789abcdef"[left & 15];
        left >>= 4;
    }
    out.extend_from_slice(&digits[from..]);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// The last chunk.
pub(super) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes a body that arrives in slices of `size` bytes: its data, and the bytes after its end.
    fn decode(wire: &[u8], size: usize) -> Option<(Vec<u8>, usize)> {
        let (mut chunks, mut data, mut passed) = (Chunks::new(), Vec::new(), 0);
        for slice in wire.chunks(size) {
            let mut at = 0;
            while let Some(part) = chunks.next(slice, &mut at).ok()? {
                match part {
                    Part::Data { data: range, .. } => data.extend_from_slice(&slice[range]),
                    Part::End { end, .. } => return Some((data, wire.len() - passed - end)),
                }
            }
            passed += slice.len();
        }
        None
    }

    #[test]
    fn chunks_are_decoded_at_any_cut() {
        let wire = b"5\r\nhello\r\n0a\r\n, chunked.\r\n0\r\n\r\nHTTP";
        for size in 1..=wire.len() {
            assert_eq!(decode(wire, size), Some((b"hello, chunked.".to_vec(), 4)), "{size}");
        }
    }

    #[test]
    fn invalid_chunks_are_rejected() {
        for wire in
            ["\r\nx", "5;a=b\r\nhello", "5\nhello", "5\r\nhelloX", "0x1\r\n", "+1\r\n", "0\r\na: b\r\n\r\n"]
        {
            assert!(decode(wire.as_bytes(), 3).is_none(), "{wire:?}");
        }
        assert!(decode(b"00000000000001\r\n", 64).is_none());
    }

    #[test]
    fn written_chunks_are_read_again() {
        let mut wire = Vec::new();
        for len in [1, 15, 16, 217, 65_536] {
            write_chunk(&mut wire, &vec![b'x'; len]);
        }
        write_chunk(&mut wire, b"");
        wire.extend_from_slice(LAST_CHUNK);
        assert_eq!(decode(&wire, 1000), Some((vec![b'x'; 1 + 15 + 16 + 217 + 65_536], 0)));
    }
}
