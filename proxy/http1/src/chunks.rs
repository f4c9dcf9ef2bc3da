//! A chunked body (RFC 9112 §7.1), decoded in place.

use crate::body::Part;
use crate::fault::Invalid;
use crate::limits::{EXTENSION_BYTES, EXTENSIONS_BYTES, SIZE_DIGITS, TRAILER_BYTES};

/// Decodes the chunks of a body and collects its trailer section.
///
/// | subject | of a request | of a response |
/// |---|---|---|
/// | size | 1 to 13 hexadecimal digits | the same |
/// | blanks behind the size, without an extension | invalid | accepted |
/// | extensions | tabs, blanks, visible characters and bytes 80 to FF, quotes closed; 256 bytes a chunk, 4 KiB a body | the same |
/// | a line that ends with LF alone, data without CRLF behind it | invalid | invalid |
/// | trailers | 16 KiB, 100 fields, valid lines | the same |
///
/// A chunk is canonical if its line is its size without leading zeros, in at most eight digits, and CRLF. Only canonical
/// chunks may be forwarded unchanged ([`Part::Data`]'s `verbatim`), because lenient parsers differ in how they read others.
/// The rest is framed anew.
#[derive(Clone, Debug)]
pub struct Chunks {
    state: State,
    /// True if the body is a request's.
    is_strict: bool,
    /// Bytes of the current chunk's extensions.
    extension: u16,
    /// Bytes of all extensions.
    extensions: u16,
    /// The received part of the trailer section, with its empty line; without allocation while it is empty.
    trailers: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Within a size: its value so far, and the number of its digits.
    Size(u64, u8),
    /// Behind blanks after a size.
    Blank(u64),
    /// Within an extension, in quotes or not, or behind a backslash in quotes.
    Extension(u64, Quote),
    /// Before the LF of a chunk's line.
    SizeLf(u64),
    /// Within data: the number of bytes that remain.
    Data(u64),
    /// Before the CR behind data.
    DataCr,
    /// Before the LF behind data.
    DataLf,
    /// Within the trailer section.
    Trailers,
    /// Behind the body.
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quote {
    None,
    Open,
    Escape,
}

impl Chunks {
    /// The decoder of a request's body, or of a response's.
    pub const fn new(is_request: bool) -> Self {
        let state = State::Size(0, 0);
        Self { state, is_strict: is_request, extension: 0, extensions: 0, trailers: Vec::new() }
    }

    /// The trailer section of an ended body, with its empty line; empty if it has no fields.
    pub fn trailers(&self) -> &[u8] {
        &self.trailers
    }

    /// Returns the next part of `slice` from `at` on, and moves `at` behind it; `None` if more bytes are needed.
    #[inline]
    pub fn next(&mut self, slice: &[u8], at: &mut usize) -> Result<Option<Part>, Invalid> {
        let mut line = None;
        // Most lines are canonical, and whole.
        if let State::Size(0, 0) = self.state
            && let Some((size, len)) = canonical_line(&slice[*at..])
        {
            line = Some(*at);
            *at += len;
            self.begin(size);
        }
        while *at < slice.len() {
            match self.state {
                State::Data(left) => return Ok(Some(self.data(left, line, slice, at))),
                State::Trailers => return self.trailer_section(line, slice, at),
                State::Ended => return Ok(Some(Part::End { verbatim: None, end: *at })),
                _ => self.byte(slice[*at])?,
            }
            *at += 1;
        }
        Ok(None)
    }

    /// Enters the data of a chunk, or the trailer section behind the last chunk.
    fn begin(&mut self, size: u64) {
        self.extension = 0;
        self.state = if size == 0 { State::Trailers } else { State::Data(size) };
    }

    /// Reads one byte of a chunk's line, or of the CRLF behind its data.
    fn byte(&mut self, byte: u8) -> Result<(), Invalid> {
        self.state = match (self.state, byte) {
            (State::Size(size, digits), b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') if digits < SIZE_DIGITS => {
                let digit = char::from(byte).to_digit(16).ok_or(Invalid)?;
                State::Size(size << 4 | u64::from(digit), digits + 1)
            }
            (State::Size(size, 1..), b'\r') => State::SizeLf(size),
            (State::Size(size, 1..) | State::Blank(size), b';') => {
                self.extend(State::Extension(size, Quote::None))?
            }
            // A blank counts as a byte of an extension.
            (State::Size(size, 1..) | State::Blank(size), b' ' | b'\t') => self.extend(State::Blank(size))?,
            (State::Blank(size), b'\r') if !self.is_strict => State::SizeLf(size),
            (State::Extension(size, Quote::None), b'\r') => State::SizeLf(size),
            (State::Extension(size, quote), b'\t' | b' '..=b'~' | 0x80..) => {
                let quote = match (quote, byte) {
                    (Quote::None, b'"') => Quote::Open,
                    (Quote::Open, b'"') => Quote::None,
                    (Quote::Open, b'\\') => Quote::Escape,
                    (Quote::Escape, _) => Quote::Open,
                    (quote, _) => quote,
                };
                self.extend(State::Extension(size, quote))?
            }
            (State::SizeLf(size), b'\n') => {
                self.begin(size);
                return Ok(());
            }
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::Size(0, 0),
            _ => return Err(Invalid),
        };
        Ok(())
    }

    /// Counts a byte of an extension, behind which the state is `next`.
    fn extend(&mut self, next: State) -> Result<State, Invalid> {
        self.extension += 1;
        self.extensions += 1;
        let is_bounded = self.extension <= EXTENSION_BYTES && self.extensions <= EXTENSIONS_BYTES;
        is_bounded.then_some(next).ok_or(Invalid)
    }

    /// Returns the data at `at`. `line`: the beginning of the chunk's line, if it is canonical and in this slice.
    fn data(&mut self, left: u64, line: Option<usize>, slice: &[u8], at: &mut usize) -> Part {
        let here = (slice.len() - *at) as u64;
        let data = *at..*at + left.min(here) as usize;
        *at = data.end;
        if here < left {
            self.state = State::Data(left - here);
            return Part::Data { data, verbatim: None };
        }
        self.state = State::DataCr;
        let mut verbatim = None;
        if slice[data.end..].starts_with(b"\r\n") {
            *at += 2;
            self.state = State::Size(0, 0);
            verbatim = line.map(|line| line..*at);
        }
        Part::Data { data, verbatim }
    }

    /// Reads the trailer section up to its empty line.
    fn trailer_section(
        &mut self,
        line: Option<usize>,
        slice: &[u8],
        at: &mut usize,
    ) -> Result<Option<Part>, Invalid> {
        // Usually there are no fields, and the empty line has arrived.
        if self.trailers.is_empty() && slice[*at..].starts_with(b"\r\n") {
            *at += 2;
            self.state = State::Ended;
            return Ok(Some(Part::End { verbatim: line.map(|line| line..*at), end: *at }));
        }
        for &byte in &slice[*at..] {
            *at += 1;
            let is_bare = byte == b'\n' && self.trailers.last() != Some(&b'\r');
            if is_bare || self.trailers.len() == TRAILER_BYTES {
                return Err(Invalid);
            }
            self.trailers.push(byte);
            if self.trailers.ends_with(b"\r\n\r\n") || self.trailers == b"\r\n" {
                crate::trailers(&self.trailers)?;
                if self.trailers.len() == 2 {
                    self.trailers = Vec::new();
                }
                self.state = State::Ended;
                return Ok(Some(Part::End { verbatim: None, end: *at }));
            }
        }
        Ok(None)
    }
}

/// Reads a canonical line of a chunk, if all of it is there: the chunk's size and the length of the line.
#[inline]
fn canonical_line(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut size = 0;
    for (digits, &byte) in bytes.iter().enumerate().take(9) {
        match char::from(byte).to_digit(16) {
            Some(digit) if digits < 8 => size = size << 4 | u64::from(digit),
            _ => {
                let is_minimal = bytes[0] != b'0' || digits == 1;
                let is_line = digits > 0 && is_minimal && bytes[digits..].starts_with(b"\r\n");
                return is_line.then_some((size, digits + 2));
            }
        }
    }
    None
}

#[cfg(test)]
#[path = "chunks_tests.rs"]
mod tests;
