//! Reads and parses the head of a request.

use std::rc::Rc;
use std::task::{Context, Poll, ready};

use http::header::{CONNECTION, EXPECT, TE};
use http::{Method, Uri};
use http1::{Body, Fault, Table, Version, may_be_whole, request, request_body};

use super::down::{Asked, Http1Down};
use super::fields;
use crate::clock;
use crate::conn::client::Client;
use crate::request::{Request, headers};
use crate::wire::Buffers;

/// The next event of a connection without a request.
pub(super) enum Next {
    Request(Parsed),
    /// Bytes that are not a valid request, and the form of the answer.
    Invalid(Fault, Asked),
    /// The client left.
    Gone,
}

/// A request whose head was read, and its connection.
type Parsed = Box<(Request, Http1Down)>;

/// Reads until the head of the next request is complete, and puts the bytes behind it back. `torn`: the first bytes of the head.
pub(super) fn poll_next(
    cx: &mut Context<'_>,
    (client, half_close): (&Rc<Client>, bool),
    buffers: &Buffers,
    torn: &mut Vec<u8>,
) -> Poll<Next> {
    let mut buffer = buffers.read.borrow_mut();
    loop {
        // What was read before: to detect the protocol, or behind the last request.
        let first = client.take_first(usize::MAX);
        let more = match &first {
            Some(first) => &first[..],
            None => match ready!(client.poll_read(cx, &mut buffer)) {
                Ok(read) => &buffer[..read],
                Err(_) => return Poll::Ready(Next::Gone),
            },
        };
        let (is_torn, is_end) = (!torn.is_empty(), more.is_empty());
        if is_torn {
            torn.extend_from_slice(more);
        }
        let bytes = if is_torn { &torn[..] } else { more };
        let parsed = match !is_torn || is_end || may_be_whole(more, bytes.len()) {
            true => parse((client, half_close), buffers, bytes),
            false => Ok(None),
        };
        match parsed {
            Ok(None) if is_end => return Poll::Ready(Next::Gone),
            Ok(None) if is_torn => {}
            Ok(None) => torn.extend_from_slice(more),
            Ok(Some(request)) => {
                let rest = &bytes[request.0.head.len()..];
                if !rest.is_empty() {
                    client.return_first(buffers.keep(rest));
                }
                return Poll::Ready(Next::Request(request));
            }
            Err((fault, asked)) => return Poll::Ready(Next::Invalid(fault, asked)),
        }
    }
}

/// Parses the head of a request, and determines the framing of its body.
fn parse(
    (client, half_close): (&Rc<Client>, bool),
    buffers: &Buffers,
    bytes: &[u8],
) -> Result<Option<Parsed>, (Fault, Asked)> {
    let mut table = Table::default();
    let Some(head) = request(bytes, &mut table).map_err(|fault| (fault, Asked::NOTHING))? else {
        return Ok(None);
    };
    let begun = clock::now();
    let invalid = (Fault::Syntax, Asked::NOTHING);
    // The map and the target share one copy.
    let copy = buffers.keep(&bytes[..head.len]);
    let (mut parts, ()) = http::Request::new(()).into_parts();
    parts.method = Method::from_bytes(head.start.method.as_bytes()).map_err(|_| invalid)?;
    let from = head.start.target.as_ptr().addr() - bytes.as_ptr().addr();
    let target = copy.slice(from..from + head.start.target.len());
    parts.uri = Uri::from_maybe_shared(target).map_err(|_| (Fault::Target, Asked::NOTHING))?;
    let is_old = head.version == Version::Http10;
    parts.version = if is_old { http::Version::HTTP_10 } else { http::Version::HTTP_11 };
    parts.headers = buffers.fields.take();
    fields::map(&mut parts.headers, head.lines, &copy, bytes.as_ptr()).ok_or(invalid)?;

    let is_head = parts.method == Method::HEAD;
    let is_last = match is_old {
        true => !headers::lists(&parts.headers, &CONNECTION, "keep-alive"),
        false => headers::lists(&parts.headers, &CONNECTION, "close"),
    };
    let version = head.version;
    let body = request_body(&head).map_err(|fault| (fault, Asked { version, is_head, ..Asked::NOTHING }))?;
    if matches!(body, Body::Chunked(_)) {
        headers::make_canonical(&mut parts.headers);
    }
    let has_body = !matches!(body, Body::Length(0));
    let asked = Asked {
        version,
        is_head,
        is_last,
        takes_trailers: headers::lists(&parts.headers, &TE, "trailers"),
        awaits_continue: has_body && !is_old && headers::lists(&parts.headers, &EXPECT, "100-continue"),
    };
    let down = Http1Down::new(Rc::clone(client), asked, body, half_close);
    Ok(Some(Box::new((Request { parts, head: copy, has_body, begun }, down))))
}
