//! A connection to an upstream: HTTP/1.1 by hyper's client, or a stream of a shared HTTP/2 connection.

mod body;
mod http1;
mod http2;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use connect::Stream;
use http::{HeaderMap, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::client::conn::http1::Builder;

pub(crate) use self::body::UpstreamAnswer;
use self::http1::Http1Connection;
#[cfg(feature = "spike-engine")]
pub(crate) use self::http2::{Heads, Http2Body, Outgoing, Waiting, request_head};
pub(crate) use self::http2::{Http2Connection, Http2Stream, Place};
use self::http2::{Http2Sending, OnInterim};
use crate::capacity::Permit;
use crate::engine::net::read_budget::Turn;
use crate::engine::{SendError, UpstreamBody};
use crate::state::WorkerState;

/// A connection to an upstream, for one request at a time.
#[expect(
    clippy::large_enum_variant,
    reason = "the pool boxes it whole; a box within would cost HTTP/1.1 another"
)]
pub(crate) enum HyperConnection<B: UpstreamBody> {
    /// A connection of its own.
    Http1(Http1Connection<B>),
    /// A stream of a connection that others share. It carries one request.
    Http2(Http2Stream<B>),
}

/// A new connection to an upstream.
#[expect(clippy::large_enum_variant, reason = "it is moved once, to where it stays")]
pub(crate) enum Opened<B: UpstreamBody> {
    /// It carries one request at a time, and has this place among all sockets.
    Exclusive(HyperConnection<B>, Permit),
    /// It carries several requests at once, and keeps its place itself.
    Shared(Http2Connection),
}

/// A request that waits for its response.
#[pin_project::pin_project(project = SendingProjection)]
enum Sending<F, B> {
    Http1(#[pin] F),
    Http2(Box<Http2Sending<B>>),
}

impl<F, B> Future for Sending<F, B>
where
    F: Future<Output = Result<Response<Incoming>, SendError<B>>>,
    B: UpstreamBody,
{
    type Output = Result<Response<UpstreamAnswer>, SendError<B>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            SendingProjection::Http1(sending) => {
                sending.poll(cx).map_ok(|response| response.map(UpstreamAnswer::Http1))
            }
            SendingProjection::Http2(sending) => {
                sending.poll(cx).map_ok(|response| response.map(UpstreamAnswer::Http2))
            }
        }
    }
}

/// Starts HTTP/1.1 on a stream. `turn`: the worker's counter of turns; `place`: its place among all sockets.
pub(super) async fn http1<B: UpstreamBody>(
    builder: &Builder,
    turn: &Turn,
    stream: Stream,
    place: Permit,
) -> io::Result<Opened<B>> {
    Ok(Opened::Exclusive(HyperConnection::Http1(Http1Connection::new(builder, turn, stream).await?), place))
}

/// Starts HTTP/2 on a stream, in a task of the worker. `place`: its place among all sockets.
pub(super) async fn http2<B: UpstreamBody>(
    worker: &Rc<WorkerState>,
    stream: Stream,
    place: Permit,
) -> io::Result<Opened<B>> {
    Ok(Opened::Shared(Http2Connection::start(worker, stream, place).await?))
}

impl<B: UpstreamBody> HyperConnection<B> {
    /// Registers `request` to receive each interim response. Libraries require a function that may be called from any
    /// thread; it is called only while the connection is driven.
    pub(crate) fn report_interim(
        &self,
        request: &mut Request<B>,
        report: impl Fn(StatusCode, &HeaderMap) + Send + Sync + 'static,
    ) {
        match self {
            Self::Http1(_) => {
                hyper::ext::on_informational(request, move |interim| {
                    report(interim.status(), interim.headers())
                });
            }
            Self::Http2(_) => {
                request.extensions_mut().insert(OnInterim(Arc::new(report)));
            }
        }
    }

    /// Queues a request; [`drive`](Self::drive) sends it and reads its response.
    pub(crate) fn send(
        &mut self,
        request: Request<B>,
    ) -> impl Future<Output = Result<Response<UpstreamAnswer>, SendError<B>>> + use<B> {
        match self {
            Self::Http1(connection) => Sending::Http1(connection.send(request)),
            // Boxed: HTTP/1.1's requests have no room for it.
            Self::Http2(stream) => Sending::Http2(Box::new(stream.send(request))),
        }
    }

    /// Reads and writes as far as possible. An error is returned by the future that waits for the response or its body.
    /// Returns the context in which that future and the body are polled next: where only this call makes them ready, it
    /// wakes nothing.
    pub(crate) fn drive<'c>(&mut self, cx: &'c mut Context<'_>) -> Context<'c> {
        match self {
            Self::Http1(connection) => {
                connection.drive(cx);
                Context::from_waker(Waker::noop())
            }
            Self::Http2(stream) => {
                stream.drive(cx);
                Context::from_waker(cx.waker())
            }
        }
    }

    /// The connection, if it carries one request at a time.
    fn http1(&mut self) -> Option<&mut Http1Connection<B>> {
        match self {
            Self::Http1(connection) => Some(connection),
            Self::Http2(_) => None,
        }
    }

    /// Releases a closed connection, and with it a queued request of which nothing was sent; false if it is not closed,
    /// or already released.
    pub(crate) fn release(&mut self) -> bool {
        self.http1().is_some_and(Http1Connection::release)
    }

    /// Returns true if another request may be sent: the last one was sent and answered completely, and the server keeps
    /// the connection open.
    pub(crate) fn is_reusable(&mut self) -> bool {
        self.http1().is_some_and(|connection| connection.is_reusable())
    }

    /// Returns true if an idle connection can still be used, by the state that its socket had at the runtime's last
    /// poll of all sockets.
    pub(crate) fn is_open(&mut self, cx: &mut Context<'_>) -> bool {
        self.http1().is_some_and(|connection| connection.is_open(cx))
    }

    /// Returns true if an idle connection can still be used, by the kernel's present state of its socket.
    pub(crate) fn is_alive(&mut self, cx: &mut Context<'_>) -> bool {
        self.http1().is_some_and(|connection| connection.is_alive(cx))
    }

    /// Takes the socket after the upstream switched protocols, with the bytes read after the 101.
    pub(crate) async fn into_socket(self) -> Option<(Stream, Bytes)> {
        match self {
            Self::Http1(connection) => connection.into_socket().await,
            Self::Http2(_) => None,
        }
    }
}
