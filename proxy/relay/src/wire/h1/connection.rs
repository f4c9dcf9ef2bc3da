//! A client's connection: its requests here, one after another, and its end.

use std::future::poll_fn;
use std::rc::Rc;

use bytes::Bytes;
use http::header::CONNECTION;
use http::{HeaderValue, Response, StatusCode};
use http1::{Version, write_field};
use meter::Tick;

use super::down::{Asked, Http1Down};
use super::request::{Next, poll_next};
use crate::carry::pump::{Ended, Finish, Pump, begin};
use crate::carry::rest;
use crate::connections::Connections;
use crate::engine::net::client::{Client, Stage};
use crate::engine::net::socket::Output;
use crate::request::reject::Stop;
use crate::state::WorkerState;
use crate::wire::upstream::Upstream;
use crate::{Refusal, clock, limits, worker};

/// A request of this protocol.
type Http1Pump = Pump<Upstream, Http1Down>;

/// The reason why no further request of a client's connection is served here.
enum Outcome {
    /// It ends after its last response.
    Ended,
    /// It ends at once: the client left, or its response is truncated.
    Cut,
    /// It is not served here.
    HandedOver,
    /// It switched protocols.
    Switched,
}

/// Ends client connections that have waited too long for a request.
pub(crate) fn sweep(connections: &Connections) {
    let worker = &connections.worker;
    let now = clock::now();
    for (client, task) in connections.clients.borrow().values() {
        if client.is_raw() && is_overdue(worker, client, now) {
            client.count_overdue(worker);
            task.abort();
            let client = Rc::clone(client);
            connections.read_on(async move { client.linger().await });
        }
    }
}

/// Returns true if a connection has waited too long for a request.
fn is_overdue(worker: &WorkerState, client: &Client, now: Tick) -> bool {
    let since = client.since();
    let (since, limit) = match (client.stage().0, worker.leaving.ordered_at()) {
        (Stage::Busy, _) => return false,
        (Stage::Fresh | Stage::Idle, Some(ordered)) => (since.max(ordered), limits::LAST_IDLE),
        (Stage::Idle, None) => (since, limits::CLIENT_IDLE),
        (Stage::Fresh | Stage::Head, _) => (since, worker.plan.head_timeout),
    };
    u128::from(now.since(since)) >= limit.as_nanos()
}

/// Serves a client's connection here, or by hyper, or as a tunnel.
pub(crate) async fn serve_connection(connections: Rc<Connections>, upstream: usize, client: Rc<Client>) {
    let outcome = serve(&connections, &client, upstream).await;
    // It does not wait for a request any more.
    client.set_raw(false);
    // Boxed: a connection with a request does not need their memory.
    match outcome {
        Outcome::HandedOver => {
            return Box::pin(worker::serve_connection(connections, upstream, client)).await;
        }
        Outcome::Switched => {
            let first = client.take_first(usize::MAX).unwrap_or_default();
            Box::pin(worker::serve_tunnel(&connections, upstream, &client, first)).await;
        }
        Outcome::Ended => Box::pin(client.linger()).await,
        Outcome::Cut => {}
    }
    worker::count_slow(&connections, &client);
}

/// Serves a client's connection. Futures of rare events are boxed: the connection has memory for its requests only.
async fn serve(connections: &Rc<Connections>, client: &Rc<Client>, index: usize) -> Outcome {
    let worker = &connections.worker;
    let plan = &worker.plan;
    client.set_raw(true);
    let buffers = &connections.buffers;
    // Most connections have nothing before their first request.
    let is_before = client.is_tls() || client.awaits_header();
    let is_http2 = match !is_before || Box::pin(client.establish(worker)).await {
        true => client.speaks_http2(&buffers.read).await.ok().flatten(),
        false => None,
    };
    match is_http2 {
        Some(false) => {}
        Some(true) => return Outcome::HandedOver,
        None => return Outcome::Ended,
    }
    // Written in place: the future has memory for one request.
    let mut pump = None;
    loop {
        let next = poll_fn(|cx| poll_next(cx, (client, plan.half_close), buffers)).await;
        let request = match next {
            Next::Request(request) => request,
            Next::Invalid(status) => {
                worker.refuse(Refusal::Framing);
                client.leave_unread();
                Box::pin(send(client, empty(status), Asked::NOTHING)).await;
                return Outcome::Ended;
            }
            Next::Gone => return Outcome::Ended,
        };
        let asked = request.1.asked();
        let begun = Box::pin(begin(connections, (client, index), request, &mut pump)).await;
        let ended = match (begun, &mut pump) {
            (Err(ended), _) => Err(ended),
            (Ok(()), None) => Ok(()),
            (Ok(()), Some(running)) => match run(connections, running).await {
                Ok(Finish::Done) => Ok(()),
                Ok(Finish::Close | Finish::Again | Finish::Unsent) => return Outcome::Cut,
                Ok(Finish::Switched) => {
                    let Some((up, session)) = pump.take().map(Pump::switched) else { continue };
                    let Some(upstream_io) = up.into_io() else { return Outcome::Cut };
                    client.switch(upstream_io, session);
                    return Outcome::Switched;
                }
                Err(Stop::ClientGone) => {
                    if let Some((metered, up)) = pump.take().and_then(Pump::leave) {
                        rest::read_upstream(connections, metered, up);
                    }
                    return Outcome::Cut;
                }
                Err(stop) => Err(Ended::of(&running.in_flight, stop)),
            },
        };
        let is_last = pump.take().is_some_and(|pump| {
            // A body that was not read to its end is no request.
            pump.down.asked().is_last || !pump.in_flight.is_complete()
        });
        match ended {
            Ok(()) if is_last => return Outcome::Ended,
            Ok(()) => {}
            Err(Ended::Gone) => return Outcome::Cut,
            Err(Ended::Answered(answer, close)) => {
                let close = close || asked.is_last;
                Box::pin(send(client, answer.into_response(close), asked)).await;
                if close {
                    return Outcome::Ended;
                }
            }
        }
    }
}

/// Runs a request to its end, in one or two attempts.
async fn run(connections: &Connections, pump: &mut Http1Pump) -> Result<Finish, Stop> {
    loop {
        let finish = poll_fn(|cx| pump.poll(cx, &connections.buffers)).await?;
        if !matches!(finish, Finish::Again | Finish::Unsent) {
            return Ok(finish);
        }
        // Boxed: most requests have one attempt.
        if let Some(finish) = Box::pin(pump.attempt(connections, finish)).await? {
            return Ok(finish);
        }
    }
}

/// The answer to a message that is not a request.
fn empty(status: StatusCode) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Sends a response of the proxy, as the request `asked`.
async fn send(client: &Client, response: Response<Bytes>, asked: Asked) {
    let version = if asked.version == Version::Http10 { "1.0" } else { "1.1" };
    let mut out = format!("HTTP/{version} {}\r\n", response.status()).into_bytes();
    for (name, value) in response.headers() {
        write_field(&mut out, name.as_str(), value.as_bytes());
    }
    if asked.version == Version::Http10 && !response.headers().contains_key(CONNECTION) {
        write_field(&mut out, CONNECTION.as_str(), b"keep-alive");
    }
    write_field(&mut out, "content-length", response.body().len().to_string().as_bytes());
    out.extend_from_slice(b"\r\n");
    if !asked.is_head {
        out.extend_from_slice(response.body());
    }
    let mut sent = 0;
    while sent < out.len() {
        match poll_fn(|cx| client.poll_write(cx, Output::Slice(&out[sent..]))).await {
            Ok(written) => sent += written,
            Err(_gone) => return,
        }
    }
    // A session keeps records that its socket did not take.
    let _flushed = poll_fn(|cx| client.poll_flush(cx)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of the future that a function returns.
    const fn future_bytes<A, B, C, F>(_: &impl Fn(A, B, C) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn stream_has_a_small_future() {
        let bytes = future_bytes(&serve_connection);
        assert!(bytes <= 800, "{bytes}");
    }
}
