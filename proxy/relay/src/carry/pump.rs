//! The pump of one request: its bytes to the upstream, then the response to the client, each slice in the turn in which it
//! was read (law 2), whatever protocols the two connections have. Backpressure is the order of its steps: while the client
//! takes nothing, nothing is read.

use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{StatusCode, Version};
use meter::Tick;

use super::held_timer::HeldTimer;
use crate::metering::metered::Metered;
use crate::request::answer::Answer;
use crate::request::in_flight::InFlight;
use crate::request::reject::{Stop, unanswered};
use crate::response::interim::Interim;
use crate::response::{Response, Verdict};
use crate::session::{self, Session, answered};
use crate::wire::{Buffers, Down, Framing, Part, Up};
use crate::{Passthrough, clock, limits};

/// One request and its response. Its drop before the response has ended means that the client left.
pub(crate) struct Pump<U, D> {
    // Before `phase` and `in_flight`: the upstream's connection is closed when the exchange ends.
    pub(crate) up: U,
    pub(crate) down: D,
    phase: Phase,
    /// The consequence of a switch of protocols, if the request asks for one. Boxed: few do.
    upgrade: Option<Box<Upgrade>>,
    /// The interim responses, if there were any.
    interim: Option<Interim>,
    held_timer: HeldTimer,
    pub(crate) in_flight: Rc<InFlight>,
}

/// The session that begins if the protocol is switched, and the reason why the request is not metered.
pub(crate) type Upgrade = (session::Opened, Option<Passthrough>);

/// The phase of a request.
enum Phase {
    /// The request is being sent.
    Sending,
    /// It was sent, and no response has begun.
    Waiting,
    /// The response has begun.
    Answering(Response),
    /// The server switched protocols. The session is that of a tunnel that is metered.
    Switched(Option<Box<Session>>),
    /// All of the response was given to the client, or all that there is.
    Over(Finish),
}

/// The end of a request.
#[derive(Clone, Copy)]
pub(crate) enum Finish {
    /// The client has its response.
    Done,
    /// The connection of the client ends with the response, which is truncated.
    Close,
    /// Nothing was sent on a connection that carried others before: the request may be sent on another one.
    Unsent,
    /// The server switched protocols: the two connections become a tunnel.
    Switched,
}

impl<U: Up, D: Down> Pump<U, D> {
    /// A request that is ready to be sent once `up` is connected. `upgrade`: it asks to switch protocols.
    pub(crate) fn new(up: U, down: D, in_flight: Rc<InFlight>, upgrade: Option<Upgrade>) -> Self {
        let (upgrade, held_timer) = (upgrade.map(Box::new), HeldTimer::default());
        Self { up, down, phase: Phase::Sending, upgrade, interim: None, held_timer, in_flight }
    }

    /// Ends the request, whose server switched protocols. Returns the connection to it, and the session if there is one.
    pub(crate) fn switched(self) -> (U, Option<Box<Session>>) {
        let session = match self.phase {
            Phase::Switched(session) => session,
            _ => None,
        };
        (self.up, session)
    }

    /// Ends the request, whose client left. Returns the metering and the upstream's connection if the rest of the response
    /// is needed.
    pub(crate) fn leave(self) -> Option<(Metered, U)> {
        // The connection is dropped first.
        let Self { mut phase, up, .. } = self;
        let Phase::Answering(response) = &mut phase else { return None };
        response.leave().map(|metered| (metered, up))
    }

    /// Sends, reads and forwards as far as possible. An error comes in place of a response, or of its rest.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, buffers: &Buffers) -> Poll<Result<Finish, Stop>> {
        let mut left_bytes = limits::TURN_READ_BYTES;
        loop {
            match self.down.poll_flush(cx, buffers) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => return Poll::Ready(Err(Stop::ClientGone)),
                Poll::Pending => return self.watch(cx, buffers),
            }
            match self.phase {
                Phase::Over(finish) => return Poll::Ready(Ok(finish)),
                Phase::Switched(_) => return Poll::Ready(Ok(Finish::Switched)),
                Phase::Sending => match self.up.poll_send(cx, buffers) {
                    Poll::Ready(Ok(())) => self.was_sent(),
                    Poll::Ready(Err(_)) if self.up.may_repeat() => return Poll::Ready(Ok(Finish::Unsent)),
                    Poll::Ready(Err(failure)) => {
                        return Poll::Ready(Err(unanswered(self.in_flight.upstream_name(), failure)));
                    }
                    Poll::Pending => return self.watch(cx, buffers),
                },
                Phase::Waiting | Phase::Answering(_) => {}
            }
            if left_bytes == 0 {
                // Other connections have their turn first.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let mut buffer = buffers.read.borrow_mut();
            let slice = match self.up.poll_read(cx, &mut buffer[..left_bytes]) {
                Poll::Ready(read) => read.ok().map(|read| &buffer[..read]),
                Poll::Pending => {
                    drop(buffer);
                    if self.give_overdue(cx, buffers) {
                        continue;
                    }
                    return self.watch(cx, buffers);
                }
            };
            left_bytes -= slice.map_or(0, <[u8]>::len);
            self.down.begin(buffers);
            let at = clock::now();
            let finish = self.take(slice, buffers, at)?;
            if self.down.write(cx, slice.unwrap_or_default(), buffers).is_err() {
                return Poll::Ready(Err(Stop::ClientGone));
            }
            self.end(finish, at);
        }
    }

    /// Watches the client while nothing can be moved.
    fn watch(&self, cx: &mut Context<'_>, buffers: &Buffers) -> Poll<Result<Finish, Stop>> {
        self.down.poll_gone(cx, buffers).map(|()| Err(Stop::ClientGone))
    }

    /// Records that the request was sent completely.
    fn was_sent(&mut self) {
        self.phase = Phase::Waiting;
        self.in_flight.metered.borrow_mut().with(|metering| metering.exchange.sent());
        if let Some(at) = self.in_flight.completed_at() {
            self.in_flight.spent(at);
        }
    }

    /// Gives the client the bytes that were held long enough. Returns false if there are none.
    fn give_overdue(&mut self, cx: &mut Context<'_>, buffers: &Buffers) -> bool {
        let Phase::Answering(response) = &mut self.phase else { return false };
        if self.held_timer.poll(cx, response.due()).is_pending() {
            return false;
        }
        let Some(held) = response.release() else { return false };
        self.down.begin(buffers);
        self.down.data(&[], &held, None);
        true
    }

    /// Takes the parts of a slice of the response, which was read at `at`: decides about them, and adds them for the
    /// client. Returns the end, if it is in the slice.
    fn take(&mut self, slice: Option<&[u8]>, buffers: &Buffers, at: Tick) -> Result<Option<Finish>, Stop> {
        let Self { up, down, phase, upgrade, interim, in_flight, .. } = self;
        let bytes = slice.unwrap_or_default();
        let mut finish = None;
        up.parts(slice, in_flight.upstream_name(), buffers, |part| {
            match (part, &mut *phase) {
                (Part::Interim(head), _) => {
                    let interim = interim.get_or_insert_with(|| Interim::new(Version::HTTP_11));
                    interim.push(head.status, head.fields);
                    if interim.is_flood() {
                        return Err(Answer::interim_flood(in_flight.upstream_name()).into());
                    }
                    if let Some(heads) = interim.take() {
                        in_flight.client.interim(heads.as_bytes());
                    }
                }
                (Part::Head(head), phase) => {
                    let is_upgrade = upgrade.is_some();
                    let verdict = Response::head(in_flight, head.status, head.fields, is_upgrade, at)?;
                    let session = upgrade.take().and_then(|upgrade| {
                        let (opened, unmetered) = *upgrade;
                        answered(&in_flight.worker, opened, unmetered, (head.status, head.fields))
                    });
                    let response = match verdict {
                        Verdict::Known(response) => response,
                        // The pump does not wait for the first bytes of the body.
                        Verdict::ByBody(undecided) => undecided.decide(b"", head.framing == Framing::Length),
                    };
                    in_flight.watch();
                    let is_last = in_flight.worker.draining.get() && !head.status.is_informational();
                    down.head(head, response.is_edited(), is_last);
                    in_flight.spent(at);
                    *phase = match head.status {
                        StatusCode::SWITCHING_PROTOCOLS => Phase::Switched(session),
                        _ => Phase::Answering(response),
                    };
                }
                (Part::Data { data, verbatim }, Phase::Answering(response)) => {
                    match response.data(data, || Bytes::copy_from_slice(data), at, false) {
                        None => down.data(bytes, data, verbatim),
                        Some(changed) => down.data(bytes, &changed, None),
                    }
                }
                (Part::End { verbatim }, Phase::Answering(response)) => {
                    if let Some(held) = response.release() {
                        down.data(bytes, &held, None);
                    }
                    down.end(bytes, verbatim);
                    finish = Some(Finish::Done);
                }
                (Part::Cut, Phase::Answering(response)) => {
                    if let Some(held) = response.release() {
                        down.data(bytes, &held, None);
                    }
                    finish = Some(Finish::Close);
                }
                // A body has a head before it.
                (Part::Data { .. } | Part::End { .. } | Part::Cut, _) => {}
            }
            Ok(())
        })?;
        Ok(finish)
    }

    /// Ends the exchange, if the response has ended.
    fn end(&mut self, finish: Option<Finish>, at: Tick) {
        match (finish, &mut self.phase) {
            (Some(finish), Phase::Answering(response)) => {
                match finish {
                    Finish::Done => response.end(at),
                    _ => response.cut(at),
                }
                let may_stay = matches!(finish, Finish::Done) && !self.in_flight.worker.leaving.is_ordered();
                self.up.end(may_stay);
                self.phase = Phase::Over(finish);
            }
            _ => self.in_flight.waited(),
        }
    }
}
