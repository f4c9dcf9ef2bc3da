//! The response to one request: its head and each slice of its body are shown to the exchange, and the effects of added
//! options are removed from it. These calls do no I/O and are the same for all protocols. The drop of a response before
//! its end means that the client left.

mod edit;
pub(crate) mod interim;

use std::rc::Rc;

use bytes::Bytes;
use exchange::Edits;
use http::{HeaderMap, StatusCode};
use meter::Tick;
use usage::Cuts;

use self::edit::Edit;
use crate::metering::metered::Metered;
use crate::request::answer::Answer;
use crate::request::in_flight::InFlight;
use crate::{Metering, Passthrough, clock, limits};

/// A response whose head was received.
pub(crate) struct Response {
    in_flight: Rc<InFlight>,
    /// Removes the effects of added options, if there may be any.
    edit: Option<Box<Edit>>,
    /// Slices that were shown to the exchange.
    slices: u32,
    /// True until its body has ended, is truncated, or the client left.
    is_open: bool,
}

/// The decision about a response, as far as its head allows one.
pub(crate) enum Verdict {
    Known(Response),
    /// The first bytes of its body decide if it is edited.
    ByBody(Undecided),
}

/// A response about which the first bytes of its body decide.
pub(crate) struct Undecided(Rc<InFlight>);

impl Undecided {
    /// Decides by the first bytes of the body; they are empty if they did not arrive in time. `has_length`: the head
    /// states the length of the body.
    pub(crate) fn decide(self, beginning: &[u8], has_length: bool) -> Response {
        let is_edited = self.0.meter(|metering| metering.exchange.is_edited(beginning, !has_length));
        Response::new(self.0, is_edited == Some(true))
    }
}

impl Response {
    /// Checks a head, and shows it to the exchange. `may_switch`: the request asked to switch protocols, and was sent. An
    /// error is the answer that the client gets instead.
    pub(crate) fn head(
        in_flight: &Rc<InFlight>,
        status: StatusCode,
        fields: &HeaderMap,
        may_switch: bool,
        at: Tick,
    ) -> Result<Verdict, Answer> {
        if status == StatusCode::SWITCHING_PROTOCOLS && !may_switch {
            let fault = "switched protocols (101) although the request did not ask for it, or before its end";
            return Err(Answer::invalid(in_flight.upstream_name(), fault));
        }
        let shown = in_flight.meter(|metering| metering.response_head(status.as_u16(), fields, at));
        if shown == Some(None) {
            // Not a metered kind of answer.
            let is_tunnel = status == StatusCode::SWITCHING_PROTOCOLS;
            let reason = if is_tunnel { Passthrough::Upgrade } else { Passthrough::Path };
            in_flight.worker.passthrough(reason);
            in_flight.metered.borrow_mut().finish();
        }
        let shown = shown.flatten().unwrap_or_default();
        if let Some(reason) = shown.unread {
            in_flight.worker.passthrough(reason);
        }
        let in_flight = Rc::clone(in_flight);
        Ok(match shown.edits {
            Edits::IfStream => Verdict::ByBody(Undecided(in_flight)),
            Edits::None => Verdict::Known(Self::new(in_flight, false)),
            Edits::Stream => Verdict::Known(Self::new(in_flight, true)),
        })
    }

    fn new(in_flight: Rc<InFlight>, is_edited: bool) -> Self {
        in_flight.answer();
        Self { in_flight, edit: is_edited.then(Box::default), slices: 0, is_open: true }
    }

    /// Returns true if the body is edited, so that its length may differ from the upstream's.
    pub(crate) fn is_edited(&self) -> bool {
        self.edit.is_some()
    }

    /// Shows a slice of the body to the exchange, which marks the parts to remove. Returns false if it marks no more. One
    /// slice in [`limits::SPENT_SAMPLE`] is timed, as a sample for all.
    pub(crate) fn show(&mut self, slice: &[u8], at: Tick) -> bool {
        let Self { in_flight, edit, slices, .. } = self;
        let mut metered = in_flight.metered.borrow_mut();
        if metered.is_watching() {
            let mut uncut = Cuts::default();
            let cuts = edit.as_mut().map_or(&mut uncut, |edit| &mut edit.cuts);
            *slices = slices.wrapping_add(1);
            let begun = slices.is_multiple_of(limits::SPENT_SAMPLE).then(clock::read);
            metered.with(|metering| metering.response_body(slice, at, cuts));
            if let Some(begun) = begun {
                let ns = clock::read().since(begun).saturating_mul(u64::from(limits::SPENT_SAMPLE));
                metered.with(|metering| metering.spent(ns));
            }
        }
        metered.is_watching()
    }

    /// Shows a slice of the body to the exchange. Returns the bytes that the client gets in its place; `None` if it gets
    /// the slice itself. `shared` makes the slice shared; it is called only if something is held or changed.
    pub(crate) fn data(&mut self, slice: &[u8], shared: impl FnOnce() -> Bytes, at: Tick) -> Option<Bytes> {
        // A failed meter marks no more: the held bytes are forwarded now.
        let is_last = !self.show(slice, at);
        let Self { in_flight, edit, .. } = self;
        let edit = edit.as_mut()?;
        (!edit.passes(slice.len())).then(|| edit.apply(in_flight, shared(), at, is_last))
    }

    /// Returns the tick at which the held bytes have waited long enough and are to be [released](Self::release); `None` if
    /// there are none.
    pub(crate) fn due(&self) -> Option<Tick> {
        self.edit.as_ref()?.due()
    }

    /// Takes the bytes that are still held: they are due, or the body ends.
    pub(crate) fn release(&mut self) -> Option<Bytes> {
        self.edit.as_mut()?.release()
    }

    /// Ends the exchange after a complete body.
    pub(crate) fn end(&mut self, at: Tick) {
        self.is_open = false;
        let mut metered = self.in_flight.metered.borrow_mut();
        metered.with(|metering| metering.response_end(at));
        metered.finish();
    }

    /// Ends the exchange after a truncated body.
    pub(crate) fn cut(&mut self, at: Tick) {
        self.is_open = false;
        // A client that leaves before the end of its request also truncates the response: the upstream is not the cause.
        if !self.in_flight.has_failed() {
            let mut metered = self.in_flight.metered.borrow_mut();
            metered.with(|metering| metering.upstream_cut(at));
            metered.finish();
        }
    }

    /// Records that the client left before it had the last bytes of the body, of which no rest can be read.
    pub(crate) fn leave_at_end(&mut self, at: Tick) {
        self.is_open = false;
        self.in_flight.meter(|metering| metering.client_left_at_end(at));
    }

    /// Records that the client left, if the response has not ended. Returns the metering if that needs the rest of the
    /// body.
    pub(crate) fn leave(&mut self) -> Option<Metered> {
        let needs_rest = self.is_left();
        let InFlight { worker, metered, .. } = &*self.in_flight;
        needs_rest.then(|| metered.replace(Metered::not(worker)))
    }

    /// Records that the client left, if the response has not ended. Returns true if the rest of the body is needed.
    fn is_left(&mut self) -> bool {
        let left = |metering: &mut Metering| metering.client_left(clock::now());
        std::mem::take(&mut self.is_open) && self.in_flight.meter(left) == Some(true)
    }
}

impl Drop for Response {
    fn drop(&mut self) {
        self.is_left();
    }
}
