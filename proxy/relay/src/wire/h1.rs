//! HTTP/1.1 on tokio's sockets, behind the feature `spike-engine`: a trial, which is measured, and in no package.
//!
//! It serves `POST` requests with `Content-Length` whose head and body arrive in one read, without TLS on either side.
//! Heads and chunks are forwarded unchanged, and nothing is buffered unless a socket takes no more bytes. One task
//! serves the client's connection and the upstream's, without a timer: the sweep ends idle connections. Hyper serves
//! all other requests and those after them on their connection. It serves all requests if the plan changes their heads,
//! exports traces, or lets clients close their half of a connection.
//!
//! Left out, with the tests of the relay that fail with the feature:
//!
//! - No request is sent again without the options that its server rejects. `usage`:
//!   `early_hints_of_both_requests_arrive_once`, `invalid_request_is_answered_once`, `running_usage_is_dropped_first`,
//!   `server_that_rejects_gets_the_original`. `paying`: `lax_flags_change_nothing_on_strict_servers`.
//! - No head waits for the first byte of its body. `labels`: `lines_under_any_label_lose_what_was_asked_for`,
//!   `stream_under_any_label_loses_what_was_asked_for`.
//! - Trailers of responses are dropped.
//! - A body takes nothing of the memory for buffered bodies, so no other upload gives way to it. `conformance::shares`:
//!   `evicted_upload_continues_unbuffered`, `stalled_uploads_leave_memory`.

mod connection;
mod down;
mod fields;
mod shared;
mod up;
pub(crate) mod upstream_socket;

use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Request, Uri};
use http1::{Head, Lines, Table, Version, request, write_field};

pub(crate) use self::connection::{serve_connection, sweep};
use self::down::Http1Down;
pub(crate) use self::shared::Http1;
use self::up::Http1Up;
use super::Buffers;
use crate::carry::pump::Pump;
use crate::clock;
use crate::connections::Connections;
use crate::engine::net::client::Client;
use crate::request::answer::Answer;
use crate::request::gathered::Gathered;
use crate::request::in_flight::InFlight;
use crate::request::reject::reject;
use crate::request::{Decision, Edited, Opened, open};

/// A request of this protocol to an upstream of this protocol.
type Http1Pump = Pump<Http1Up, Http1Down>;

/// The next event of a connection without a request.
enum Next {
    /// A request, which is ready to be sent.
    Request,
    /// An answer of the proxy; true if the connection ends with it.
    Answer(Answer, bool),
    /// A request that is not served here.
    HandOver,
    /// The client left.
    Gone,
}

/// Reads a request, and decides everything about it, within one poll. A request to be sent is written to `pump`.
fn poll_request(
    cx: &mut Context<'_>,
    connections: &Rc<Connections>,
    client: &Rc<Client>,
    index: usize,
    pump: &mut Option<Http1Pump>,
) -> Poll<Next> {
    let buffers = &connections.http1.buffers;
    let mut buffer = buffers.read.borrow_mut();
    let first = client.take_first(usize::MAX);
    let received = match &first {
        Some(first) => first,
        None => match ready!(client.poll_read(cx, &mut buffer)) {
            Ok(0) | Err(_) => return Poll::Ready(Next::Gone),
            Ok(read) => &buffer[..read],
        },
    };
    let mut table = Table::new();
    let Some((mut parts, body, lines)) = whole(buffers, received, &mut table) else {
        client.put_back(received);
        return Poll::Ready(Next::HandOver);
    };
    let fields = parts.headers.len();
    let admitted = admit(connections, client, index, &mut parts, &body);
    let (in_flight, target, edited) = match admitted {
        Ok(admitted) => admitted,
        Err((answer, close)) => return Poll::Ready(Next::Answer(answer, close)),
    };
    let slot = connections.worker.capacities.upstreams[index].permit(in_flight.holder.clone());
    // Tenant rules may have removed some.
    let is_added = edited.is_some() && !lines.has("accept-encoding");
    let is_complete = parts.headers.len() == fields + usize::from(is_added);
    let mut unsent = buffers.out.take();
    upstream_request(&mut unsent, lines, &parts, &target, (edited.as_ref(), &body), is_complete);
    buffers.fields.replace(parts.headers);
    let up = Http1Up::new(slot, Rc::clone(&connections.pools[index].sockets), unsent);
    let down = Http1Down::new(Rc::clone(client), connections.worker.plan.half_close);
    *pump = Some(Pump::new(up, down, in_flight, None));
    Poll::Ready(Next::Request)
}

/// An admitted request: its target, and the request itself if it was edited.
type Admitted = (Rc<InFlight>, Uri, Option<Edited>);

/// Decides about a request that has arrived with all of its body. An error is the answer of the proxy, and true if the
/// connection ends with it.
fn admit(
    connections: &Connections,
    client: &Rc<Client>,
    index: usize,
    parts: &mut Parts,
    body: &Bytes,
) -> Result<Admitted, (Answer, bool)> {
    let head = (&mut *parts, !body.is_empty());
    let worker = (&connections.worker, &connections.watched);
    let opened = open(worker, client, index, head, clock::now()).map_err(|answer| (answer, true))?;
    let Opened { in_flight, target, mut undecided, begun, .. } = opened;
    let show = || {
        if !in_flight.is_complete() {
            in_flight.metered.borrow_mut().with(|metering| metering.exchange.request_body(body));
            in_flight.complete(begun);
        }
    };
    if body.is_empty() {
        show();
    }
    let mut gathered = None;
    let decided = loop {
        let decided = undecided.decide(&in_flight, parts, gathered.as_ref());
        if decided.is_ok() {
            show();
        }
        match decided {
            Ok(Decision::NeedBody) => gathered = Some(Gathered::Whole(body.clone())),
            Ok(Decision::Send(edited)) => break Ok(edited),
            Err(answer) => break Err(answer),
        }
    };
    match decided {
        Ok(edited) => Ok((in_flight, target, edited)),
        Err(answer) => Err((reject(&in_flight, answer), !in_flight.is_complete())),
    }
}

/// A request that is served here: its head, its body, and the lines of its head in the receive buffer.
type Whole<'h, 'b> = (Parts, Bytes, Lines<'h, 'b>);

/// Parses a request, if it is one that is served here.
fn whole<'h, 'b>(buffers: &Buffers, received: &'b [u8], table: &'h mut Table<'b>) -> Option<Whole<'h, 'b>> {
    let head = request(received, table).ok().flatten()?;
    let Head { start, lines, len, .. } = head;
    (head.version == Version::Http11).then_some(())?;
    let mut length = None;
    for line in lines.iter() {
        let is = |field: &str| line.name.eq_ignore_ascii_case(field);
        if is("content-length") {
            let digits = line.value.iter().all(u8::is_ascii_digit) && length.is_none();
            length = Some(str::from_utf8(line.value).ok().filter(|_| digits)?.parse::<usize>().ok()?);
        } else if is("connection") {
            line.value.eq_ignore_ascii_case(b"keep-alive").then_some(())?;
        } else if is("transfer-encoding") || is("expect") || is("trailer") || http1::is_hop_by_hop(line.name)
        {
            return None;
        }
    }
    let is_whole = received.len() == len.checked_add(length?)?;
    if !is_whole || start.method != "POST" || !start.target.starts_with('/') {
        return None;
    }
    // One copy, which the map, the target and the body share.
    let shared = Bytes::copy_from_slice(received);
    let base = received.as_ptr();
    let (mut parts, ()) = Request::new(()).into_parts();
    parts.method = Method::POST;
    let target = start.target;
    let from = target.as_ptr().addr() - base.addr();
    parts.uri = Uri::from_maybe_shared(shared.slice(from..from + target.len())).ok()?;
    parts.headers = buffers.fields.take();
    fields::map(&mut parts.headers, lines, &shared, base)?;
    Some((parts, shared.slice(len..), lines))
}

/// Writes the request for the upstream: the received lines, without those that end at this hop. `is_complete`: all of
/// them passed the tenant rules.
fn upstream_request(
    out: &mut Vec<u8>,
    lines: Lines<'_, '_>,
    parts: &Parts,
    target: &Uri,
    (edited, body): (Option<&Edited>, &[u8]),
    is_complete: bool,
) {
    let is_edited = edited.is_some();
    out.clear();
    out.extend_from_slice(b"POST ");
    out.extend_from_slice(target.path_and_query().map_or("/", PathAndQuery::as_str).as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    for line in lines.iter() {
        let is = |field: &str| line.name.eq_ignore_ascii_case(field);
        let is_changed = is_edited && (is("content-length") || is("accept-encoding"));
        let is_kept = is_complete || parts.headers.contains_key(line.name);
        if is_kept && !is_changed && !http1::is_hop_by_hop(line.name) {
            write_field(out, line.name, line.value);
        }
    }
    if is_edited {
        for name in [CONTENT_LENGTH, ACCEPT_ENCODING] {
            let value = parts.headers.get(&name).map_or(&b""[..], HeaderValue::as_bytes);
            write_field(out, name.as_str(), value);
        }
    }
    out.extend_from_slice(b"\r\n");
    match edited {
        None => out.extend_from_slice(body),
        Some(Edited { slices, .. }) => slices.iter().for_each(|slice| out.extend_from_slice(slice)),
    }
}
