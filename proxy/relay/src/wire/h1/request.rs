//! Reads the head of a request, and decides if it is one.

use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, TE};
use http::{Method, StatusCode, Uri};
use http1::{Body, Chunks, Fault, Table, Version, request, request_body, tokens};

use super::down::{Asked, Http1Down};
use super::fields;
use crate::carry::pump::Request;
use crate::clock;
use crate::conn::client::Client;
use crate::request::headers;
use crate::wire::Buffers;

/// The next event of a connection without a request.
pub(super) enum Next {
    Request(Box<(Request, Http1Down)>),
    /// A message that is not a request; the status of the answer.
    Invalid(StatusCode),
    /// The client left.
    Gone,
}

/// Reads until the head of the next request is whole. What follows it is put back.
pub(super) fn poll_next(
    cx: &mut Context<'_>,
    (client, half_close): (&Rc<Client>, bool),
    buffers: &Buffers,
) -> Poll<Next> {
    let mut buffer = buffers.read.borrow_mut();
    // The beginning of a head, or requests behind the last one.
    let mut torn = client.take_first(usize::MAX).unwrap_or_default();
    let mut read = 0;
    loop {
        let joined;
        let mut bytes = &buffer[..read];
        if !torn.is_empty() {
            joined = if read == 0 { torn } else { Bytes::from([&torn[..], bytes].concat()) };
            (torn, bytes) = (joined.clone(), &joined);
        }
        match parse((client, half_close), buffers, bytes) {
            Ok(None) => {}
            Ok(Some(request)) => {
                let rest = &bytes[request.0.head.len()..];
                if !rest.is_empty() {
                    client.return_first(Bytes::copy_from_slice(rest));
                }
                return Poll::Ready(Next::Request(request));
            }
            Err(status) => return Poll::Ready(Next::Invalid(status)),
        }
        if torn.is_empty() && read > 0 {
            torn = Bytes::copy_from_slice(&buffer[..read]);
        }
        match client.poll_read(cx, &mut buffer) {
            Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Next::Gone),
            Poll::Ready(Ok(more)) => read = more,
            Poll::Pending => {
                client.return_first(torn);
                return Poll::Pending;
            }
        }
    }
}

/// Parses the head of a request. An error is the status of the answer to it.
fn parse(
    (client, half_close): (&Rc<Client>, bool),
    buffers: &Buffers,
    bytes: &[u8],
) -> Result<Option<Box<(Request, Http1Down)>>, StatusCode> {
    let mut table = Table::new();
    let head = match request(bytes, &mut table) {
        Ok(None) => return Ok(None),
        Ok(Some(head)) => head,
        Err(Fault::LongHead | Fault::ManyFields) => {
            return Err(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
        }
        Err(Fault::LongRequestLine) => return Err(StatusCode::URI_TOO_LONG),
        Err(_) => return Err(StatusCode::BAD_REQUEST),
    };
    let begun = clock::now();
    let invalid = StatusCode::BAD_REQUEST;
    // One copy, which the map and the target share.
    let copy = Bytes::copy_from_slice(&bytes[..head.len]);
    let (mut parts, ()) = http::Request::new(()).into_parts();
    parts.method = Method::from_bytes(head.start.method.as_bytes()).map_err(|_| invalid)?;
    let from = head.start.target.as_ptr().addr() - bytes.as_ptr().addr();
    let target = copy.slice(from..from + head.start.target.len());
    parts.uri = Uri::from_maybe_shared(target).map_err(|_| invalid)?;
    let is_old = head.version == Version::Http10;
    parts.version = if is_old { http::Version::HTTP_10 } else { http::Version::HTTP_11 };
    parts.headers = buffers.fields.take();
    fields::map(&mut parts.headers, head.lines, &copy, bytes.as_ptr()).ok_or(invalid)?;

    let codings = head.lines.all("transfer-encoding").flat_map(tokens);
    if codings.last().is_some_and(|last| is_old || !last.eq_ignore_ascii_case(b"chunked")) {
        // Where the body ends is unknown (RFC 9112 §6.3).
        return Err(invalid);
    }
    let fields = &mut parts.headers;
    let mut is_last = match is_old {
        true => !headers::lists(fields, &CONNECTION, "keep-alive"),
        false => headers::lists(fields, &CONNECTION, "close"),
    };
    let body = match request_body(&head) {
        Ok(body) => body,
        Err(Fault::LengthAndCoding) => {
            let mut lengths = head.lines.all("content-length");
            if !lengths.all(|length| !length.is_empty() && length.iter().all(u8::is_ascii_digit)) {
                return Err(invalid);
            }
            // It is forwarded as chunked, and its connection ends after it (RFC 9112 §6.1).
            headers::take_out(fields, &CONTENT_LENGTH);
            is_last = true;
            Body::Chunked(Chunks::new(true))
        }
        Err(_) => {
            // The policy rejects it.
            is_last = true;
            Body::EMPTY
        }
    };
    let has_body = !body.is_ended();
    let asked = Asked {
        version: head.version,
        is_head: parts.method == Method::HEAD,
        is_last,
        takes_trailers: headers::lists(fields, &TE, "trailers"),
        awaits_continue: has_body && !is_old && headers::lists(fields, &EXPECT, "100-continue"),
    };
    let down = Http1Down::new(Rc::clone(client), asked, body, half_close);
    Ok(Some(Box::new((Request { parts, head: copy, has_body, begun }, down))))
}
