//! The path of one request, from top to bottom, for all protocols: the proxy decides about it by its head, and by its body
//! if a decision depends on that, takes a connection to the upstream, and sends the request. From then on the [`Pump`]
//! moves its body to the upstream and the response to the client.
//!
//! Decisions are calls without I/O. Their callers follow these rules:
//! - [`open`] is called once, when the head of a request is known, and `decide` before anything is sent. Each slice of the
//!   body is passed to the exchange once; then `InFlight::complete` is called, even if there is no body.
//! - [`Response::head`](crate::response::Response::head) is called once, for the response that the client gets. Then each
//!   slice of its body is passed once, in order, with the tick at which it was read, in the turn in which it is forwarded
//!   (law 2). Held bytes are forwarded after `usage::HOLD_TIME`, at the end of the body, or when the meter fails.
//! - One end is called: `end` after a complete body, `cut` after a truncated one, or `reject` if no upstream answered. A
//!   drop without any of them means that the client left. Before that, the upstream's socket is closed or its stream reset
//!   (law 4), unless `leave` returns that the rest of the body is needed: [`rest`] reads it.

mod attempts;
mod connect;
mod gather;
mod held_timer;
pub(crate) mod pump;
pub(crate) mod rest;
mod slices;
mod upload;

use std::rc::Rc;

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
use crate::request::{Decision, Edited, Opened, Request, open};
use crate::wire::Down;

/// The end of a request without a response from its upstream.
pub(crate) enum Ended {
    /// The client left.
    Gone,
    /// An answer of the proxy, and true if the connection closes after it. Boxed: the future of every connection has space
    /// for this value.
    Answered(Box<Answer>, bool),
}

impl Ended {
    /// The end of an opened request that stopped.
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

/// Decides about a request, connects it to its upstream, and begins to send it. Writes its pump to `pump`; the caller polls
/// that until the response has ended. The request stays in its box, because each move would copy it.
pub(crate) async fn begin<D: Down>(
    connections: &Rc<Connections>,
    (client, upstream): (&Rc<Client>, usize),
    mut request: Box<(Request, D)>,
    pump: &mut Option<Pump<D>>,
) -> Result<(), Ended> {
    // Decide by the head: check, tenant, route.
    let worker = (&connections.worker, &connections.watched);
    let mut opened = open(worker, (client, upstream), &mut request.0).map_err(|answer| {
        if request.0.has_body {
            client.leave_unread();
        }
        Ended::Answered(Box::new(answer), true)
    })?;
    opened.rewrite(&mut request.0);
    let in_flight = Rc::clone(&opened.in_flight);
    let sent = async {
        let Opened { in_flight, resolver, upgrade, unmetered, mut undecided, .. } = opened;
        let buffers = &connections.buffers;
        let (Request { parts, head, has_body, begun }, down) = &mut *request;
        let mut upload = Upload::new(!*has_body, down, resolver);
        if !*has_body {
            in_flight.complete(*begun);
        }
        // Decide by the body, if necessary: admission, and which usage to request.
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
        // Take a connection from the pool, or open one.
        let is_secure = in_flight.worker.plan.upstreams[upstream].target.is_secure();
        let attempts = Attempts::new(is_secure, &parts.uri, &parts.headers);
        let up = connect(connections, &in_flight, attempts, (down, &mut upload), (None, *begun)).await?;
        // Send the head, and the part of the body that has arrived.
        let framing = down.framing();
        let upgrade = upgrade.map(|opened| Box::new((opened, unmetered)));
        let pump = pump.insert(Pump::new(in_flight, (request.1, upload), up, upgrade, (attempts, again)));
        let Request { parts, head, .. } = &request.0;
        pump.request(parts, head, framing, buffers).await?;
        // The next head uses the memory of these fields.
        buffers.fields.replace(request.0.parts.headers);
        Ok(())
    };
    sent.await.map_err(|stop| Ended::of(&in_flight, stop))
}
