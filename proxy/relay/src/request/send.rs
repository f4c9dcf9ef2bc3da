//! Sends one request upstream and waits for the head of its response, on a connection from the pool or a new one.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use connect::{ConnectError, Offer};
use http::{Request, Response, Version};
use meter::Tick;

use super::answer::Answer;
use super::body::Upload;
use super::in_flight::{InFlight, UploadState};
use super::reject::Stop;
use crate::clock;
use crate::connections::{Connections, UpstreamConnection, UpstreamResponse};
use crate::engine::net::pool::PooledConnection;
use crate::engine::{Connection, Engine, SendError, SendFailure};
use crate::response::interim::Interim;

/// A response, and the connection that yields the rest of its body.
pub(crate) struct Sent<E: Engine> {
    pub(crate) connection: Box<UpstreamConnection<E>>,
    pub(crate) response: Response<UpstreamResponse<E>>,
}

/// Sends `request`, which the client began at `begun` with this HTTP version. A second attempt follows only if nothing
/// was sent.
pub(crate) async fn send<E: Engine>(
    connections: &Connections<E>,
    in_flight: &InFlight,
    mut request: Request<Upload<E::RequestBody>>,
    (version, begun): (Version, Tick),
) -> Result<Sent<E>, Stop> {
    let worker = &in_flight.worker;
    let index = in_flight.upstream;
    let upstream = &worker.plan.upstreams[index];
    let interim = Interim::default();
    if version == Version::HTTP_11 {
        let interim = interim.clone();
        E::report_interim(&mut request, move |status, fields| interim.push(status, fields));
    }
    let mut is_counted = false;
    let mut count = || {
        if !std::mem::replace(&mut is_counted, true) {
            in_flight.metered.borrow_mut().with(|exchange| exchange.core.sent());
        }
    };
    loop {
        let mut slot = worker.capacities.upstreams[index].permit(in_flight.holder.clone());
        if !(slot.grow(1) || slot.grow_soon(1).await) {
            return Err(Answer::upstream_full(&upstream.name).into());
        }
        let (mut connection, ready) = match connections.pools[index].take() {
            Some(connection) => (connection, begun),
            None => {
                let Some(socket) = connections.socket(in_flight).await else {
                    return Err(Answer::overloaded().into());
                };
                let mut opening = pin!(async {
                    let stream = upstream.target.connect(Offer::Http1, worker.plan.connect_timeout).await?;
                    let http = connections.engine.handshake(stream).await.map_err(ConnectError::Io)?;
                    Ok(PooledConnection::new(http, socket))
                });
                let opened = std::future::poll_fn(|cx| {
                    request.body_mut().read_ahead(cx);
                    opening.as_mut().poll(cx)
                })
                .await;
                match opened {
                    Ok(connection) => (Box::new(connection), clock::now()),
                    Err(error) => return Err(unconnected(&upstream.name, &error).into()),
                }
            }
        };
        connection.occupy(slot, in_flight.holder.clone());
        in_flight.is_carried.set(true);
        let mut waiting = pin!(connection.http.send(request));
        let mut is_sent = false;
        let received = std::future::poll_fn(|cx| {
            connection.http.drive(cx);
            if !is_sent && let UploadState::Complete(at) = in_flight.upload.get() {
                is_sent = true;
                count();
                in_flight.spent(at.max(ready));
            }
            if let Some(heads) = interim.take() {
                in_flight.client.interim(heads.as_bytes());
            }
            if interim.is_flood() {
                return Poll::Ready(Received::<E>::Flood);
            }
            // Only driving the connection yields the response, and it was just driven.
            let mut driven = Context::from_waker(Waker::noop());
            match waiting.as_mut().poll(&mut driven) {
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
        match received {
            Received::Head(response) => {
                // A server may answer before it has the whole request.
                count();
                return Ok(Sent { connection, response });
            }
            Received::Flood => {
                let fault = "answered with a flood of interim responses";
                return Err(Answer::invalid(&upstream.name, fault).into());
            }
            // Nothing was sent, so nothing is sent twice. A new connection gets no second attempt.
            Received::Error(error) => match (connection.is_reused, *error) {
                (true, SendError { unsent: Some(unsent), .. }) => request = unsent,
                (_, SendError { cause, .. }) => return Err(unanswered(&upstream.name, cause)),
            },
        }
    }
}

/// The result of one attempt.
enum Received<E: Engine> {
    Head(Response<UpstreamResponse<E>>),
    Error(Box<SendError<Upload<E::RequestBody>>>),
    Flood,
}

fn unconnected(name: &str, error: &ConnectError) -> Answer {
    match error {
        ConnectError::Timeout(_) => Answer::connect_timeout(name, &error.to_string()),
        ConnectError::Exhausted => Answer::overloaded(),
        ConnectError::Name(_) | ConnectError::Io(_) => Answer::unreachable(name, &error.to_string()),
        ConnectError::Certificate(_) | ConnectError::Tls(_) => Answer::tls(name, &error.to_string()),
    }
}

/// The end of a request that was sent and has no response.
fn unanswered(name: &str, cause: SendFailure) -> Stop {
    let answer = match cause {
        SendFailure::Body(error) => return error.into(),
        SendFailure::HeadTooLarge => Answer::invalid(name, "answered with a head over 64 KiB or 100 fields"),
        SendFailure::Invalid => Answer::invalid(name, "did not answer in valid HTTP/1.1"),
        SendFailure::Tls(fault) => Answer::tls(name, &fault.to_string()),
        SendFailure::Closed => Answer::broken(name),
    };
    answer.into()
}
