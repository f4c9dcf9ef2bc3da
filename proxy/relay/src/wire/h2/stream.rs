//! A request of a client that uses HTTP/2. Hyper's server waits for the head of the response, then polls the body, and with
//! that the pump. The drop of either means that the client left (law 4).

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use super::down::Http2Down;
use super::handed::Handed;
use crate::carry::pump::{Finish, Pump};
use crate::carry::{Ended, begin, rest};
use crate::conn::client::{Client, Stage};
use crate::connections::Connections;
use crate::request::headers;
use crate::request::reject::Stop;
use crate::{clock, limits};

/// The body of a response.
pub(super) struct StreamBody {
    connections: Rc<Connections>,
    state: State,
    handed: Handed,
}

/// The state of a response.
enum State {
    /// It comes from the upstream.
    Forwarded(Box<Pump<Http2Down>>),
    /// It is an answer of the proxy, or has ended: these bytes are left.
    Own(Bytes),
    /// It is truncated. The future ends once the client may have the bytes before its end.
    Cut(Pin<Box<dyn Future<Output = ()>>>),
}

/// The client left before its response, or the response is truncated: the stream is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no response, or not all of it")]
pub(super) struct Cut;

/// Forwards a request and returns its response, or the answer of the proxy; an error means that the client left.
pub(super) async fn forward(
    connections: Rc<Connections>,
    (client, upstream): (Rc<Client>, usize),
    request: Request<Incoming>,
) -> Result<Response<StreamBody>, Cut> {
    // The proxy has closed the connection since the request arrived.
    if client.stage() == Stage::Ended {
        return Err(Cut);
    }
    let begun = clock::now();
    let (mut parts, body) = request.into_parts();
    headers::join_cookies(&mut parts.headers);
    let has_body = !body.is_end_stream();
    let request = crate::request::Request { parts, head: Bytes::new(), has_body, begun };
    let request = Box::new((request, Http2Down::new(body)));
    let mut pump = None;
    let begun = begin(&connections, (&client, upstream), request, &mut pump).await;
    let mut handed = Handed::default();
    let ended = match (begun, pump.map(Box::new)) {
        (Ok(()), Some(mut pump)) => match head(&connections, &mut pump).await {
            Ok(head) => {
                // If the client's first window is empty, the library does not poll the body.
                handed.hand(&pump.in_flight, 0, clock::now());
                let body = StreamBody { connections, state: State::Forwarded(pump), handed };
                return head.map(|head| head.map(|()| body)).ok_or(Cut);
            }
            Err(stop) => Ended::of(&pump.in_flight, stop),
        },
        (Err(ended), _) => ended,
        (Ok(()), None) => Ended::Gone,
    };
    match ended {
        Ended::Gone => Err(Cut),
        Ended::Answered(answer, _) => {
            let own = |bytes| StreamBody { connections, state: State::Own(bytes), handed };
            Ok(answer.into_response(false).map(own))
        }
    }
}

/// Runs a request until its response has a head; `None` if it ends without one.
async fn head(connections: &Connections, pump: &mut Pump<Http2Down>) -> Result<Option<Response<()>>, Stop> {
    loop {
        let mut head = None;
        let polled = poll_fn(|cx| {
            let polled = pump.poll(cx, &connections.buffers).map_ok(Some);
            head = pump.down.take_head();
            if head.is_some() { Poll::Ready(Ok(None)) } else { polled }
        });
        let finish = polled.await?;
        if head.is_some() {
            return Ok(head);
        }
        if let Some(finish) = finish
            && pump.attempt(connections, finish).await?.is_some()
        {
            return Ok(None);
        }
    }
}

impl Body for StreamBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let Self { connections, state, handed } = &mut *self;
        let pump = match state {
            State::Forwarded(pump) => pump,
            State::Own(bytes) => {
                let bytes = std::mem::take(bytes);
                return Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))));
            }
            State::Cut(written) => {
                ready!(written.as_mut().poll(cx));
                return Poll::Ready(Some(Err(Cut)));
            }
        };
        handed.waited(&pump.in_flight);
        let polled = loop {
            if let Some(piece) = pump.down.take_piece() {
                if !pump.down.is_over() {
                    handed.hand(&pump.in_flight, piece.len(), clock::now());
                }
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            match pump.poll(cx, &connections.buffers) {
                Poll::Pending if pump.down.has_data() => {}
                polled => break ready!(polled),
            }
        };
        let trailers = pump.down.trailers();
        if matches!(polled, Ok(Finish::Done)) {
            *state = State::Own(Bytes::new());
            return Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))));
        }
        let stall = connections.worker.plan.shares.client_stall;
        let written = timeout(stall, written(Rc::clone(&pump.in_flight.client)));
        *state = State::Cut(Box::pin(async move { drop(written.await) }));
        self.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        match &self.state {
            State::Forwarded(pump) => pump.down.is_over(),
            State::Own(bytes) => bytes.is_empty(),
            State::Cut(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.state {
            State::Own(bytes) => SizeHint::with_exact(bytes.len() as u64),
            State::Forwarded(_) | State::Cut(_) => SizeHint::default(),
        }
    }
}

/// Waits until the library has written all that it has: a reset would discard the rest. It writes in one turn what the
/// client's socket takes.
async fn written(client: Rc<Client>) {
    yield_now().await;
    while client.writes.is_blocked() {
        sleep(limits::H2_WRITE_CHECK).await;
    }
}

impl Drop for StreamBody {
    fn drop(&mut self) {
        if let State::Forwarded(pump) = std::mem::replace(&mut self.state, State::Own(Bytes::new()))
            && let Some((metered, up)) = pump.leave()
        {
            rest::read_upstream(&self.connections, metered, up);
        }
    }
}
