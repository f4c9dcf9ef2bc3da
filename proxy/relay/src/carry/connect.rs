//! The connection for one attempt: from the pool, or a new one, by the protocol on which proxy and server agree.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use connect::{ConnectError, Offer, Protocol};
use meter::Tick;

use super::attempts::Attempts;
use super::upload::Upload;
use crate::capacity::Permit;
use crate::clock;
use crate::conn::pool::{Need, Transport};
use crate::conn::upstream_socket::UpstreamSocket;
use crate::connections::Connections;
use crate::request::answer::Answer;
use crate::request::in_flight::InFlight;
use crate::request::reject::{Stop, unconnected};
use crate::wire::h1::Http1Up;
use crate::wire::h2::shared_connection::Http2Connection;
use crate::wire::h2::up::Http2Up;
use crate::wire::upstream::Upstream;
use crate::wire::{Buffers, Down};

/// Takes or opens a connection, unless the client leaves first. Meanwhile, one slice of the body is read, so that the tick
/// of the complete request depends on the client and not on the upstream. `slot`: the place of the attempt before. Also
/// returns the tick at which the connection was ready, or `begun` if there was no wait for it.
pub(super) async fn connect(
    connections: &Connections,
    in_flight: &Rc<InFlight>,
    attempts: Attempts,
    (down, upload): (&mut impl Down, &mut Upload),
    (slot, begun): (Option<Permit>, Tick),
) -> Result<(Upstream, Tick), Stop> {
    let buffers = &connections.buffers;
    let mut opening = pin!(open(connections, in_flight, attempts, slot));
    let mut has_waited = false;
    let up = poll_fn(|cx| {
        if let Poll::Ready(opened) = opening.as_mut().poll(cx) {
            return Poll::Ready(opened.map_err(Stop::from));
        }
        has_waited = true;
        poll_ahead(cx, (&mut *down, in_flight), upload, buffers).map(Err)
    });
    Ok((up.await?, if has_waited { clock::now() } else { begun }))
}

/// Reads one slice of the body ahead, and watches the client; ready if the request ends.
fn poll_ahead(
    cx: &mut Context<'_>,
    (down, in_flight): (&mut impl Down, &Rc<InFlight>),
    upload: &mut Upload,
    buffers: &Buffers,
) -> Poll<Stop> {
    if upload.is_open() && !upload.has_ahead() {
        // One slice, however many chunks there are: each slice has memory of its own.
        let mut read = Vec::new();
        let keep = |data: &[u8]| read.extend_from_slice(data);
        let trailers = match ready!(upload.poll_ahead(cx, (&mut *down, in_flight), buffers, keep)) {
            Ok(trailers) => trailers.unwrap_or_default(),
            Err(error) => return Poll::Ready(error.into()),
        };
        let ahead = upload.ahead();
        (ahead.slices, ahead.trailers) = ([Bytes::from(read)].into(), trailers);
    }
    down.poll_gone(cx, buffers).map(|()| Stop::ClientGone)
}

/// Waits for a place at the upstream, unless `slot` is one, and takes a connection from the pool or opens one.
async fn open(
    connections: &Connections,
    in_flight: &InFlight,
    attempts: Attempts,
    slot: Option<Permit>,
) -> Result<Upstream, Answer> {
    let (worker, index) = (&in_flight.worker, in_flight.upstream);
    let pool = &connections.pools[index];
    let need = attempts.need(pool);
    let mut slot =
        slot.unwrap_or_else(|| worker.capacities.upstreams[index].permit(in_flight.holder.clone()));
    // Boxed: most requests find a place.
    if !(slot.amount() > 0
        || slot.grow_in_turn(1)
        || Box::pin(slot.grow_soon(1, in_flight.retry_pause())).await)
    {
        return Err(Answer::upstream_full(in_flight.upstream_name()));
    }
    if need == Need::Any && pool.shared.is_idle() {
        // The server may have ended an idle connection: the runtime reads that first.
        tokio::task::yield_now().await;
    }
    let (transport, is_reused) = match pool.take(need) {
        Some(taken) => (taken, true),
        // Boxed: most requests find a connection.
        None => Box::pin(open_new(connections, in_flight, need)).await?,
    };
    Ok(match transport {
        Transport::Socket(socket) => {
            Upstream::Http1(Http1Up::new((socket, is_reused), slot, &pool.idle, in_flight))
        }
        Transport::Stream(place) => {
            Upstream::Http2(Box::new(Http2Up::new(place, is_reused, slot, in_flight)))
        }
    })
}

/// Opens a connection, or waits for one that another request opens and that both can share. Also returns true if the
/// connection may have carried a request before.
async fn open_new(
    connections: &Connections,
    in_flight: &InFlight,
    need: Need,
) -> Result<(Transport, bool), Answer> {
    let worker = &in_flight.worker;
    let (upstream, pool) =
        (&worker.plan.upstreams[in_flight.upstream], &connections.pools[in_flight.upstream]);
    while need == Need::Any
        && let Some(opened) = pool.shared.awaited()
    {
        let is_opened = opened.await;
        if let Some(taken) = pool.take(need) {
            return Ok((taken, true));
        }
        // After a failure, there is no further wait. Otherwise others took the streams, and may open another connection.
        if !is_opened {
            break;
        }
    }
    // Dropped after the connection was added, which ends the wait of other requests.
    let _opening = (need == Need::Any).then(|| pool.shared.opening());
    let Some(place) = connections.socket(in_flight).await else { return Err(Answer::overloaded()) };
    let offer = if need == Need::Http1 { Offer::Http1 } else { Offer::Http1OrHttp2 };
    let opened = async {
        let stream = upstream.target.connect(offer, worker.plan.connect_timeout).await?;
        Ok(match stream.protocol() {
            Protocol::Http1 => {
                pool.shared.forget();
                Transport::Socket(UpstreamSocket::new(stream, place))
            }
            Protocol::Http2 => {
                let started = Http2Connection::start(worker, stream, place).await;
                Transport::Stream(pool.shared.add(started.map_err(ConnectError::Io)?, need == Need::Any))
            }
        })
    };
    let opened = opened.await.map_err(|error| unconnected(&upstream.name, &error));
    opened.map(|transport| (transport, false))
}
