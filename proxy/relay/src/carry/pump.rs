//! The pump of one request moves its body to the upstream and the response to the client, at the same time, each slice in
//! the turn in which it was read (law 2), for all protocols. Backpressure comes from the order of its steps: it reads from
//! one side only after the other has taken all bytes before.

mod again;

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::StatusCode;
use meter::Tick;
use tokio::time::{Sleep, sleep};
use usage::HOLD_TIME;

pub(super) use self::again::Again;
use super::attempts::Attempts;
use super::held_timer::HeldTimer;
use super::upload::Upload;
use crate::conn::tunnel::UpstreamIo;
use crate::metering::metered::Metered;
use crate::request::answer::Answer;
use crate::request::headers;
use crate::request::in_flight::InFlight;
use crate::request::reject::{Stop, unanswered};
use crate::request::second_attempt::is_refusal;
use crate::response::interim::Interim;
use crate::response::{Response, Undecided, Verdict};
use crate::session::{self, Session, answered};
use crate::wire::failure::SendFailure;
use crate::wire::upstream::Upstream;
use crate::wire::{Buffers, Down, Framing, Part, Received, Take, Unanswered, Up as _, Wire as _};
use crate::{Passthrough, clock, limits};

/// One request and its response. A drop before the response has ended means that the client left.
pub(crate) struct Pump<D> {
    // Before `phase` and `in_flight`: the upstream's connection is closed when the exchange ends.
    up: Upstream,
    pub(crate) down: D,
    upload: Upload,
    phase: Phase,
    pub(crate) in_flight: Rc<InFlight>,
    held_timer: HeldTimer,
    // Each frame uses the fields up to here.
    /// The tick since which `up` waits for the request.
    ready: Tick,
    /// The interim responses of all attempts, if there were any.
    interim: Option<Interim>,
    /// Set if the request asks to switch protocols. Boxed: few do.
    upgrade: Option<Box<Upgrade>>,
    /// The second attempt of an edited request, until its response. Boxed: few requests have one.
    again: Option<Box<Again>>,
    /// The attempts so far.
    attempts: Attempts,
    /// A request that the server has not processed, and the reason, until it is sent again.
    failed: Option<Box<(Unanswered, SendFailure)>>,
}

/// The session that begins if the protocol is switched, and the reason why the request is not metered.
type Upgrade = (session::Opened, Option<Passthrough>);

/// The phase of the response.
enum Phase {
    /// No response has begun.
    Waiting,
    /// Its head waits for the first bytes of its body.
    Held(Held),
    /// It has begun.
    Answering(Response),
    /// The server switched protocols. The session is that of a tunnel that is metered.
    Switched(Option<Box<Session>>),
    /// It has ended, and the client's connection has all of it.
    Over(Finish),
}

/// A head that waits for the first bytes of its body.
struct Held {
    /// The end of the wait; `None` if it is over.
    until: Option<Pin<Box<Sleep>>>,
    /// The response, if only these bytes are missing to decide about it.
    undecided: Option<Undecided>,
}

/// The end of a request, or of an attempt.
#[derive(Clone, Copy)]
pub(crate) enum Finish {
    /// The response is complete.
    Done,
    /// The response is truncated, and the client's connection ends with it.
    Close,
    /// The server rejected the request: it is sent again, without the options that were added.
    Again,
    /// The request may be sent again: nothing of it was sent on a connection that carried others before, or the server has
    /// not processed it.
    Unsent,
    /// The server switched protocols: the two connections become a tunnel.
    Switched,
}

impl<D: Down> Pump<D> {
    /// A request of which nothing was sent. `ready`: the tick since which `up` waits for it; `again`: its second attempt, if
    /// it was edited.
    pub(super) fn new(
        in_flight: Rc<InFlight>,
        (down, upload): (D, Upload),
        (up, ready): (Upstream, Tick),
        upgrade: Option<Box<Upgrade>>,
        (attempts, again): (Attempts, Option<Box<Again>>),
    ) -> Self {
        Self {
            up,
            down,
            upload,
            ready,
            phase: Phase::Waiting,
            interim: None,
            held_timer: HeldTimer::default(),
            upgrade,
            again,
            attempts,
            failed: None,
            in_flight,
        }
    }

    /// Ends the request, whose server switched protocols. Returns the upstream's side of the tunnel.
    pub(crate) fn switched(self) -> Option<Box<UpstreamIo>> {
        let Phase::Switched(session) = self.phase else { return None };
        Some(Box::new(UpstreamIo { session, ..self.up.into_io()? }))
    }

    /// Ends the request, whose client left. Returns the metering and the upstream's connection if the rest of the response
    /// is needed.
    pub(crate) fn leave(self) -> Option<(Metered, Upstream)> {
        // The connection is dropped first.
        let Self { mut phase, up, .. } = self;
        let Phase::Answering(response) = &mut phase else { return None };
        if up.is_whole() {
            response.end(clock::now());
        }
        response.leave().map(|metered| (metered, up))
    }

    /// Sends, reads and forwards as far as possible. An error ends the request without a response, or within it.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, buffers: &Buffers) -> Poll<Result<Finish, Stop>> {
        // The numbers of bytes that may still be read in this turn, in each direction.
        let (mut sent, mut answered) = (limits::TURN_READ_BYTES, limits::TURN_READ_BYTES);
        loop {
            let mut is_moving = false;
            if !self.upload.is_over()
                && let Poll::Ready(uploaded) = self.poll_upload(cx, buffers, &mut sent)
            {
                uploaded.or_else(|stop| self.break_off(stop))?;
                is_moving = true;
            }
            match self.poll_response(cx, buffers, &mut answered) {
                Poll::Ready(Ok(None)) => {}
                Poll::Ready(Ok(Some(finish))) => return Poll::Ready(Ok(finish)),
                Poll::Ready(Err(Stop::Reject(_))) if self.fall_back() => {}
                Poll::Ready(Err(stop)) => return Poll::Ready(Err(stop)),
                Poll::Pending if is_moving => {}
                // Watch the client while no byte moves.
                Poll::Pending => return self.down.poll_gone(cx, buffers).map(|()| Err(Stop::ClientGone)),
            }
            if sent == 0 || answered == 0 {
                // The turns of other connections come first.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    }

    /// Forwards a part of the request body: the next in memory, or else the next that can be read.
    fn poll_upload(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &Buffers,
        left: &mut usize,
    ) -> Poll<Result<(), Stop>> {
        let Self { up, down, upload, in_flight, .. } = self;
        if ready!(up.poll_flush(cx, buffers)).is_err() {
            // The server may have answered before it closed the connection: the next read shows it.
            if !up.may_repeat() {
                upload.break_off();
            }
            return Poll::Pending;
        }
        if upload.was_flushed() {
            self.was_sent();
            return Poll::Ready(Ok(()));
        }
        if upload.give_ahead(up, buffers) {
            if up.write(cx, &[], buffers).is_err() {
                upload.break_off();
            }
            return Poll::Ready(Ok(()));
        }
        let read = ready!(upload.poll_forward(cx, (up, down, in_flight), (buffers, *left)))?;
        *left -= read;
        Poll::Ready(Ok(()))
    }

    /// Writes the head of the request, and the part of its body that has arrived.
    fn begin(&mut self, cx: &mut Context<'_>, buffers: &Buffers) -> Result<(), Stop> {
        let Self { up, down, upload, in_flight, .. } = self;
        let is_given = upload.give_ahead(up, buffers);
        if !is_given
            && upload.poll_forward(cx, (up, down, in_flight), (buffers, limits::TURN_READ_BYTES))?.is_ready()
        {
            return Ok(());
        }
        // The next write returns the same error.
        let _ = up.write(cx, &[], buffers);
        Ok(())
    }

    /// Records that the request was sent completely.
    fn was_sent(&mut self) {
        self.upload.count(&self.in_flight);
        if let Some(at) = self.in_flight.completed_at() {
            self.in_flight.spent(at.max(self.ready));
        }
    }

    /// Forwards a part of the response, if there is one. Returns the end of the attempt, once it has ended.
    fn poll_response(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &Buffers,
        left: &mut usize,
    ) -> Poll<Result<Option<Finish>, Stop>> {
        if ready!(self.down.poll_flush(cx, buffers)).is_err() {
            return Poll::Ready(Err(Stop::ClientGone));
        }
        match self.phase {
            Phase::Over(finish) => return Poll::Ready(Ok(Some(finish))),
            Phase::Switched(_) => return Poll::Ready(Ok(Some(Finish::Switched))),
            Phase::Waiting | Phase::Held(_) | Phase::Answering(_) => {}
        }
        let mut buffer = buffers.read.borrow_mut();
        let Poll::Ready(read) = self.up.poll_read(cx, &mut buffer[..*left]) else {
            drop(buffer);
            return self.poll_overdue(cx, buffers);
        };
        let received = Received::of(read, &buffer);
        *left -= received.slice().len();
        Poll::Ready(self.take(cx, received, buffers, false))
    }

    /// Forwards bytes that have waited long enough; called when nothing can be read.
    fn poll_overdue(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &Buffers,
    ) -> Poll<Result<Option<Finish>, Stop>> {
        match &mut self.phase {
            Phase::Held(held) => {
                if let Some(until) = &mut held.until {
                    ready!(until.as_mut().poll(cx));
                }
                Poll::Ready(self.take(cx, Received::Slice(&[]), buffers, true))
            }
            Phase::Answering(response) => {
                ready!(self.held_timer.poll(cx, response.due()));
                let Some(bytes) = response.release() else { return Poll::Pending };
                self.down.begin(buffers);
                self.down.data(&[], &bytes, None);
                Poll::Ready(Ok(None))
            }
            Phase::Waiting | Phase::Switched(_) | Phase::Over(_) => Poll::Pending,
        }
    }

    /// Decides about the received bytes of the response, and forwards them. `is_overdue`: a head that waits for its body has
    /// waited long enough.
    fn take(
        &mut self,
        cx: &mut Context<'_>,
        received: Received<'_>,
        buffers: &Buffers,
        is_overdue: bool,
    ) -> Result<Option<Finish>, Stop> {
        self.down.begin(buffers);
        let (slice, at) = (received.slice(), clock::now());
        let mut unshown = None;
        let finish = self.parts(received, buffers, (at, is_overdue), &mut unshown)?;
        let written = self.down.write(cx, slice, buffers);
        if let (Some(data), Phase::Answering(response)) = (unshown, &mut self.phase) {
            response.show(&slice[data], at);
        }
        if written.is_err() {
            if let (Some(Finish::Done | Finish::Close), Phase::Answering(response)) =
                (finish, &mut self.phase)
            {
                response.leave_at_end(at);
            }
            return Err(Stop::ClientGone);
        }
        match (finish, &mut self.phase) {
            (Some(Finish::Again | Finish::Unsent), _) => return Ok(finish),
            (Some(finish), Phase::Answering(response)) => {
                match finish {
                    Finish::Done => response.end(at),
                    _ => response.cut(at),
                }
                let is_leaving = self.in_flight.worker.leaving.get().is_some();
                let may_stay = matches!(finish, Finish::Done) && self.upload.is_sent() && !is_leaving;
                self.up.release(may_stay);
                self.phase = Phase::Over(finish);
            }
            _ => self.in_flight.waited(),
        }
        Ok(None)
    }

    /// Decides about the parts of the response that were received at `at`, and adds them to the message for the client.
    /// Returns the end, if it is among them. Sets `unshown` to the range of the last payload if the exchange gets it after
    /// it was written, as with a body that is not edited.
    fn parts(
        &mut self,
        received: Received<'_>,
        buffers: &Buffers,
        (at, is_overdue): (Tick, bool),
        unshown: &mut Option<Range<usize>>,
    ) -> Result<Option<Finish>, Stop> {
        let Self { up, down, phase, interim, upgrade, again, failed, in_flight, upload, .. } = self;
        let (slice, mut finish, mut failure) = (received.slice(), None, None);
        up.parts(received, buffers, |part| {
            match (part, &mut *phase) {
                (Part::Interim(head), _) => {
                    let interim = interim.get_or_insert_with(|| Interim::new(down.version()));
                    interim.push(head.status, head.fields);
                    if interim.is_flood() {
                        return Err(Answer::interim_flood(in_flight.upstream_name()).into());
                    }
                    if let Some(heads) = interim.take() {
                        in_flight.client.interim(heads.as_bytes());
                    }
                }
                (Part::Head(head), phase) => {
                    let is_known = head.beginning.is_some() || is_overdue;
                    let beginning = head.beginning.unwrap_or_default();
                    if let Some(first) = again.as_deref_mut().filter(|again| again.is_first())
                        && is_refusal(head.status)
                    {
                        if is_known {
                            first.rejected_with(beginning);
                            finish = Some(Finish::Again);
                        } else if matches!(phase, Phase::Waiting) {
                            *phase = Phase::Held(Held {
                                until: Some(Box::pin(sleep(limits::REJECTION_TIME))),
                                undecided: None,
                            });
                        }
                        return Ok(Take::Later);
                    }
                    if let Some(again) = again.take() {
                        again.answered(in_flight, head.status);
                    }
                    // A server may answer before it has the whole request.
                    upload.count(in_flight);
                    let verdict = match std::mem::replace(phase, Phase::Waiting) {
                        Phase::Held(Held { undecided: Some(undecided), .. }) => Verdict::ByBody(undecided),
                        _ => {
                            let may_switch = upgrade.is_some() && upload.is_given();
                            Response::head(in_flight, head.status, head.fields, may_switch, at)?
                        }
                    };
                    let response = match verdict {
                        Verdict::Known(response) => response,
                        Verdict::ByBody(undecided) if is_known => {
                            undecided.decide(beginning, head.framing == Framing::Length)
                        }
                        Verdict::ByBody(undecided) => {
                            *phase = Phase::Held(Held {
                                until: Some(Box::pin(sleep(HOLD_TIME))),
                                undecided: Some(undecided),
                            });
                            return Ok(Take::Later);
                        }
                    };
                    let session = upgrade.take().and_then(|upgrade| {
                        let (opened, unmetered) = *upgrade;
                        answered(&in_flight.worker, opened, unmetered, (head.status, head.fields))
                    });
                    in_flight.watch();
                    down.response(head, response.is_edited(), in_flight.worker.draining.get());
                    in_flight.spent(at);
                    *phase = match head.status {
                        StatusCode::SWITCHING_PROTOCOLS => Phase::Switched(session),
                        _ => Phase::Answering(response),
                    };
                }
                (Part::Data { data, verbatim }, Phase::Answering(response)) if !response.is_edited() => {
                    if let Some(earlier) = unshown.take() {
                        response.show(&slice[earlier], at);
                    }
                    *unshown = place(data, slice);
                    if unshown.is_none() {
                        response.show(data, at);
                    }
                    down.data(slice, data, verbatim);
                }
                (Part::Data { data, verbatim }, Phase::Answering(response)) => {
                    match response.data(data, || Bytes::copy_from_slice(data), at) {
                        None => down.data(slice, data, verbatim),
                        Some(changed) => down.data(slice, &changed, None),
                    }
                }
                (Part::End { mut trailers, verbatim }, Phase::Answering(response)) => {
                    headers::keep_trailers(&mut trailers);
                    if let Some(held) = response.release() {
                        down.data(slice, &held, None);
                    }
                    down.end(slice, verbatim, &trailers);
                    finish = Some(Finish::Done);
                }
                (Part::Cut(_), Phase::Answering(response)) => {
                    if let Some(held) = response.release() {
                        down.data(slice, &held, None);
                    }
                    finish = Some(Finish::Close);
                }
                (Part::Cut(cause), _) => failure = Some(cause),
                // A body has a head before it.
                (Part::Data { .. } | Part::End { .. }, _) => {}
            }
            Ok(Take::Taken)
        })?;
        let Some(cause) = failure else { return Ok(finish) };
        if let Some(request) = up.take_back(&cause) {
            *failed = Some(Box::new((request, cause)));
        } else if !up.may_repeat() {
            return Err(unanswered(in_flight.upstream_name(), cause));
        }
        Ok(Some(Finish::Unsent))
    }

    /// Returns to the rejection of the first attempt after the second got no response; false if there is none.
    fn fall_back(&mut self) -> bool {
        let Some(rejected) = self.again.take().and_then(|again| again.into_rejected()) else { return false };
        self.up = rejected;
        self.hold_rejection();
        true
    }

    /// Gives the client the rejection of the first attempt.
    fn hold_rejection(&mut self) {
        self.again = None;
        self.upload.break_off();
        self.phase = Phase::Held(Held { until: None, undecided: None });
    }

    /// Ends the request after its body turned out to be incomplete. A response that has begun is truncated.
    fn break_off(&mut self, stop: Stop) -> Result<(), Stop> {
        match (&mut self.phase, stop) {
            (Phase::Answering(response), Stop::Reject(_)) => {
                response.cut(clock::now());
                self.up.release(false);
                self.phase = Phase::Over(Finish::Close);
                Ok(())
            }
            (_, stop) => Err(stop),
        }
    }
}

/// Returns the range of `data` in `slice`, if it is a part of that.
fn place(data: &[u8], slice: &[u8]) -> Option<Range<usize>> {
    let from = data.as_ptr().addr().checked_sub(slice.as_ptr().addr())?;
    let range = from..from + data.len();
    (range.end <= slice.len()).then_some(range)
}
