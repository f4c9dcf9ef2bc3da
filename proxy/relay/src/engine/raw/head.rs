//! Message heads: the lines of a received head, in place, and the fields that end at this hop.

use std::mem::MaybeUninit;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use httparse::{Header, ParserConfig, Status};

use crate::limits::HEAD_FIELDS;

/// The fields of a head, in the receive buffer.
pub(super) type Lines<'h, 'b> = &'h [Header<'b>];

/// A table for the fields of one head.
pub(super) type Table<'b> = [MaybeUninit<Header<'b>>; HEAD_FIELDS];

/// An empty table.
pub(super) const fn table<'b>() -> Table<'b> {
    [const { MaybeUninit::uninit() }; HEAD_FIELDS]
}

/// A parsed head.
pub(super) struct Parsed<'h, 'b, T> {
    pub(super) start: T,
    pub(super) lines: Lines<'h, 'b>,
    /// The length of the head with its empty line.
    pub(super) len: usize,
}

/// The method and the target of a request.
pub(super) struct RequestLine<'b> {
    pub(super) method: &'b str,
    pub(super) target: &'b str,
}

/// The status and the reason phrase of a response. `is_http11`: its server uses HTTP/1.1.
pub(super) struct StatusLine<'b> {
    pub(super) code: u16,
    pub(super) reason: &'b str,
    pub(super) is_http11: bool,
}

/// Parses the head of an HTTP/1.1 request; `None` if it is incomplete, invalid or of another version.
pub(super) fn request<'h, 'b>(
    bytes: &'b [u8],
    table: &'h mut Table<'b>,
) -> Option<Parsed<'h, 'b, RequestLine<'b>>> {
    let mut request = httparse::Request::new(&mut []);
    let Ok(Status::Complete(len)) = request.parse_with_uninit_headers(bytes, table) else { return None };
    let start = RequestLine { method: request.method?, target: request.path? };
    (request.version == Some(1)).then_some(Parsed { start, lines: request.headers, len })
}

/// Parses the head of a response; `Ok(None)` if it is incomplete.
pub(super) fn response<'h, 'b>(
    bytes: &'b [u8],
    table: &'h mut Table<'b>,
) -> Result<Option<Parsed<'h, 'b, StatusLine<'b>>>, httparse::Error> {
    let mut response = httparse::Response::new(&mut []);
    let config = ParserConfig::default();
    let Status::Complete(len) = config.parse_response_with_uninit_headers(&mut response, bytes, table)?
    else {
        return Ok(None);
    };
    let start = StatusLine {
        code: response.code.unwrap_or_default(),
        reason: response.reason.unwrap_or_default(),
        is_http11: response.version == Some(1),
    };
    Ok(Some(Parsed { start, lines: response.headers, len }))
}

/// Writes the fields to a map; its values share `head`, a copy of the bytes that the lines lie in, which begin at
/// `base`. `None` if one is not valid.
pub(super) fn map(map: &mut HeaderMap, lines: Lines<'_, '_>, head: &Bytes, base: *const u8) -> Option<()> {
    map.clear();
    for line in lines {
        let name = HeaderName::from_bytes(line.name.as_bytes()).ok()?;
        let from = line.value.as_ptr().addr() - base.addr();
        let value = head.slice(from..from + line.value.len());
        map.append(name, HeaderValue::from_maybe_shared(value).ok()?);
    }
    Some(())
}

/// Returns true if a field ends at this hop, `Connection` itself included.
pub(super) fn is_hop_by_hop(name: &str) -> bool {
    let is = |field: &str| name.eq_ignore_ascii_case(field);
    match name.len() {
        2 => is("te"),
        7 => is("upgrade"),
        10 => is("connection") || is("keep-alive"),
        14 => is("http2-settings"),
        16 => is("proxy-connection"),
        _ => false,
    }
}

/// Writes a field.
pub(super) fn write(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}
