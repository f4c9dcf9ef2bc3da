//! The response body: each slice read from the upstream is passed to the exchange and forwarded to the client in the
//! same turn (law 2). It owns the upstream connection: polling the body drives it, and dropping the body closes its
//! socket or resets its stream (law 4), except for the rest of an unstreamed answer.
//!
//! Backpressure needs no code: while the client's socket is full the engine does not poll the body, so
//! nothing reads the upstream.

use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::handed::Handed;
use super::held_timer::HeldTimer;
use super::rest;
use crate::connections::Connections;
use crate::engine::hyper::UpstreamAnswer;
use crate::engine::net::pool::PooledConnection;
use crate::engine::{Cut, Part};
use crate::request::in_flight::InFlight;
use crate::response::Response;
use crate::{clock, limits};

/// A response body that is being forwarded.
pub(crate) struct Tee {
    /// `None` after its client has left.
    body: Option<UpstreamAnswer>,
    // Before `in_flight`: the upstream's socket is closed, or its stream reset, when the exchange ends.
    connection: Option<Box<PooledConnection>>,
    /// The last turn in which nothing more could be read. Until that turn ends, the runtime does not poll the sockets.
    drained: Option<u64>,
    connections: Rc<Connections>,
    /// True if the length of the body was unknown at its beginning.
    streamed: bool,
    state: State,
    /// The decisions about it.
    response: Response,
    held_timer: HeldTimer,
    /// The part of the body that was read before its head was forwarded.
    first: Option<Box<Part>>,
    /// The rest of a slice whose first piece was forwarded, with HTTP/2.
    ahead: Bytes,
    /// The time of the last piece that may wait for its client, and its bytes.
    handed: Handed,
    /// The body's last frame, while held bytes are forwarded before it.
    trailers: Option<Frame<Bytes>>,
    in_flight: Rc<InFlight>,
}

/// The state of the body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// More is expected.
    Open,
    /// It is truncated, and all bytes were forwarded.
    Broken,
    /// It is truncated; the bytes before that must reach the client first.
    Cut,
    /// All of it was forwarded.
    Ended,
}

impl Tee {
    /// The body of a response from `connection`. `first`: what was read of it before.
    pub(crate) fn new(
        body: UpstreamAnswer,
        connection: Box<PooledConnection>,
        connections: Rc<Connections>,
        (in_flight, response): (Rc<InFlight>, Response),
        first: Option<Box<Part>>,
    ) -> Self {
        let mut handed = Handed::default();
        // The client's first window may be empty: then the engine does not poll the body.
        handed.hand(&in_flight, 0, clock::now());
        Self {
            streamed: body.size_hint().exact().is_none(),
            body: Some(body),
            connection: Some(connection),
            drained: None,
            connections,
            state: State::Open,
            response,
            held_timer: HeldTimer::default(),
            first,
            ahead: Bytes::new(),
            handed,
            trailers: None,
            in_flight,
        }
    }
}

impl Body for Tee {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let this = self.get_mut();
        let in_flight = &*this.in_flight;
        let Some(body) = &mut this.body else { return Poll::Ready(None) };
        this.handed.waited(in_flight);
        if !this.ahead.is_empty() {
            let bytes = std::mem::take(&mut this.ahead);
            let bytes = piece(in_flight, bytes, &mut this.ahead);
            if this.state == State::Open || !this.ahead.is_empty() {
                this.handed.hand(in_flight, bytes.len(), clock::now());
            }
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        match this.state {
            State::Open => {}
            State::Ended => return Poll::Ready(this.trailers.take().map(Ok)),
            State::Broken => {
                this.state = State::Cut;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            // The socket wakes this task when it accepts bytes again. With HTTP/2 it belongs to another task; there,
            // one turn has sent the bytes.
            State::Cut if in_flight.is_http1() && in_flight.client.writes.is_blocked() => {
                return Poll::Pending;
            }
            State::Cut => return Poll::Ready(Some(Err(Cut))),
        }
        let turn = in_flight.worker.turn.number();
        if this.drained == Some(turn) {
            // The engine polls once more after it has sent a frame. Any event since then has woken this task.
            return Poll::Pending;
        }
        loop {
            let polled = match this.first.take() {
                Some(first) => Poll::Ready(*first),
                None => read(this.connection.as_deref_mut(), body, cx),
            };
            let Poll::Ready(frame) = polled else {
                this.drained = Some(turn);
                ready!(this.held_timer.poll(cx, this.response.due()));
                let held = this.response.release().map(|bytes| piece(in_flight, bytes, &mut this.ahead));
                return held.map_or(Poll::Pending, |bytes| Poll::Ready(Some(Ok(Frame::data(bytes)))));
            };
            match frame {
                Some(Ok(frame)) => {
                    let at = clock::now();
                    let ended = frame.is_trailers() || body.is_end_stream();
                    let frame = match frame.into_data() {
                        Ok(bytes) => {
                            let shown = this.response.data(&bytes, || bytes.clone(), at, ended);
                            let bytes = shown.unwrap_or(bytes);
                            Frame::data(piece(in_flight, bytes, &mut this.ahead))
                        }
                        Err(trailers) => match this.response.release() {
                            Some(bytes) => {
                                this.trailers = Some(trailers);
                                Frame::data(piece(in_flight, bytes, &mut this.ahead))
                            }
                            None => trailers,
                        },
                    };
                    if ended {
                        this.state = State::Ended;
                        this.response.end(at);
                        give(&this.connections, in_flight, this.connection.take(), this.streamed, cx);
                    } else if frame.data_ref().is_some_and(Bytes::is_empty) {
                        // All of it is held, or was removed.
                        continue;
                    }
                    if let Some(bytes) = frame.data_ref()
                        && (!ended || !this.ahead.is_empty())
                    {
                        this.handed.hand(in_flight, bytes.len(), at);
                    }
                    return Poll::Ready(Some(Ok(frame)));
                }
                None => {
                    this.state = State::Ended;
                    this.response.end(clock::now());
                    give(&this.connections, in_flight, this.connection.take(), this.streamed, cx);
                    let held = this.response.release().map(|bytes| piece(in_flight, bytes, &mut this.ahead));
                    return Poll::Ready(held.map(|bytes| Ok(Frame::data(bytes))));
                }
                Some(Err(_)) => {
                    this.connection = None;
                    this.response.cut(clock::now());
                    if let Some(bytes) = this.response.release() {
                        this.state = State::Broken;
                        return Poll::Ready(Some(Ok(Frame::data(piece(in_flight, bytes, &mut this.ahead)))));
                    }
                    this.state = State::Cut;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.state == State::Ended && self.trailers.is_none() && self.ahead.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        // The size of the removed parts is unknown before.
        if self.response.is_edited() {
            return SizeHint::default();
        }
        let rest = self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint);
        let ahead = (self.ahead.len() + data(self.first.as_deref()).map_or(0, Bytes::len)) as u64;
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(ahead));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(ahead));
        }
        hint
    }
}

impl Tee {
    /// Returns true if the announced length of the body was forwarded.
    fn is_delivered(&self) -> bool {
        let is_read = self.body.as_ref().is_some_and(|body| body.size_hint().exact() == Some(0));
        is_read && self.ahead.is_empty() && self.first.is_none() && !self.response.is_edited()
    }
}

impl Drop for Tee {
    fn drop(&mut self) {
        if self.state == State::Open && self.is_delivered() {
            // The engine has sent the announced length and asks for no end; over HTTP/2, the stream's may still come.
            let connection = self.connection.take();
            let mut driven = Context::from_waker(Waker::noop());
            self.response.end(clock::now());
            give(&self.connections, &self.in_flight, connection, self.streamed, &mut driven);
            return;
        }
        if let Some(bytes) = data(self.first.as_deref()).cloned() {
            self.response.data(&bytes, || bytes.clone(), clock::now(), false);
        }
        if let Some(metered) = self.response.leave()
            && let (Some(mut connection), Some(mut body)) = (self.connection.take(), self.body.take())
        {
            self.connections.read_on(rest::read(metered, move |cx, show| {
                let frame = ready!(Pin::new(&mut body).poll_frame(&mut connection.http.drive(cx)));
                let data = frame.and_then(Result::ok).and_then(|frame| frame.into_data().ok());
                Poll::Ready(data.inspect(|bytes| show(bytes)).is_some())
            }));
        }
    }
}

/// Reads the first part of a body.
pub(crate) async fn first(connection: &mut PooledConnection, body: &mut UpstreamAnswer) -> Part {
    poll_fn(|cx| read(Some(&mut *connection), body, cx)).await
}

/// Reads the next part of a body, and drives its connection.
fn read(
    mut connection: Option<&mut PooledConnection>,
    body: &mut UpstreamAnswer,
    cx: &Context<'_>,
) -> Poll<Part> {
    loop {
        let (polled, woken) = match connection.as_deref_mut() {
            Some(PooledConnection { http, waker, .. }) => {
                waker.follow(cx);
                let mut driving = Context::from_waker(waker.waker());
                let mut driven = http.drive(&mut driving);
                waker.poll(|| Pin::new(&mut *body).poll_frame(&mut driven))
            }
            None => (Pin::new(&mut *body).poll_frame(&mut Context::from_waker(Waker::noop())), false),
        };
        if polled.is_ready() || !woken {
            return polled.map_err(|_| Cut);
        }
    }
}

/// Returns the bytes of a part that has some.
pub(crate) fn data(part: Option<&Part>) -> Option<&Bytes> {
    part?.as_ref()?.as_ref().ok()?.data_ref()
}

/// Returns the connection of a completely read response to its upstream's pool, if the server keeps it and has the whole
/// request.
pub(crate) fn give(
    connections: &Connections,
    in_flight: &InFlight,
    connection: Option<Box<PooledConnection>>,
    streamed: bool,
    cx: &mut Context<'_>,
) {
    let Some(mut connection) = connection.filter(|_| in_flight.is_complete()) else { return };
    if !connection.http.is_reusable() {
        connection.http.drive(cx);
    }
    if connection.http.is_reusable() && !in_flight.worker.leaving.is_ordered() {
        connections.pools[in_flight.upstream].give(connection, streamed);
    }
}

/// Returns the first piece of a slice and keeps the rest in `ahead`. The engine accepts a slice whole, however small
/// the client's window is, so with HTTP/2 the client's speed shows only between the pieces.
fn piece(in_flight: &InFlight, mut bytes: Bytes, ahead: &mut Bytes) -> Bytes {
    if !in_flight.is_http1() && bytes.len() > limits::H2_PIECE_BYTES {
        *ahead = bytes.split_off(limits::H2_PIECE_BYTES);
    }
    bytes
}
