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
use super::opening;
use super::upload::Upload;
use super::{Finish, Phase, Pump};
use crate::capacity::Permit;
use crate::carry::held_timer::HeldTimer;
use crate::carry::open::Attempts;
use crate::conn::client::Client;
use crate::connections::Connections;
use crate::request::answer::Answer;
use crate::request::in_flight::InFlight;
use crate::request::reject::{Stop, reject, unanswered};
use crate::request::second_attempt::Original;
use crate::request::{Decision, Edited, Opened, open};
use crate::wire::failure::SendFailure;
use crate::wire::upstream::Upstream;
use crate::wire::{Buffers, Down, Framing, Unanswered, Up};
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
    pump: &mut Option<Pump<Upstream, D>>,
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
        let buffers = &connections.buffers;
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
        let is_secure = in_flight.worker.plan.upstreams[upstream].target.is_secure();
        let attempts = Attempts::new(is_secure, &parts.uri, &parts.headers);
        let by = (&mut down, &mut upload);
        let (up, ready) = connect(connections, &in_flight, attempts, by, begun).await?;
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
            attempts,
            failed: None,
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
    attempts: Attempts,
    (down, upload): (&mut impl Down, &mut Upload),
    begun: Tick,
) -> Result<(Upstream, Tick), Stop> {
    let buffers = &connections.buffers;
    let mut opening = pin!(opening::upstream(connections, in_flight, attempts));
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

impl<D: Down> Pump<Upstream, D> {
    /// Begins the next attempt, if one follows this end; else returns the end.
    pub(crate) async fn attempt(
        &mut self,
        connections: &Connections,
        finish: Finish,
    ) -> Result<Option<Finish>, Stop> {
        match finish {
            Finish::Again => self.again(connections).await?,
            Finish::Unsent => {
                let repeated = match self.failed.take() {
                    Some(failed) => self.repeat(connections, *failed).await,
                    None => self.reconnect(connections).await,
                };
                match repeated {
                    Err(Stop::Reject(_)) if self.fall_back() => {}
                    repeated => repeated?,
                }
            }
            Finish::Done | Finish::Close | Finish::Switched => return Ok(Some(finish)),
        }
        Ok(None)
    }

    /// Sends the request on another connection, because nothing was sent on this one, by HTTP/1.1.
    async fn reconnect(&mut self, connections: &Connections) -> Result<(), Stop> {
        let Self { up, down, upload, attempts, in_flight, .. } = self;
        let (attempts, by) = (attempts.by_http1(), (down, upload));
        let (mut next, ready) = connect(connections, in_flight, attempts, by, clock::now()).await?;
        next.take_over(up);
        (*up, self.ready) = (next, ready);
        Ok(())
    }

    /// Sends a request again that the server has not processed, if it may be.
    async fn repeat(
        &mut self,
        connections: &Connections,
        (request, cause): (Unanswered, SendFailure),
    ) -> Result<(), Stop> {
        let Unanswered { parts, received, framing, slices, is_reused } = request;
        let pool = &connections.pools[self.in_flight.upstream];
        if !self.attempts.may_repeat(pool, &cause, is_reused) {
            return Err(unanswered(self.in_flight.upstream_name(), cause));
        }
        self.upload.put_back(slices);
        let by = (&mut self.down, &mut self.upload);
        let (up, ready) = connect(connections, &self.in_flight, self.attempts, by, clock::now()).await?;
        (self.up, self.ready, self.phase) = (up, ready, Phase::Waiting);
        self.request(&parts, &received, framing, &connections.buffers).await
    }

    /// Sends the request again as the client sent it. If there is no connection for that, the client gets the rejection.
    async fn again(&mut self, connections: &Connections) -> Result<(), Stop> {
        let Self { down, upload, again: Some(again), attempts, in_flight, .. } = self else { return Ok(()) };
        let (parts, body) = again.original.again(in_flight);
        let (head, next) = (again.head.clone(), Upload::of(body, again.trailers.clone()));
        *upload = next;
        let begun = clock::now();
        match connect(connections, in_flight, *attempts, (down, upload), begun).await {
            Ok((up, ready)) => {
                again.rejected = Some(std::mem::replace(&mut self.up, up));
                (self.ready, self.phase) = (ready, Phase::Waiting);
                let framing = self.down.framing();
                self.request(&parts, &head, framing, &connections.buffers).await
            }
            Err(Stop::Reject(_)) => {
                self.hold_rejection();
                Ok(())
            }
            Err(Stop::ClientGone) => Err(Stop::ClientGone),
        }
    }
}
