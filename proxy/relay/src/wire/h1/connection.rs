//! A client's HTTP/1.1 connection: its requests, one after another, and its end.

use std::future::poll_fn;
use std::rc::Rc;

use bytes::Bytes;
use http::Response;
use http::header::CONNECTION;
use http1::{Version, write_field};

use super::down::{Asked, Http1Down};
use super::request::{Next, poll_next};
use crate::carry::pump::{Finish, Pump};
use crate::carry::{Ended, begin, rest};
use crate::conn::client::Client;
use crate::conn::socket::Output;
use crate::conn::tunnel::UpstreamIo;
use crate::connections::Connections;
use crate::request::answer::Answer;
use crate::request::reject::{Stop, reject_unopened};

/// The reason why no further request of a client's connection is served.
pub(crate) enum Outcome {
    /// It ends after its last response.
    Ended,
    /// It ends at once: the client left, or its response is truncated.
    Cut,
    /// It switched protocols, and is a tunnel to this side.
    Switched(Box<UpstreamIo>),
}

/// Serves a client's connection. Futures of rare events are boxed: the connection has memory for its requests only.
pub(crate) async fn serve(connections: &Rc<Connections>, client: &Rc<Client>, index: usize) -> Outcome {
    // A variable that is used in each turn of the loop has a place in the future of every connection.
    let worker = &connections.worker;
    // Written in place: the future has memory for one request.
    let mut pump = None;
    loop {
        let mut torn = Vec::new();
        let half_close = worker.plan.half_close;
        let next =
            poll_fn(move |cx| poll_next(cx, (client, half_close), &connections.buffers, &mut torn)).await;
        let request = match next {
            Next::Request(request) => request,
            Next::Invalid(fault, asked) => {
                let answer = reject_unopened(worker, index, Answer::not_a_request(fault));
                client.leave_unread();
                Box::pin(send(client, answer.into_response(true), asked)).await;
                return Outcome::Ended;
            }
            Next::Gone => return Outcome::Ended,
        };
        let asked = request.1.asked;
        let begun = Box::pin(begin(connections, (client, index), request, &mut pump)).await;
        let ended = match (begun, &mut pump) {
            (Err(ended), _) => Err(ended),
            (Ok(()), None) => Ok(()),
            (Ok(()), Some(running)) => match run(connections, running).await {
                Ok(Finish::Done) => Ok(()),
                Ok(Finish::Close | Finish::Again | Finish::Unsent) => return Outcome::Cut,
                Ok(Finish::Switched) => {
                    return pump.take().and_then(Pump::switched).map_or(Outcome::Cut, Outcome::Switched);
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
            // The rest of a body must not be read as the next request.
            pump.down.asked.is_last || !pump.in_flight.is_complete()
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

/// Runs a request to its end, over all its attempts.
async fn run(connections: &Connections, pump: &mut Pump<Http1Down>) -> Result<Finish, Stop> {
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

/// Sends an answer of the proxy in the form that the request allows.
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
    // Without an upstream, nothing else leaves a turn to other clients before the next request.
    tokio::task::yield_now().await;
}
