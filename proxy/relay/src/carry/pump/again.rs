//! The further attempts of one request. There are three reasons for one:
//! - The server rejects the options that were added: the request is sent as the client sent it. The connection with the
//!   rejection is kept until the second attempt has a response.
//! - Nothing was sent, because the server has closed an idle HTTP/1.1 connection: another one sends the same bytes.
//! - The server has not processed the request (HTTP/2): it is sent again on another connection, within limits.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, StatusCode};

use super::{Finish, Phase, Pump};
use crate::capacity::Permit;
use crate::carry::connect::connect;
use crate::carry::upload::Upload;
use crate::clock;
use crate::connections::Connections;
use crate::request::in_flight::InFlight;
use crate::request::reject::{Stop, unanswered};
use crate::request::second_attempt::Original;
use crate::wire::failure::SendFailure;
use crate::wire::upstream::Upstream;
use crate::wire::{Buffers, Down, Framing, Unanswered, Up as _, Wire as _};

/// The second attempt of an edited request.
pub(in crate::carry) struct Again {
    original: Box<Original>,
    head: Bytes,
    trailers: HeaderMap,
    /// The reserved memory of the original body.
    _share: Option<Rc<Permit>>,
    /// True if the rejection names an option that was added.
    is_named: bool,
    /// The connection with the rejection, once the second attempt is being sent.
    rejected: Option<Upstream>,
}

impl Again {
    /// The second attempt of a request that was received with this `head` and whose edited body is in `upload`.
    pub(in crate::carry) fn new(original: Box<Original>, head: Bytes, upload: &mut Upload) -> Self {
        let ahead = upload.ahead();
        let (trailers, share) = (ahead.trailers.clone(), ahead.share.clone());
        Self { original, head, trailers, _share: share, is_named: false, rejected: None }
    }

    /// True while the first attempt has no response.
    pub(super) fn is_first(&self) -> bool {
        self.rejected.is_none()
    }

    /// Records the beginning of the rejection.
    pub(super) fn rejected_with(&mut self, beginning: &[u8]) {
        self.is_named = self.original.is_named(beginning);
    }

    /// Records that an attempt has a response that the client gets.
    pub(super) fn answered(&self, in_flight: &InFlight, status: StatusCode) {
        if self.rejected.is_some() {
            self.original.answered(in_flight, self.is_named, status);
        }
    }

    /// The connection with the rejection.
    pub(super) fn into_rejected(self) -> Option<Upstream> {
        self.rejected
    }
}

impl<D: Down> Pump<D> {
    /// Writes the head of a request, and the part of its body that has arrived, to its connection.
    pub(in crate::carry) async fn request(
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

    /// Sends the request on another HTTP/1.1 connection, because nothing of it was sent on this one.
    async fn reconnect(&mut self, connections: &Connections) -> Result<(), Stop> {
        let Self { up, down, upload, attempts, in_flight, .. } = self;
        let (attempts, by) = (attempts.by_http1(), (down, upload));
        let place = (up.take_slot(), clock::now());
        let (mut next, ready) = connect(connections, in_flight, attempts, by, place).await?;
        next.take_over(up);
        (*up, self.ready) = (next, ready);
        Ok(())
    }

    /// Sends a request again that the server has not processed, if another attempt is allowed.
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
        let place = (self.up.take_slot(), clock::now());
        let (up, ready) = connect(connections, &self.in_flight, self.attempts, by, place).await?;
        (self.up, self.ready, self.phase) = (up, ready, Phase::Waiting);
        self.request(&parts, &received, framing, &connections.buffers).await
    }

    /// Sends the request again as the client sent it. If there is no connection for that, the client gets the rejection.
    async fn again(&mut self, connections: &Connections) -> Result<(), Stop> {
        let Self { down, upload, again: Some(again), attempts, in_flight, .. } = self else { return Ok(()) };
        let (parts, body) = again.original.again(in_flight);
        let (head, next) = (again.head.clone(), Upload::of(body, again.trailers.clone()));
        *upload = next;
        let place = (self.up.take_slot(), clock::now());
        match connect(connections, in_flight, *attempts, (down, upload), place).await {
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
