//! A request of a client that uses HTTP/2: hyper's server waits for the head of its response, then polls the body of that,
//! and with it the pump. Dropping either means that the client left (law 4).

use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use meter::Tick;

use super::down::Http2Down;
use crate::carry::handed::Handed;
use crate::carry::pump::{self, Ended, Finish, Pump, begin};
use crate::carry::rest;
use crate::clock;
use crate::connections::Connections;
use crate::engine::Cut;
use crate::engine::hyper::RequestBody;
use crate::engine::net::client::Client;
use crate::request::answer::Answer;
use crate::request::reject::Stop;
use crate::wire::upstream::Upstream;

/// The body of a response.
pub(crate) struct StreamBody {
    connections: Rc<Connections>,
    /// `None` once the response has ended.
    pump: Option<Box<Pump<Upstream, Http2Down>>>,
    handed: Handed,
    /// True if the body is truncated. The bytes before that must reach the client first.
    is_cut: bool,
}

/// Forwards a request, which began at `begun`, and returns its response, or the answer of the proxy; `None` if the client
/// left.
pub(crate) async fn forward(
    connections: Rc<Connections>,
    (client, upstream): (Rc<Client>, usize),
    request: Request<RequestBody>,
    begun: Tick,
) -> Option<Result<Response<StreamBody>, Answer>> {
    let (parts, body) = request.into_parts();
    let has_body = !body.is_end_stream();
    let request = pump::Request { parts, head: Bytes::new(), has_body, begun };
    let request = Box::new((request, Http2Down::new(body)));
    let mut pump = None;
    let begun = begin(&connections, (&client, upstream), request, &mut pump).await;
    let ended = match begun {
        Ok(()) => {
            let mut pump = Box::new(pump?);
            match head(&connections, &mut pump).await {
                Ok(head) => {
                    let mut handed = Handed::default();
                    // The client's first window may be empty: then hyper does not poll the body.
                    handed.hand(&pump.in_flight, 0, clock::now());
                    let body = StreamBody { connections, pump: Some(pump), handed, is_cut: false };
                    return Some(Ok(head?.map(|()| body)));
                }
                Err(stop) => Ended::of(&pump.in_flight, stop),
            }
        }
        Err(ended) => ended,
    };
    match ended {
        Ended::Gone => None,
        Ended::Answered(answer, _) => Some(Err(*answer)),
    }
}

/// Runs a request until its response has a head.
async fn head(
    connections: &Connections,
    pump: &mut Pump<Upstream, Http2Down>,
) -> Result<Option<Response<()>>, Stop> {
    loop {
        let polled = poll_fn(|cx| {
            let polled = pump.poll(cx, &connections.buffers);
            match pump.down.take_head() {
                Some(head) => Poll::Ready(Ok(Err(head))),
                None => polled.map_ok(Ok),
            }
        });
        match polled.await? {
            Err(head) => return Ok(Some(head)),
            Ok(finish) if pump.attempt(connections, finish).await?.is_some() => return Ok(None),
            Ok(_) => {}
        }
    }
}

impl Body for StreamBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let Self { connections, pump: running, handed, is_cut } = self.get_mut();
        let Some(pump) = running else { return Poll::Ready(is_cut.then_some(Err(Cut))) };
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
        let trailers = pump.down.take_trailers();
        *running = None;
        if matches!(polled, Ok(Finish::Done)) {
            return Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))));
        }
        // One turn sends the bytes before it.
        *is_cut = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        !self.is_cut && self.pump.as_ref().is_none_or(|pump| pump.down.is_over())
    }
}

impl Drop for StreamBody {
    fn drop(&mut self) {
        if let Some((metered, up)) = self.pump.take().and_then(|pump| pump.leave()) {
            rest::read_upstream(&self.connections, metered, up);
        }
    }
}
