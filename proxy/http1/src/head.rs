//! The head of a request or of a response, parsed in place.

use std::mem::MaybeUninit;

use httparse::{Error, ParserConfig, Status};

use crate::fault::{Fault, Invalid};
use crate::limits::{EMPTY_LINES, FIELDS, HEAD_BYTES, REQUEST_LINE_BYTES};
use crate::lines::{Line, Lines};

/// The memory to which the fields of one head are parsed.
#[derive(Debug)]
pub struct Table<'b>([MaybeUninit<Line<'b>>; FIELDS]);

impl Default for Table<'_> {
    fn default() -> Self {
        Self([const { MaybeUninit::uninit() }; FIELDS])
    }
}

/// The version of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
}

/// A parsed head.
#[derive(Clone, Copy, Debug)]
pub struct Head<'h, 'b, T> {
    /// Its first line.
    pub start: T,
    /// Its version.
    pub version: Version,
    /// Its fields.
    pub lines: Lines<'h, 'b>,
    /// Its length with the empty line, and with empty lines before it, in bytes.
    pub len: usize,
}

/// The first line of a request.
#[derive(Clone, Copy, Debug)]
pub struct RequestLine<'b> {
    /// The method, a token.
    pub method: &'b str,
    /// The target: visible ASCII without `#`.
    pub target: &'b str,
}

/// The first line of a response.
#[derive(Clone, Copy, Debug)]
pub struct StatusLine<'b> {
    /// The status, 100 to 999.
    pub code: u16,
    /// The reason phrase; empty if it has bytes beyond ASCII.
    pub reason: &'b str,
}

/// Parses the head of a request. `Ok(None)`: it is not whole yet.
///
/// The fault of a head is that of its first invalid byte, so that it does not depend on how the head was cut.
///
/// | subject | |
/// |---|---|
/// | empty lines before it | up to two are skipped |
/// | a line that ends with LF alone | 400: inside a value it would let a client add fields behind another parser |
/// | CR, NUL, other control characters, folded lines, a blank before a colon | 400 |
/// | bytes 80 to FF in values | pass |
/// | the request line | single blanks, a target of 21 to 7E without `#`, or 400; at most 65,500 bytes, or 414 |
/// | the version | 1.0 or 1.1, or 505 |
/// | size | 64 KiB and 100 fields, or 431 |
pub fn request<'h, 'b>(
    bytes: &'b [u8],
    table: &'h mut Table<'b>,
) -> Result<Option<Head<'h, 'b, RequestLine<'b>>>, Fault> {
    let skipped = empty_lines(bytes)?;
    let (end, fault) = end_of_lines(&bytes[skipped..], bytes.len().min(HEAD_BYTES) - skipped.min(HEAD_BYTES));
    let mut request = httparse::Request::new(&mut []);
    // A fault before that end comes first.
    let parsed = request.parse_with_uninit_headers(&bytes[skipped..skipped + end], &mut table.0);
    let is_target = |target: &str| target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
    if request.path.is_some_and(|target| !is_target(target)) {
        return Err(Fault::Target);
    }
    match parsed {
        // In a line with too many words, the word behind the target is not a version.
        Err(Error::Version) if behind(bytes, request.path).starts_with(b"HTTP/") => {
            return Err(Fault::Version);
        }
        Err(Error::TooManyHeaders) => return Err(Fault::ManyFields),
        Err(_) => return Err(Fault::Syntax),
        Ok(_) => {}
    }
    if let Some(fault) = fault {
        return Err(fault);
    }
    let Ok(Status::Complete(len)) = parsed else { return Ok(None) };
    let start =
        RequestLine { method: request.method.unwrap_or_default(), target: request.path.unwrap_or_default() };
    let (version, lines) = (version(request.version), Lines(request.headers));
    Ok(Some(Head { start, version, lines, len: skipped + len }))
}

/// The bytes behind a target and its blank.
fn behind<'b>(bytes: &'b [u8], target: Option<&str>) -> &'b [u8] {
    target.map_or(&[], |target| &bytes[target.as_ptr().addr() - bytes.as_ptr().addr() + target.len() + 1..])
}

/// Returns the number of bytes of the empty lines before a request.
fn empty_lines(bytes: &[u8]) -> Result<usize, Fault> {
    let mut skipped = 0;
    while bytes[skipped..].starts_with(b"\r\n") && skipped < 2 * EMPTY_LINES {
        skipped += 2;
    }
    match bytes[skipped..] {
        [b'\n', ..] => Err(Fault::BareLf),
        [b'\r', ..] if skipped == 2 * EMPTY_LINES => Err(Fault::EmptyLines),
        _ => Ok(skipped),
    }
}

/// Finds the end of a request's head by its line ends: the position behind its empty line, or of a fault in its line ends
/// or its size, which is at most `max` bytes; the end of `bytes` if there is neither.
fn end_of_lines(bytes: &[u8], max: usize) -> (usize, Option<Fault>) {
    let bounded = &bytes[..bytes.len().min(max)];
    let (mut line, mut lines) = (0, memchr::memchr_iter(b'\n', bounded));
    if lines.clone().next().unwrap_or(bounded.len()) > REQUEST_LINE_BYTES {
        return (REQUEST_LINE_BYTES, Some(Fault::LongRequestLine));
    }
    lines
        .find_map(|at| match bounded[line..at] {
            [.., b'\r'] if at - line == 1 => Some((at + 1, None)),
            [.., b'\r'] => {
                line = at + 1;
                None
            }
            _ => Some((at, Some(Fault::BareLf))),
        })
        .unwrap_or((bounded.len(), (bytes.len() > max).then_some(Fault::LongHead)))
}

/// Parses the head of a response. `Ok(None)`: it is not whole yet.
///
/// | subject | |
/// |---|---|
/// | empty lines before it | a fault |
/// | a line that ends with LF alone | accepted |
/// | a blank before a colon | accepted, and not part of the name |
/// | CR, NUL, other control characters, folded lines | a fault |
/// | bytes 80 to FF in values | pass |
/// | the version | 1.0 or 1.1 |
/// | the status | 100 to 999 |
/// | size | 64 KiB and 100 fields |
pub fn response<'h, 'b>(
    bytes: &'b [u8],
    table: &'h mut Table<'b>,
) -> Result<Option<Head<'h, 'b, StatusLine<'b>>>, Fault> {
    if matches!(bytes, [b'\r' | b'\n', ..]) {
        return Err(Fault::EmptyLines);
    }
    let mut response = httparse::Response::new(&mut []);
    let mut config = ParserConfig::default();
    config.allow_spaces_after_header_name_in_responses(true);
    let bounded = &bytes[..bytes.len().min(HEAD_BYTES)];
    let len = match config.parse_response_with_uninit_headers(&mut response, bounded, &mut table.0) {
        Ok(Status::Complete(len)) => len,
        Ok(Status::Partial) if bytes.len() > HEAD_BYTES => return Err(Fault::LongHead),
        Ok(Status::Partial) => return Ok(None),
        Err(Error::Version) => return Err(Fault::Version),
        Err(Error::TooManyHeaders) => return Err(Fault::ManyFields),
        Err(_) => return Err(Fault::Syntax),
    };
    let start = StatusLine {
        code: response.code.filter(|code| *code >= 100).ok_or(Fault::Syntax)?,
        reason: response.reason.unwrap_or_default(),
    };
    let (version, lines) = (version(response.version), Lines(response.headers));
    Ok(Some(Head { start, version, lines, len }))
}

/// Returns true if a head that was incomplete may be whole with `more` bytes, `len` in all, or exceed a limit. Other faults show
/// at the end of their line, so that a head which arrives in small pieces is not parsed for each of them.
pub fn may_be_whole(more: &[u8], len: usize) -> bool {
    memchr::memchr(b'\n', more).is_some() || len > REQUEST_LINE_BYTES
}

/// Parses a trailer section with its empty line ([`crate::Body::trailers`]).
pub fn trailers(section: &[u8]) -> Result<Vec<Line<'_>>, Invalid> {
    let mut table = [httparse::EMPTY_HEADER; FIELDS];
    match httparse::parse_headers(section, &mut table) {
        Ok(Status::Complete((len, lines))) if len == section.len() => Ok(lines.to_vec()),
        _ => Err(Invalid),
    }
}

/// The version of a whole head: httparse has accepted no other.
fn version(minor: Option<u8>) -> Version {
    if minor == Some(0) { Version::Http10 } else { Version::Http11 }
}

#[cfg(test)]
#[path = "head_tests.rs"]
mod tests;
