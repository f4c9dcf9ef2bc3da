//! The response to the client: its head, and the body that continues to read the upstream.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::response::Parts;
use http::{StatusCode, Version};
use http_body::{Body, Frame, SizeHint};
use tokio::time::timeout;
use usage::HOLD_TIME;

use super::send::Sent;
use super::tee::{self, Tee};
use crate::connections::Connections;
use crate::engine::Cut;
use crate::request::answer::Answer;
use crate::request::headers;
use crate::request::in_flight::InFlight;
use crate::request::reject::Stop;
use crate::response::{Response, Verdict};
use crate::session::{Opened, answered};
#[cfg(feature = "spike-engine")]
use crate::wire::h2::stream::StreamBody;
use crate::{Passthrough, clock};

/// Makes the response to the client. `upgrade`: the session that begins if the protocol is switched, where the request
/// asks for that; `unmetered`: the reason why the request is not metered.
/// Not an `async fn`: its future would hold the response twice.
pub(crate) fn respond(
    connections: &Rc<Connections>,
    in_flight: &Rc<InFlight>,
    sent: Sent,
    upgrade: Option<Opened>,
    unmetered: Option<Passthrough>,
) -> impl Future<Output = Result<http::Response<ResponseBody>, Stop>> {
    let at = clock::now();
    async move {
        let worker = &in_flight.worker;
        let Sent { mut connection, response, mut first } = sent;
        let (mut head, mut body) = response.into_parts();
        let verdict = Response::head(in_flight, head.status, &head.headers, upgrade.is_some(), at)?;
        let switching = head.status == StatusCode::SWITCHING_PROTOCOLS;
        let session =
            upgrade.and_then(|opened| answered(worker, opened, unmetered, (head.status, &head.headers)));

        head.version = Version::HTTP_11;
        head.headers = headers::for_client(head.headers, switching);
        if head.headers.contains_key(TRANSFER_ENCODING) {
            // The one that did not frame the body (RFC 9112 §6.3).
            head.headers.remove(CONTENT_LENGTH);
            if !in_flight.is_http1() {
                head.headers.remove(TRANSFER_ENCODING);
            }
        }
        let mut response = match verdict {
            Verdict::Known(response) => response,
            Verdict::ByBody(undecided) => {
                // The first bytes of a rejection were read before.
                if first.is_none() {
                    first = timeout(HOLD_TIME, tee::first(&mut connection, &mut body)).await.ok();
                }
                let beginning = tee::data(first.as_ref()).map_or(&b""[..], |bytes| bytes);
                undecided.decide(beginning, head.headers.contains_key(CONTENT_LENGTH))
            }
        };
        if response.is_edited() {
            head.headers.remove(CONTENT_LENGTH);
        }

        let body = if switching {
            // Boxed: it holds the connection several times, and few requests switch.
            let upstream_io = Box::pin(connection.into_upstream_io()).await;
            let invalid = |fault| Answer::invalid(in_flight.upstream_name(), fault);
            let upstream_io = upstream_io.ok_or_else(|| invalid("broke off while switching protocols"))?;
            in_flight.client.switch(upstream_io, session);
            ResponseBody::Empty
        } else if first.is_none() && body.is_end_stream() {
            let mut driven = Context::from_waker(Waker::noop());
            response.end(at);
            tee::give(connections, in_flight, Some(connection), false, &mut driven);
            declared(&head, in_flight.is_http1())
        } else {
            in_flight.watch();
            let response = (Rc::clone(in_flight), response);
            ResponseBody::Tee(Tee::new(
                body,
                connection,
                Rc::clone(connections),
                response,
                first.map(Box::new),
            ))
        };
        in_flight.spent(at);
        Ok(http::Response::from_parts(head, body))
    }
}

/// The response that the proxy makes itself. `close` ends the client's connection after it.
pub(crate) fn own(answer: Answer, close: bool) -> http::Response<ResponseBody> {
    answer.into_response(close).map(|body| ResponseBody::Answer(Some(body)))
}

/// The body of a 304, whose `Content-Length` is that of the omitted body.
fn declared(head: &Parts, http1: bool) -> ResponseBody {
    let length = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    match length {
        Some(length) if http1 && head.status == StatusCode::NOT_MODIFIED => ResponseBody::Declared(length),
        _ => ResponseBody::Empty,
    }
}

/// A response body.
#[expect(clippy::large_enum_variant, reason = "most bodies are the upstream's")]
pub(crate) enum ResponseBody {
    /// The upstream's body.
    Tee(Tee),
    /// The body of a response of the trial.
    #[cfg(feature = "spike-engine")]
    Stream(StreamBody),
    /// The body of an answer by the proxy.
    Answer(Option<Bytes>),
    /// No body, but the head has a length, as a 304 has that of the omitted body. An engine would remove the field for
    /// a body that declares itself empty.
    Declared(u64),
    /// No body.
    Empty,
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match self.get_mut() {
            Self::Tee(tee) => Pin::new(tee).poll_frame(cx),
            #[cfg(feature = "spike-engine")]
            Self::Stream(stream) => Pin::new(stream).poll_frame(cx),
            Self::Answer(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Declared(_) | Self::Empty => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Tee(tee) => tee.is_end_stream(),
            #[cfg(feature = "spike-engine")]
            Self::Stream(stream) => stream.is_end_stream(),
            Self::Answer(bytes) => bytes.is_none(),
            Self::Declared(_) => false,
            Self::Empty => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Tee(tee) => tee.size_hint(),
            #[cfg(feature = "spike-engine")]
            Self::Stream(stream) => stream.size_hint(),
            Self::Answer(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64)),
            Self::Declared(length) => SizeHint::with_exact(*length),
            Self::Empty => SizeHint::with_exact(0),
        }
    }
}
