//! The attempts of one request: decide, connect, send; and once more, without the options that were added, if the server
//! rejects them. The connection of the rejected attempt stays until the next one has a response.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use meter::Tick;

use super::gather::gather;
use super::upload::Upload;
use super::{Phase, Pump};
use crate::capacity::Permit;
use crate::carry::held_timer::HeldTimer;
use crate::connections::Connections;
use crate::engine::net::client::Client;
use crate::request::answer::Answer;
use crate::request::in_flight::InFlight;
use crate::request::reject::{Stop, reject};
use crate::request::second_attempt::Original;
use crate::request::{Decision, Edited, Opened, open};
use crate::wire::h1::{self, Http1Up};
use crate::wire::{Buffers, Down, Framing, Up};
use crate::{clock, limits};

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

/// The next attempt of a request that was edited, and the one before.
pub(super) struct Again<U> {
    original: Box<Original>,
    head: Bytes,
    trailers: HeaderMap,
    /// The memory of the original body is taken as long as that may be sent again.
    _share: Option<Rc<Permit>>,
    /// True if the rejection names an option that was added.
    is_named: bool,
    /// The connection with the rejection, once the next attempt is being sent.
    rejected: Option<U>,
}

impl<U> Again<U> {
    /// True while the first attempt has no response.
    pub(super) fn is_first(&self) -> bool {
        self.rejected.is_none()
    }

    /// Records the beginning of the rejection.
    pub(super) fn rejected_with(&mut self, beginning: &[u8]) {
        self.is_named = self.original.is_named(beginning);
    }

    /// Records that an attempt has a response, which the client gets.
    pub(super) fn answered(&self, in_flight: &InFlight, status: StatusCode) {
        if self.rejected.is_some() {
            self.original.answered(in_flight, self.is_named, status);
        }
    }

    /// The connection with the rejection.
    pub(super) fn into_rejected(self) -> Option<U> {
        self.rejected
    }
}

/// Decides about a request, connects it to its upstream, and begins to send it; the result is written to `pump`.
pub(crate) async fn begin<D: Down>(
    connections: &Rc<Connections>,
    (client, upstream): (&Rc<Client>, usize),
    request: Box<(Request, D)>,
    pump: &mut Option<Pump<Http1Up, D>>,
) -> Result<(), Ended> {
    let (Request { mut parts, head, has_body, begun }, down) = *request;
    let worker = (&connections.worker, &connections.watched);
    let mut opened = open(worker, client, upstream, (&mut parts, has_body), begun).map_err(|answer| {
        if has_body {
            client.leave_unread();
        }
        Ended::Answered(Box::new(answer), true)
    })?;
    opened.rewrite(&mut parts, has_body);
    let in_flight = Rc::clone(&opened.in_flight);
    let sent = async {
        let Opened { in_flight, resolver, upgrade, unmetered, mut undecided, begun, .. } = opened;
        let buffers = &connections.http1.buffers;
        let (mut down, mut upload) = (down, Upload::new(!has_body, resolver));
        if !has_body {
            in_flight.complete(begun);
        }
        let mut gathered = None;
        let edited = loop {
            match undecided.decide(&in_flight, &mut parts, gathered.as_ref())? {
                Decision::Send(edited) => break edited,
                Decision::NeedBody => {
                    let by = (&mut down, &in_flight);
                    gathered = Some(gather(&mut upload, by, buffers, limits::GATHERED_BYTES).await?);
                }
            }
        };
        drop(gathered);
        let again = edited.map(|Edited { slices, original }| {
            let ahead = upload.ahead();
            ahead.slices = slices.into();
            let (trailers, share) = (ahead.trailers.clone(), ahead.share.clone());
            let head = head.clone();
            Box::new(Again { original, head, trailers, _share: share, is_named: false, rejected: None })
        });
        let (up, ready) = connect(connections, &in_flight, &mut down, &mut upload, begun).await?;
        let framing = down.framing();
        let (phase, interim) = (Phase::Waiting, None);
        let pump = pump.insert(Pump {
            up,
            down,
            upload,
            ready,
            phase,
            interim,
            held_timer: HeldTimer::default(),
            upgrade: upgrade.map(|opened| Box::new((opened, unmetered))),
            again,
            in_flight,
        });
        pump.request(&parts, &head, framing, buffers).await?;
        // Its memory serves the next head.
        buffers.fields.replace(parts.headers);
        Ok(())
    };
    sent.await.map_err(|stop| Ended::of(&in_flight, stop))
}

/// Takes or opens a connection. Meanwhile, one slice of the body is read, so that the tick of the complete request depends
/// on the client and not on the upstream; a client that leaves ends it. Also returns the time since when the upstream
/// waits for the request, which `begun` is if there was a connection.
async fn connect(
    connections: &Connections,
    in_flight: &Rc<InFlight>,
    down: &mut impl Down,
    upload: &mut Upload,
    begun: Tick,
) -> Result<(Http1Up, Tick), Stop> {
    let buffers = &connections.http1.buffers;
    let mut opening = pin!(h1::open(connections, in_flight));
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

/// Reads one slice ahead, and watches the client; ready if the request ends.
fn poll_ahead(
    cx: &mut Context<'_>,
    (down, in_flight): (&mut impl Down, &Rc<InFlight>),
    upload: &mut Upload,
    buffers: &Buffers,
) -> Poll<Stop> {
    if upload.is_open() && !upload.has_ahead() {
        let mut slices = VecDeque::new();
        let keep = |data: &[u8]| slices.push_back(Bytes::copy_from_slice(data));
        match upload.poll_ahead(cx, (&mut *down, in_flight), buffers, keep) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Err(error)) => return Poll::Ready(error.into()),
            Poll::Ready(Ok(trailers)) => {
                let ahead = upload.ahead();
                ahead.slices = slices;
                ahead.trailers = trailers.unwrap_or_default();
            }
        }
    }
    down.poll_gone(cx, buffers).map(|()| Stop::ClientGone)
}

impl<U: Up, D: Down> Pump<U, D> {
    /// Writes a request to its connection, as far as it is at hand.
    async fn request(
        &mut self,
        parts: &Parts,
        head: &[u8],
        framing: Framing,
        buffers: &Buffers,
    ) -> Result<(), Stop> {
        poll_fn(|cx| {
            self.up.begin(buffers);
            self.up.request(parts, head, framing);
            Poll::Ready(self.begin(cx, buffers))
        })
        .await
    }
}

impl<D: Down> Pump<Http1Up, D> {
    /// Sends the request on another connection, because nothing was sent on this one.
    pub(crate) async fn repeat(&mut self, connections: &Connections) -> Result<(), Stop> {
        let Self { up, down, upload, in_flight, .. } = self;
        match connect(connections, in_flight, down, upload, clock::now()).await {
            Ok((mut next, ready)) => {
                next.take_over(up);
                (*up, self.ready) = (next, ready);
                Ok(())
            }
            Err(Stop::Reject(_)) if self.fall_back() => Ok(()),
            Err(stop) => Err(stop),
        }
    }

    /// Sends the request again as the client sent it. If there is no connection for that, the client gets the rejection.
    pub(crate) async fn again(&mut self, connections: &Connections) -> Result<(), Stop> {
        let Self { down, upload, again: Some(again), in_flight, .. } = self else { return Ok(()) };
        let (parts, body) = again.original.again(in_flight);
        let (head, next) = (again.head.clone(), Upload::of(body, again.trailers.clone()));
        *upload = next;
        let begun = clock::now();
        match connect(connections, in_flight, down, upload, begun).await {
            Ok((up, ready)) => {
                again.rejected = Some(std::mem::replace(&mut self.up, up));
                (self.ready, self.phase) = (ready, Phase::Waiting);
                let framing = self.down.framing();
                self.request(&parts, &head, framing, &connections.http1.buffers).await
            }
            Err(Stop::Reject(_)) => {
                self.hold_rejection();
                Ok(())
            }
            Err(Stop::ClientGone) => Err(Stop::ClientGone),
        }
    }
}
