//! A client's connection: its requests here, one after another, and its end.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, ready};

use bytes::Bytes;
use http::Response;
use http1::write_field;
use meter::Tick;

use super::up::Http1Up;
use super::upstream_socket::UpstreamSocket;
use super::{Http1Pump, Next, poll_request};
use crate::capacity::Permit;
use crate::carry::pump::{Finish, Pump};
use crate::carry::rest;
use crate::connections::Connections;
use crate::engine::net::client::{Client, Stage};
use crate::engine::net::socket::Output;
use crate::metering::metered::Metered;
use crate::request::answer::Answer;
use crate::request::in_flight::InFlight;
use crate::request::reject::{Stop, reject, unconnected};
use crate::state::WorkerState;
use crate::wire::{Down as _, Part, Up as _};
use crate::{clock, limits, worker};

/// The reason why a client's connection is served here no more.
enum Outcome {
    /// It ended.
    Ended,
    /// Its next request is not served here.
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

/// Serves a client's connection: the first requests here, and all from the first one that is not served here by hyper.
pub(crate) async fn serve_connection(connections: Rc<Connections>, upstream: usize, client: Rc<Client>) {
    match serve(&connections, &client, upstream).await {
        // Boxed: a connection that stays here does not need its memory.
        Outcome::HandedOver => Box::pin(worker::serve_connection(connections, upstream, client)).await,
        Outcome::Switched => {
            let first = client.take_first(usize::MAX).unwrap_or_default();
            Box::pin(worker::serve_tunnel(&connections, upstream, &client, first)).await;
            worker::count_slow(&connections, &client);
        }
        Outcome::Ended => worker::count_slow(&connections, &client),
    }
}

/// Serves a client's connection until a request arrives that is not served here. Futures of rare events are boxed: the
/// connection has memory for its requests only.
async fn serve(connections: &Rc<Connections>, client: &Rc<Client>, index: usize) -> Outcome {
    let worker = &connections.worker;
    let plan = &worker.plan;
    let upstream = &plan.upstreams[index];
    let is_changed = plan.forwards || plan.trace.is_some() || upstream.authority.is_some();
    // Hyper serves the clients of an upstream that may speak HTTP/2.
    let may_speak_http2 = upstream.target.is_secure() && !connections.pools[index].is_http1.get();
    if may_speak_http2 || is_changed {
        return Outcome::HandedOver;
    }
    client.set_raw(true);
    // Most connections have nothing before their first request.
    let is_before = client.is_tls() || client.awaits_header();
    let is_http2 = match !is_before || Box::pin(client.establish(worker)).await {
        true => client.speaks_http2(&connections.http1.buffers.read).await.ok().flatten(),
        false => None,
    };
    match is_http2 {
        Some(false) => {}
        Some(true) => {
            client.set_raw(false);
            return Outcome::HandedOver;
        }
        None => {
            Box::pin(client.linger()).await;
            return Outcome::Ended;
        }
    }
    // Written in place: the future has memory for one request.
    let mut pump = None;
    loop {
        let next = poll_fn(|cx| poll_request(cx, connections, client, index, &mut pump)).await;
        let (answer, close) = match next {
            Next::Request => {
                let Some(request) = &mut pump else { continue };
                let mut has_slot = request.up.slot.grow_in_turn(1);
                let finish = loop {
                    let idle = has_slot.then(|| connections.pools[index].sockets.take()).flatten();
                    let connected = match idle {
                        Some(socket) => {
                            request.up.connected(socket, &request.in_flight, true);
                            Ok(())
                        }
                        None => Box::pin(connect(connections, request, has_slot)).await,
                    };
                    has_slot = true;
                    let finish = match connected {
                        Ok(()) => poll_fn(|cx| request.poll(cx, &connections.http1.buffers)).await,
                        Err(stop) => Err(stop),
                    };
                    if !matches!(finish, Ok(Finish::Unsent)) {
                        break finish;
                    }
                };
                let answer = match finish {
                    Ok(Finish::Done) if !worker.draining.get() => None,
                    Ok(Finish::Done) => break,
                    Ok(Finish::Close | Finish::Unsent) => return Outcome::Ended,
                    Ok(Finish::Switched) => {
                        let Some((up, session)) = pump.take().map(Pump::switched) else { continue };
                        let Some(upstream_io) = up.into_io() else { return Outcome::Ended };
                        client.switch(upstream_io, session);
                        return Outcome::Switched;
                    }
                    Err(Stop::ClientGone) => {
                        if let Some((metered, up)) = pump.take().and_then(Pump::leave) {
                            read_rest(connections, metered, up);
                        }
                        return Outcome::Ended;
                    }
                    Err(Stop::Reject(answer)) => Some(reject(&request.in_flight, answer)),
                };
                pump = None;
                let Some(answer) = answer else { continue };
                (answer, true)
            }
            Next::Answer(answer, close) => (answer, close || worker.draining.get()),
            Next::HandOver => {
                client.set_raw(false);
                return Outcome::HandedOver;
            }
            Next::Gone => break,
        };
        if !Box::pin(send_answer(client, answer, close)).await {
            return Outcome::Ended;
        }
    }
    Box::pin(client.linger()).await;
    Outcome::Ended
}

/// Reads the rest of a response, in a task of its own.
fn read_rest(connections: &Connections, metered: Metered, mut up: Http1Up) {
    let http1 = Rc::clone(&connections.http1);
    connections.read_on(rest::read(metered, move |cx, show| {
        let mut buffer = http1.buffers.read.borrow_mut();
        let read = ready!(up.poll_read(cx, &mut buffer));
        let mut is_open = true;
        let parts = up.parts(read.ok().map(|read| &buffer[..read]), "", &http1.buffers, |part| {
            match part {
                Part::Data { data, .. } => show(data),
                Part::End { .. } | Part::Cut => is_open = false,
                Part::Interim(_) | Part::Head(_) => {}
            }
            Ok(())
        });
        Poll::Ready(parts.is_ok() && is_open)
    }));
}

/// Sends an answer of the proxy. `close` announces and waits for the end of the connection. Returns false if it ended.
async fn send_answer(client: &Client, answer: Answer, close: bool) -> bool {
    let bytes = bytes(&answer.into_response(close));
    let mut sent = 0;
    while sent < bytes.len() {
        match poll_fn(|cx| client.poll_write(cx, Output::Slice(&bytes[sent..]))).await {
            Ok(written) => sent += written,
            Err(_gone) => return false,
        }
    }
    if close {
        client.linger().await;
    }
    !close
}

/// Writes an answer of the proxy.
fn bytes(response: &Response<Bytes>) -> Vec<u8> {
    let mut out = format!("HTTP/1.1 {}\r\n", response.status()).into_bytes();
    for (name, value) in response.headers() {
        write_field(&mut out, name.as_str(), value.as_bytes());
    }
    write_field(&mut out, "content-length", response.body().len().to_string().as_bytes());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(response.body());
    out
}

/// Connects a request to its upstream, after a wait for a place there if it has none. Ends early if its client leaves.
async fn connect(connections: &Connections, pump: &mut Http1Pump, has_slot: bool) -> Result<(), Stop> {
    let Pump { up, down, in_flight, .. } = pump;
    let socket = {
        let mut opening = pin!(open(connections, in_flight, &mut up.slot, has_slot));
        let opened = poll_fn(|cx| match opening.as_mut().poll(cx) {
            Poll::Ready(opened) => Poll::Ready(opened.map_err(Stop::from)),
            Poll::Pending => down.poll_gone(cx, &connections.http1.buffers).map(|()| Err(Stop::ClientGone)),
        });
        opened.await?
    };
    up.connected(socket, in_flight, false);
    Ok(())
}

/// Opens a connection for a request.
async fn open(
    connections: &Connections,
    in_flight: &InFlight,
    slot: &mut Permit,
    has_slot: bool,
) -> Result<UpstreamSocket, Answer> {
    let plan = &in_flight.worker.plan;
    let upstream = &plan.upstreams[in_flight.upstream];
    if !has_slot && !slot.grow_soon(1, in_flight.retry_pause()).await {
        return Err(Answer::upstream_full(&upstream.name));
    }
    let Some(place) = connections.socket(in_flight).await else { return Err(Answer::overloaded()) };
    let connecting = UpstreamSocket::connect(&upstream.target, plan.connect_timeout, place);
    connecting.await.map_err(|error| unconnected(&upstream.name, &error))
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
