//! The way of one request, which is read here from top to bottom, whatever protocols its two connections have: it is
//! decided by its head, and by its body where a decision depends on that, then it has a connection, and is sent. From
//! then on the [`Pump`] moves its body to the upstream and the response back.
//!
//! Decisions are calls without I/O, and these are their rules:
//! - [`open`] is called once the head of a request is known, and `decide` before anything is sent. Each slice of the body
//!   is passed to the exchange once, then `complete` is called, also without a body.
//! - [`Response::head`](crate::response::Response::head) is called once, for the response that the client will see. Then
//!   each slice of its body is passed once, in order, with the tick at which it was read, in the turn in which it is
//!   forwarded (law 2). Bytes that are held are forwarded after `usage::HOLD_TIME`, at the end, or when the meter fails.
//! - Exactly one end is called: `end` after a complete body, `cut` after a truncated one, or `reject` if no upstream
//!   answered. A drop without any of them means that the client left. By then the upstream's socket is closed, or its
//!   stream reset (law 4), unless `leave` asks for the rest of the body, which [`rest`] reads.

mod attempts;
mod connect;
mod gather;
mod held_timer;
pub(crate) mod pump;
pub(crate) mod rest;
mod slices;
mod upload;

use std::rc::Rc;

use bytes::Bytes;
use http::request::Parts;
use meter::Tick;

use self::attempts::Attempts;
use self::connect::connect;
use self::gather::gather;
use self::pump::{Again, Pump};
use self::upload::Upload;
use crate::conn::client::Client;
use crate::connections::Connections;
use crate::limits;
use crate::request::answer::Answer;
use crate::request::in_flight::InFlight;
use crate::request::reject::{Stop, reject};
use crate::request::{Decision, Edited, Opened, open};
use crate::wire::Down;

/// A request of which the head was read.
pub(crate) struct Request {
    pub(crate) parts: Parts,
    /// The head as it was received by HTTP/1.1, which shows the spelling of its fields.
    pub(crate) head: Bytes,
    pub(crate) has_body: bool,
    pub(crate) begun: Tick,
}

/// The end of a request without a response from its upstream.
pub(crate) enum Ended {
    /// The client left.
    Gone,
    /// An answer of the proxy; true if the connection ends with it. Boxed: every connection has room for its end.
    Answered(Box<Answer>, bool),
}

impl Ended {
    /// The end of a request that was admitted.
    pub(crate) fn of(in_flight: &InFlight, stop: Stop) -> Self {
        match stop {
            Stop::ClientGone => Self::Gone,
            Stop::Reject(answer) => {
                let answer = reject(in_flight, answer);
                Self::Answered(Box::new(answer), !in_flight.is_complete() || in_flight.worker.draining.get())
            }
        }
    }
}

/// Decides about a request, connects it to its upstream, and begins to send it; the result is written to `pump`, which is
/// to be polled until the response has ended. The request stays in its box, because each move would copy it.
pub(crate) async fn begin<D: Down>(
    connections: &Rc<Connections>,
    (client, upstream): (&Rc<Client>, usize),
    mut request: Box<(Request, D)>,
    pump: &mut Option<Pump<D>>,
) -> Result<(), Ended> {
    let (Request { parts, has_body, begun, .. }, _) = &mut *request;
    // By the head: check, tenant, route.
    let worker = (&connections.worker, &connections.watched);
    let mut opened = open(worker, client, upstream, (parts, *has_body), *begun).map_err(|answer| {
        if *has_body {
            client.leave_unread();
        }
        Ended::Answered(Box::new(answer), true)
    })?;
    opened.rewrite(parts, *has_body);
    let in_flight = Rc::clone(&opened.in_flight);
    let sent = async {
        let Opened { in_flight, resolver, upgrade, unmetered, mut undecided, begun, .. } = opened;
        let buffers = &connections.buffers;
        let (Request { parts, head, has_body, .. }, down) = &mut *request;
        let mut upload = Upload::new(!*has_body, down, resolver);
        if !*has_body {
            in_flight.complete(begun);
        }
        // By the body, if it matters: admission, and the usage that is requested.
        let mut gathered = None;
        let edited = loop {
            match undecided.decide(&in_flight, parts, gathered.as_ref())? {
                Decision::Send(edited) => break edited,
                Decision::NeedBody => {
                    let by = (&mut *down, &in_flight);
                    gathered = Some(gather(&mut upload, by, buffers, limits::GATHERED_BYTES).await?);
                }
            }
        };
        drop(gathered);
        let again = edited.map(|Edited { slices, original }| {
            upload.ahead().slices = slices.into();
            Box::new(Again::new(original, head.clone(), &mut upload))
        });
        // Its connection: from the pool, or a new one.
        let is_secure = in_flight.worker.plan.upstreams[upstream].target.is_secure();
        let attempts = Attempts::new(is_secure, &parts.uri, &parts.headers);
        let up = connect(connections, &in_flight, attempts, (down, &mut upload), begun).await?;
        // Its head, and as much of its body as is at hand.
        let framing = down.framing();
        let upgrade = upgrade.map(|opened| Box::new((opened, unmetered)));
        let pump = pump.insert(Pump::new(in_flight, (request.1, upload), up, upgrade, (attempts, again)));
        let Request { parts, head, .. } = &request.0;
        pump.request(parts, head, framing, buffers).await?;
        // Its memory serves the next head.
        buffers.fields.replace(request.0.parts.headers);
        Ok(())
    };
    sent.await.map_err(|stop| Ended::of(&in_flight, stop))
}
