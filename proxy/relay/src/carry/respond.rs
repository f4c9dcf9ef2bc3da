//! The response to the client: its head, and the body that continues to read the upstream.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use exchange::Edits;
use http::header::{CONTENT_LENGTH, SEC_WEBSOCKET_EXTENSIONS, TRANSFER_ENCODING};
use http::{Response, StatusCode, Version, response};
use http_body::{Body, Frame, SizeHint};
use tokio::time::timeout;
use usage::HOLD_TIME;

use super::send::Sent;
use super::tee::{self, Tee};
use crate::connections::Connections;
use crate::engine::{Cut, Engine};
use crate::request::answer::Answer;
use crate::request::in_flight::InFlight;
use crate::request::reject::Stop;
use crate::request::{headers, policy};
use crate::session::{Opened, Session};
use crate::state::WorkerState;
use crate::{Passthrough, clock};

/// Makes the response to the client. `upgrade`: the session that begins if the protocol is switched, where the request
/// asks for that; `unmetered`: the reason why the request is not metered.
pub(crate) async fn respond<E: Engine>(
    connections: &Rc<Connections<E>>,
    in_flight: &Rc<InFlight>,
    sent: Sent<E>,
    upgrade: Option<Opened>,
    unmetered: Option<Passthrough>,
) -> Result<Response<ResponseBody<E>>, Stop> {
    let at = clock::now();
    let worker = &in_flight.worker;
    let Sent { mut connection, response, mut first } = sent;
    let (mut head, mut body) = response.into_parts();
    let invalid = |fault| Answer::invalid(in_flight.upstream_name(), fault);
    policy::check_response(head.status, &head.headers, upgrade.is_some()).map_err(invalid)?;
    let switching = head.status == StatusCode::SWITCHING_PROTOCOLS;
    let session = match (upgrade, unmetered) {
        (Some(opened), Some(reason)) => session(worker, opened, reason, &head),
        _ => None,
    };
    let shown = {
        let mut metered = in_flight.metered.borrow_mut();
        let shown = metered.with(|metering| metering.response_head(head.status.as_u16(), &head.headers, at));
        if shown == Some(None) {
            // Not a metered kind of answer.
            worker.passthrough(Passthrough::Path);
            metered.finish();
        }
        shown.flatten().unwrap_or_default()
    };
    if let Some(reason) = shown.unread {
        worker.passthrough(reason);
    }

    head.version = Version::HTTP_11;
    head.headers = headers::for_client(head.headers, switching);
    if head.headers.contains_key(TRANSFER_ENCODING) {
        // The one that did not frame the body (RFC 9112 §6.3).
        head.headers.remove(CONTENT_LENGTH);
        if !in_flight.is_http1 {
            head.headers.remove(TRANSFER_ENCODING);
        }
    }
    let edited = match shown.edits {
        Edits::None => false,
        Edits::Stream => true,
        Edits::IfStream => {
            // The head does not say whether the body is a stream: its first bytes do, if they come in time.
            // Of a rejection it was read before.
            if first.is_none() {
                first = timeout(HOLD_TIME, tee::first::<E>(&mut connection, &mut body)).await.ok();
            }
            let may_be = !head.headers.contains_key(CONTENT_LENGTH);
            let beginning = tee::data(first.as_ref()).map_or(&b""[..], |bytes| bytes);
            let mut metered = in_flight.metered.borrow_mut();
            metered.with(|metering| metering.exchange.is_edited(beginning, may_be)).unwrap_or_default()
        }
    };
    if edited {
        head.headers.remove(CONTENT_LENGTH);
    }

    in_flight.answering.set(true);
    let body = if switching {
        // Boxed: it holds the connection several times, and few requests switch.
        let upstream_io = Box::pin(connection.into_upstream_io()).await;
        let upstream_io = upstream_io.ok_or_else(|| invalid("broke off while switching protocols"))?;
        in_flight.client.switch(upstream_io, session);
        ResponseBody::Empty
    } else if first.is_none() && body.is_end_stream() {
        let mut driven = Context::from_waker(Waker::noop());
        tee::end(connections, in_flight, Some(connection), false, at, &mut driven);
        declared(&head, in_flight.is_http1)
    } else {
        in_flight.watch();
        let (connections, in_flight) = (Rc::clone(connections), Rc::clone(in_flight));
        ResponseBody::Tee(Tee::new(body, connection, connections, in_flight, edited, first.map(Box::new)))
    };
    in_flight.spent(at);
    Ok(Response::from_parts(head, body))
}

/// The session of a connection that switches protocols. Otherwise the request is counted by the reason why it, or the
/// tunnel, is not metered.
fn session(
    worker: &WorkerState,
    opened: Opened,
    unmetered: Passthrough,
    head: &response::Parts,
) -> Option<Box<Session>> {
    // An empty field agrees on nothing.
    let mut extensions = head.headers.get_all(SEC_WEBSOCKET_EXTENSIONS).iter();
    let is_compressed = extensions.any(|field| !field.as_bytes().trim_ascii().is_empty());
    let reason = match opened {
        _ if head.status != StatusCode::SWITCHING_PROTOCOLS => unmetered,
        Ok(session) if !is_compressed => return Some(session),
        Ok(_) => Passthrough::Socket,
        Err(reason) => reason,
    };
    worker.passthrough(reason);
    None
}

/// The response that the proxy makes itself. `close` ends the client's connection after it.
pub(crate) fn own<E: Engine>(answer: Answer, close: bool) -> Response<ResponseBody<E>> {
    answer.into_response(close).map(|body| ResponseBody::Answer(Some(body)))
}

/// The body of a 304, whose `Content-Length` is that of the omitted body.
fn declared<E: Engine>(head: &response::Parts, http1: bool) -> ResponseBody<E> {
    let length = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    match length {
        Some(length) if http1 && head.status == StatusCode::NOT_MODIFIED => ResponseBody::Declared(length),
        _ => ResponseBody::Empty,
    }
}

/// A response body.
pub(crate) enum ResponseBody<E: Engine> {
    /// The upstream's body.
    Tee(Tee<E>),
    /// The body of an answer by the proxy.
    Answer(Option<Bytes>),
    /// No body, but the head has a length, as a 304 has that of the omitted body. An engine would remove the field for
    /// a body that declares itself empty.
    Declared(u64),
    /// No body.
    Empty,
}

impl<E: Engine> Body for ResponseBody<E> {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match self.get_mut() {
            Self::Tee(tee) => Pin::new(tee).poll_frame(cx),
            Self::Answer(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Declared(_) | Self::Empty => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Tee(tee) => tee.is_end_stream(),
            Self::Answer(bytes) => bytes.is_none(),
            Self::Declared(_) => false,
            Self::Empty => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Tee(tee) => tee.size_hint(),
            Self::Answer(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64)),
            Self::Declared(length) => SizeHint::with_exact(*length),
            Self::Empty => SizeHint::with_exact(0),
        }
    }
}
