//! One request, from its head to the head of its response: check, route, connect, send, wait.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::client::conn::TrySendError;
use hyper::header::{CONTENT_LENGTH, HOST, HeaderValue, TRANSFER_ENCODING};
use hyper::http::request;
use hyper::http::uri::PathAndQuery;
use hyper::{Request, Response, StatusCode, Uri, Version};

use super::Engine;
use super::client::Client;
use super::connection::{ConnectError, Connection};
use super::interim::Interim;
use super::outgoing::Outgoing;
use super::tee::{self, Tee};
use super::upload::{Upload, UploadError};
use super::visit::{self, Visit};
use crate::answer::Answer;
use crate::metered::Metered;
use crate::route::route;
use crate::{Passthrough, Refusal, Upstream, clock, headers, policy};

/// The client left: there is nobody to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gone;

/// Forwards one request and returns its response, whose body carries on from there. Dropping the
/// future, or the body, is the client leaving.
pub(super) async fn forward(
    engine: Rc<Engine>,
    client: Rc<Client>,
    index: usize,
    request: Request<Incoming>,
) -> Result<Response<Outgoing>, Gone> {
    let begun = clock::now();
    let worker = &engine.worker;
    let upstream = &worker.plan.upstreams[index];
    let (mut parts, body) = request.into_parts();
    let version = parts.version;
    let alone = version != Version::HTTP_2;

    if let Err(violation) = policy::check(&parts.method, &parts.uri, version, &parts.headers) {
        worker.refuse(violation.refusal);
        if !body.is_end_stream() {
            client.leave_unread();
        }
        return Ok(own(Answer::refused(violation), alone));
    }
    let asked = policy::asks_upgrade(version, &parts.headers);
    let Ok(uri) = target(&parts.uri, upstream) else {
        // Both halves are valid, so only their sum can fail: it is too long.
        worker.refuse(Refusal::Target);
        return Ok(own(Answer::target_too_long(), alone));
    };
    let routed = route(&parts.method, uri.path());
    let metered = match routed {
        Ok(dialect) => Metered::begin(worker, index, dialect, begun),
        Err(_) => Metered::not(worker),
    };
    let visit = Visit::new(&engine, &client, metered, alone);
    let unmetered = routed.err();
    if let (Some(reason), false) = (unmetered, asked) {
        worker.pass(reason);
    }

    rewrite(&mut parts, uri, upstream, asked, &body);
    let mut request = Request::from_parts(parts, Upload::new(body, &visit, begun));
    let interim = Interim::default();
    if version == Version::HTTP_11 {
        interim.watch(&mut request);
    }

    let (connection, response) = loop {
        let (mut connection, ready) = match engine.pools[index].take() {
            Some(connection) => (connection, begun),
            None => {
                let opening = Connection::open(&engine.upstream, upstream, worker.plan.connect_timeout);
                let mut opening = pin!(opening);
                let opened = std::future::poll_fn(|cx| {
                    request.body_mut().read_ahead(cx);
                    opening.as_mut().poll(cx)
                })
                .await;
                match opened {
                    Ok(connection) => (Box::new(connection), clock::now()),
                    Err(error) => return Ok(answer(&visit, unconnected(&upstream.name, &error))),
                }
            }
        };
        let mut waiting = pin!(connection.send(request));
        let mut sent = false;
        let received = std::future::poll_fn(|cx| {
            connection.drive(cx);
            if !sent && let visit::Upload::Complete(at) = visit.upload.get() {
                sent = true;
                spent(&visit, at.max(ready));
            }
            if let Some(heads) = interim.take() {
                client.interim(heads.as_bytes());
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
            Received::Head(response) => break (connection, response),
            Received::Flood => {
                let what = "answered with a flood of interim responses";
                return Ok(answer(&visit, Answer::invalid(&upstream.name, what)));
            }
            // Nothing was sent, so nothing is sent twice. A fresh connection gets no second try.
            Received::Error(mut error) => match (connection.reused, error.take_message()) {
                (true, Some(unsent)) => request = unsent,
                _ => return unanswered(&visit, &upstream.name, error.error()),
            },
        }
    };
    Ok(respond(&visit, index, connection, response, asked, unmetered).await)
}

/// What came of a request.
enum Received {
    Head(Response<Incoming>),
    Error(Box<TrySendError<Request<Upload>>>),
    Flood,
}

/// The target as the upstream gets it: origin form, under its prefix.
fn target(uri: &Uri, upstream: &Upstream) -> Result<Uri, hyper::http::Error> {
    let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    if path == "*" || (upstream.prefix.is_empty() && uri.authority().is_none()) {
        return Ok(uri.clone());
    }
    let slash = if path.starts_with('/') { "" } else { "/" };
    Ok(Uri::from(PathAndQuery::try_from(format!("{}{slash}{path}", upstream.prefix))?))
}

/// Makes the head one of the next hop's. Only what has to differ does.
fn rewrite(parts: &mut request::Parts, uri: Uri, upstream: &Upstream, upgrade: bool, body: &Incoming) {
    parts.headers = headers::for_upstream(std::mem::take(&mut parts.headers), upgrade);
    // In absolute form, and under HTTP/2, the target names the host (RFC 9112 §3.2.2).
    if let Some(authority) = parts.uri.authority() {
        if let Ok(authority) = HeaderValue::from_str(authority.as_str()) {
            parts.headers.insert(HOST, authority);
        }
    } else if !parts.headers.contains_key(HOST) {
        // HTTP/1.0 may come without one; the upstream is spoken to in 1.1.
        if let Ok(host) = HeaderValue::from_str(&format!("{}:{}", upstream.host, upstream.port)) {
            parts.headers.insert(HOST, host);
        }
    }
    if parts.version == Version::HTTP_2 {
        headers::join_cookies(&mut parts.headers);
        // HTTP/2 needs neither to have a body. hyper would send a GET without either as empty.
        if !body.is_end_stream() && !parts.headers.contains_key(CONTENT_LENGTH) {
            parts.headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
    }
    parts.uri = uri;
    parts.version = Version::HTTP_11;
    parts.extensions.remove::<hyper::upgrade::OnUpgrade>();
}

/// The response to the client, whose body goes on reading the upstream.
async fn respond(
    visit: &Rc<Visit>,
    index: usize,
    connection: Box<Connection>,
    response: Response<Incoming>,
    asked: bool,
    unmetered: Option<Passthrough>,
) -> Response<Outgoing> {
    let at = clock::now();
    let worker = &visit.engine.worker;
    let (mut head, body) = response.into_parts();
    if let Err(what) = policy::check_response(head.status, &head.headers, asked) {
        return answer(visit, Answer::invalid(&worker.plan.upstreams[index].name, what));
    }
    let switching = head.status == StatusCode::SWITCHING_PROTOCOLS;
    if asked && let Some(reason) = unmetered {
        worker.pass(if switching { Passthrough::Upgrade } else { reason });
    }
    let unreadable = visit
        .metered
        .borrow_mut()
        .with(|exchange| exchange.response_head(head.status.as_u16(), &head.headers, at))
        .flatten();
    if let Some(reason) = unreadable {
        worker.pass(reason);
    }

    head.version = Version::HTTP_11;
    head.extensions.remove::<hyper::upgrade::OnUpgrade>();
    head.headers = headers::for_client(head.headers, switching);
    if head.headers.contains_key(TRANSFER_ENCODING) {
        // The one that did not frame the body (RFC 9112 §6.3).
        head.headers.remove(CONTENT_LENGTH);
        if !visit.alone {
            head.headers.remove(TRANSFER_ENCODING);
        }
    }

    let body = if switching {
        let Some(far) = connection.into_far().await else {
            let what = "broke off while switching protocols";
            return answer(visit, Answer::invalid(&worker.plan.upstreams[index].name, what));
        };
        visit.client.switch(far);
        Outgoing::Empty
    } else if body.is_end_stream() {
        let mut driven = Context::from_waker(Waker::noop());
        tee::end(visit, Some(connection), (index, false), at, &mut driven);
        declared(&head, visit.alone)
    } else {
        Outgoing::Tee(Tee::new(body, connection, index, Rc::clone(visit)))
    };
    spent(visit, at);
    Response::from_parts(head, body)
}

/// A 304 says how long the body would be that it does not send.
fn declared(head: &hyper::http::response::Parts, http1: bool) -> Outgoing {
    let length = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    match length {
        Some(length) if http1 && head.status == StatusCode::NOT_MODIFIED => Outgoing::Declared(length),
        _ => Outgoing::Empty,
    }
}

/// Our own time on one step, since `from`.
fn spent(visit: &Visit, from: meter::Tick) {
    let mut metered = visit.metered.borrow_mut();
    if metered.is_watching() {
        metered.with(|exchange| exchange.spent(clock::now().since(from)));
    }
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

/// The answer, or its absence, when a request was sent and nothing usable came back.
fn unanswered(visit: &Visit, name: &str, error: &hyper::Error) -> Result<Response<Outgoing>, Gone> {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<UploadError>());
    Ok(answer(
        visit,
        match cause {
            Some(UploadError::Gone) => return Err(Gone),
            Some(UploadError::Malformed) => Answer::malformed_body(),
            None if error.is_parse_too_large() => {
                Answer::invalid(name, "answered with a head over 64 KiB or 100 fields")
            }
            None if error.is_parse() => Answer::invalid(name, "did not answer in valid HTTP/1.1"),
            None => Answer::broken(name),
        },
    ))
}

/// One of our own answers to a request that was let in.
fn answer(visit: &Visit, answer: Answer) -> Response<Outgoing> {
    visit.engine.worker.refuse(answer.refusal);
    let status = answer.status.as_u16();
    {
        let mut metered = visit.metered.borrow_mut();
        metered.with(|exchange| exchange.answered_locally(status, clock::now()));
        metered.finish();
    }
    own(answer, visit.alone && !visit.is_complete())
}

fn own(answer: Answer, close: bool) -> Response<Outgoing> {
    answer.into_response(close).map(|body: Bytes| Outgoing::Answer(Some(body)))
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client left before its answer")
    }
}

impl Error for Gone {}
