//! Sends one request upstream and waits for the head of its response, on a connection from the
//! pool or a fresh one.

use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use http::{Request, Response, Version};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use meter::Tick;

use super::connection::{ConnectError, Connection};
use super::interim::Interim;
use super::upload::{Upload, UploadError};
use super::visit::{self, Visit};
use crate::request::answer::Answer;
use crate::{Exchange, clock};

/// What came of a request.
pub(super) enum Sent {
    /// A response whose body goes on coming over this connection.
    Head(Box<Connection>, Response<Incoming>),
    /// Nothing usable; this is what the client is told.
    Failed(Answer),
    /// The client left.
    Gone,
}

/// Sends `request`, which the client began at `begun` in HTTP of `version`. Sent again only if
/// nothing of it had gone out.
pub(super) async fn send(
    visit: &Rc<Visit>,
    index: usize,
    mut request: Request<Upload>,
    (version, begun): (Version, Tick),
) -> Sent {
    let engine = &visit.engine;
    let plan = &engine.worker().plan;
    let upstream = &plan.upstreams[index];
    let interim = Interim::default();
    if version == Version::HTTP_11 {
        interim.watch(&mut request);
    }
    let mut is_counted = false;
    let mut count = || {
        if !std::mem::replace(&mut is_counted, true) {
            visit.metered.borrow_mut().with(Exchange::sent);
        }
    };
    loop {
        let mut slot = engine.worker().common.upstreams[index].share(visit.holder.clone());
        if !(slot.grow(1) || slot.grow_soon(1).await) {
            return Sent::Failed(Answer::upstream_full(&upstream.name));
        }
        let (mut connection, ready) = match engine.pools[index].take() {
            Some(connection) => (connection, begun),
            None => {
                let Some(socket) = engine.socket(visit).await else {
                    return Sent::Failed(Answer::overloaded());
                };
                let opening = Connection::open(&engine.upstream, upstream, plan.connect_timeout, socket);
                let mut opening = pin!(opening);
                let opened = std::future::poll_fn(|cx| {
                    request.body_mut().read_ahead(cx);
                    opening.as_mut().poll(cx)
                })
                .await;
                match opened {
                    Ok(connection) => (Box::new(connection), clock::now()),
                    Err(error) => return Sent::Failed(unconnected(&upstream.name, &error)),
                }
            }
        };
        connection.occupy(slot, visit.holder.clone());
        visit.carried.set(Some(index));
        let mut waiting = pin!(connection.send(request));
        let mut sent = false;
        let received = std::future::poll_fn(|cx| {
            connection.drive(cx);
            if !sent && let visit::Upload::Complete(at) = visit.upload.get() {
                sent = true;
                count();
                visit.spent(at.max(ready));
            }
            if let Some(heads) = interim.take() {
                visit.client.interim(heads.as_bytes());
            }
            if interim.is_flood() {
                return Poll::Ready(Received::Flood);
            }
            // Only driving the connection brings the response, and we just did.
            let mut driven = Context::from_waker(Waker::noop());
            match waiting.as_mut().poll(&mut driven) {
                Poll::Ready(Ok(response)) => Poll::Ready(Received::Head(response)),
                Poll::Ready(Err(error)) => Poll::Ready(Received::Error(Box::new(error))),
                Poll::Pending if connection.bury() => {
                    // What was still queued comes back now.
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
                return Sent::Head(connection, response);
            }
            Received::Flood => {
                let what = "answered with a flood of interim responses";
                return Sent::Failed(Answer::invalid(&upstream.name, what));
            }
            // Nothing was sent, so nothing is sent twice. A fresh connection gets no second try.
            Received::Error(mut error) => match (connection.reused, error.take_message()) {
                (true, Some(unsent)) => request = unsent,
                _ => return unanswered(&upstream.name, error.error()),
            },
        }
    }
}

/// What a connection brought.
enum Received {
    Head(Response<Incoming>),
    Error(Box<TrySendError<Request<Upload>>>),
    Flood,
}

fn unconnected(name: &str, error: &ConnectError) -> Answer {
    match error {
        ConnectError::Timeout => Answer::connect_timeout(name),
        ConnectError::Exhausted => Answer::overloaded(),
        ConnectError::Io(error) => Answer::unreachable(
            name,
            match error.kind() {
                io::ErrorKind::ConnectionRefused => "connection refused",
                io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => "no route",
                io::ErrorKind::TimedOut => "timed out",
                io::ErrorKind::ConnectionReset => "connection reset",
                _ => "no address, or no connection to it",
            },
        ),
    }
}

/// What to say when a request was sent and nothing usable came back.
fn unanswered(name: &str, error: &hyper::Error) -> Sent {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<UploadError>());
    Sent::Failed(match cause {
        Some(error) => match error.answer(name) {
            Some(answer) => answer,
            None => return Sent::Gone,
        },
        None if error.is_parse_too_large() => {
            Answer::invalid(name, "answered with a head over 64 KiB or 100 fields")
        }
        None if error.is_parse() => Answer::invalid(name, "did not answer in valid HTTP/1.1"),
        None => Answer::broken(name),
    })
}
