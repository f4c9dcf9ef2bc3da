//! Sends one request upstream and waits for the head of its response, on a connection from the pool or a new one.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use meter::Tick;

use super::open::{Attempts, open};
use super::upload::Upload;
use crate::clock;
use crate::connections::Connections;
use crate::engine::hyper::UpstreamAnswer;
use crate::engine::net::pool::{Need, Pool, PooledConnection};
use crate::engine::{Part, SendError};
use crate::request::answer::Answer;
use crate::request::in_flight::{Carrier, InFlight};
use crate::request::reject::{Stop, unanswered};
use crate::response::interim::Interim;

/// A response, and the connection that yields the rest of its body.
pub(crate) struct Sent {
    pub(crate) connection: Box<PooledConnection>,
    pub(crate) response: Response<UpstreamAnswer>,
    /// The part of the body that was read before its head was forwarded.
    pub(crate) first: Option<Part>,
}

/// Sends `request`, which the client began at `begun`. A further attempt follows only if nothing was sent, or the server
/// states that it processed nothing.
/// Not an `async fn`: its future would hold the request twice.
pub(crate) fn send(
    connections: &Connections,
    in_flight: &InFlight,
    mut request: Request<Upload>,
    (interim, begun): (&Interim, Tick),
) -> impl Future<Output = Result<Sent, Stop>> {
    let worker = &in_flight.worker;
    async move {
        let index = in_flight.upstream;
        let (upstream, pool) = (&worker.plan.upstreams[index], &connections.pools[index]);
        let mut is_counted = false;
        let mut count = || {
            if !std::mem::replace(&mut is_counted, true) {
                in_flight.metered.borrow_mut().with(|metering| metering.exchange.sent());
            }
        };
        let mut since = begun;
        let mut attempts = Attempts::new(upstream.target.is_secure(), request.uri(), request.headers());
        loop {
            let need = attempts.need(pool);
            let mut slot = worker.capacities.upstreams[index].permit(in_flight.holder.clone());
            if !(slot.grow_in_turn(1) || slot.grow_soon(1, in_flight.retry_pause()).await) {
                return Err(Answer::upstream_full(&upstream.name).into());
            }
            if need == Need::Any && pool.shared.is_idle() {
                // The server may have ended an idle connection: the runtime reads that first.
                tokio::task::yield_now().await;
            }
            let (mut connection, ready) = match pool.take(need) {
                Some(connection) => (connection, since),
                None => {
                    // Boxed: most requests find a connection.
                    let start = async |pool: &Pool, stream, place| {
                        Ok(pool.add(connections.engine.handshake(stream, place).await?, need))
                    };
                    let take = |pool: &Pool| pool.take(need);
                    let mut opening = Box::pin(open(connections, in_flight, need, take, start));
                    let opened = std::future::poll_fn(|cx| {
                        request.body_mut().read_ahead(cx);
                        opening.as_mut().poll(cx)
                    });
                    (opened.await?, clock::now())
                }
            };
            connection.occupy(slot, in_flight.holder.clone());
            in_flight.carrier.set(if connection.has_socket() { Carrier::Socket } else { Carrier::Stream });
            let reported = interim.clone();
            connection.http.report_interim(&mut request, move |status, fields| reported.push(status, fields));
            let mut waiting = pin!(connection.http.send(request));
            let mut is_sent = false;
            let received = std::future::poll_fn(|cx| {
                let PooledConnection { http, waker, .. } = &mut *connection;
                // If the body arrived with its head, taking its first frame wakes this waker, which withholds that wake.
                waker.follow(cx);
                let mut driving = Context::from_waker(waker.waker());
                let mut driven = http.drive(&mut driving);
                if !is_sent && let Some(at) = in_flight.completed_at() {
                    is_sent = true;
                    count();
                    in_flight.spent(at.max(ready));
                }
                let polled = waiting.as_mut().poll(&mut driven);
                if let Some(heads) = interim.take() {
                    in_flight.client.interim(heads.as_bytes());
                }
                if interim.is_flood() {
                    return Poll::Ready(Received::Flood);
                }
                match polled {
                    Poll::Ready(Ok(response)) => Poll::Ready(Received::Head(response)),
                    Poll::Ready(Err(error)) => Poll::Ready(Received::Error(Box::new(error))),
                    Poll::Pending if connection.http.release() => {
                        // A request that was still queued comes back now.
                        cx.waker().wake_by_ref();
                        Poll::Pending
                    }
                    Poll::Pending => Poll::Pending,
                }
            })
            .await;
            let SendError { unsent, cause } = match received {
                Received::Head(response) => {
                    // A server may answer before it has the whole request.
                    count();
                    return Ok(Sent { connection, response, first: None });
                }
                Received::Flood => return Err(Answer::interim_flood(&upstream.name).into()),
                Received::Error(error) => *error,
            };
            let may_repeat = attempts.may_repeat(pool, &cause, connection.is_reused);
            request = match unsent.filter(|_| may_repeat) {
                Some(unsent) => unsent,
                None => return Err(unanswered(&upstream.name, cause)),
            };
            since = clock::now();
        }
    }
}

/// The result of one attempt.
enum Received {
    Head(Response<UpstreamAnswer>),
    Error(Box<SendError<Upload>>),
    Flood,
}
