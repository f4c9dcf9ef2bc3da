//! The end of an exchange: its record, what the observer and the upstream's profile learn of it, and the way of
//! the record to the outbox.

use std::rc::Rc;

use exchange::names::{named, recorded};
use exchange::response_reader::BodySummary;
use meter::{Close, Identity, Meter, Provenance, Record, Tick};
use scan::Dialect;
use usage::UsageFilter;

use super::Exchange;
use super::gauges::InFlightGuard;
use crate::outbox::Text;
use crate::request::tenant::resolve_by_body;
use crate::{Class, Dropped, Passthrough, Refusal};

impl Exchange {
    /// Ends the exchange, once. `refusal` is the reason of the proxy's own answer, if there is one.
    pub(super) fn end(&mut self, close: Close, refusal: Option<Refusal>, at: Tick) {
        if self.dialect == Dialect::Unknown && self.response.is_none() {
            // Nothing of inference was seen.
            return self.dismiss(at);
        }
        let Some(mut meter) = self.meter.take() else { return };
        // First of all, so that nothing that fails below can leave them behind.
        let load = self.gauges.leave(&self.worker, self.upstream, at);
        let slot = self.gauges.slot();
        let mut guard = InFlightGuard { worker: Rc::clone(&self.worker), slot, taken: true };
        if let Some(facts) = self.settle() {
            // It ended before its request was complete.
            meter.set_dialect(self.dialect);
            meter.requested(facts, at);
        }
        let (close, mut body) = self.end_body(&mut meter, close, at);
        let was_unknown = self.dialect == Dialect::Unknown;
        let is_tentative = was_unknown && !self.is_streamed();
        if is_tentative && let Some(dialect) = body.answered {
            self.dialect = dialect;
            meter.set_dialect(dialect);
        }
        // Of two readings of the request, the answer says which was the server's.
        let is_named = self.model.name.is_empty() && !body.model.is_empty();
        let is_renamed = is_named || self.model.is_other(&body.model);
        if is_renamed {
            self.model.name = body.model;
            self.gauges.unlabel();
        }
        let identity = self.identity(&body);
        let mut record = meter.end(identity, close, load, at);
        record.upstream_attempts = self.sent.attempts;
        self.role.end(record.tokens.output());
        record.identity.role = self.role.get();
        if is_tentative && is_uncounted(&record) {
            // Nothing of inference was seen: the guard leaves the gauge, and there is no record.
            return self.worker.passthrough(Passthrough::Path);
        }
        if was_unknown || is_renamed {
            self.gauges.admit(&self.worker, &self.model.name, true);
            guard.slot = self.gauges.slot();
        }
        self.learn(&record, at);
        let text = self.text_to_count(&record, body.text.take());
        self.publish(record, text, (refusal, body.unparsed), guard);
    }

    /// Ends the body. Returns how it ended, and its facts.
    fn end_body(&mut self, meter: &mut Meter, mut close: Close, at: Tick) -> (Close, BodySummary) {
        let Some(response) = &mut self.response else { return (close, BodySummary::default()) };
        let Some(reader) = response.reader.take() else { return (close, BodySummary::default()) };
        let mut reading = meter.tail(at);
        let body = match &mut response.usage_filter {
            Some(usage_filter) => reader.end(&mut usage_filter.listen(&mut reading)),
            None => reader.end(&mut reading),
        };
        if let Close::Clean { whole } | Close::ClientGone { whole } = &mut close {
            *whole = body.tail.whole;
        }
        (close, body)
    }

    /// The identity of the record of an exchange whose response has this body.
    fn identity(&mut self, body: &BodySummary) -> Identity {
        let (provider, upstream) = self.place();
        resolve_by_body(&self.worker, &mut self.tenant);
        let who = self.tenant.take();
        let asked = self.request.take_facts();
        let tier = [body.tier, asked.tier].into_iter().find(|tier| !tier.is_empty());
        Identity {
            exchange: self.origin.id,
            tenant: who.tenant,
            principal: who.principal,
            consumer: who.consumer,
            service_tier: tier.map(|tier| tier.as_str().into()),
            is_tier_reported: !body.tier.is_empty(),
            upstream,
            provider,
            role: self.role.get(),
            request_id: self.origin.request_id.take(),
            dialect: self.dialect,
            model: recorded(self.model.name.as_str()).into(),
            response_model: (!body.model.is_empty()).then(|| recorded(body.model.as_str()).into()),
            response_id: named(&body.id),
            previous_response_id: named(&asked.links.previous_response),
            conversation_id: named(&asked.links.conversation),
            trace: self.origin.position.trace.take(),
            started_unix_ns: self.origin.started_unix_ns,
        }
    }

    /// Notes in the upstream's profile if a stream that ended had counts, and if it had them without being asked.
    fn learn(&self, record: &Record, at: Tick) {
        let usage_filter = self.response.as_ref().and_then(|response| response.usage_filter.as_ref());
        let sends_unrequested = usage_filter.is_some_and(UsageFilter::sends_unrequested);
        if sends_unrequested {
            self.profile().sends_usage(at);
        }
        let counted = record.tokens.output_provenance;
        if !record.streamed
            || !record.ending.is_success()
            || !self.dialect.generates()
            || matches!(counted, Provenance::None | Provenance::Engine)
        {
            return;
        }
        self.profile().reports(counted != Provenance::Frames, at);
        let asked = usage_filter.is_none_or(UsageFilter::asked);
        if !sends_unrequested && !asked && counted != Provenance::Reported {
            self.profile().sends_no_usage();
        }
    }

    /// The answer's text, if it was kept and the record has no better count.
    fn text_to_count(&mut self, record: &Record, text: Option<Vec<u8>>) -> Option<Text> {
        let is_estimate = record.tokens.output_provenance == Provenance::Frames;
        let is_unstated = !record.streamed && record.tokens.output_provenance == Provenance::None;
        let kept = self.response.as_mut().and_then(|response| response.text.take());
        let text = text.filter(|text| is_estimate || is_unstated && !text.is_empty()).zip(kept);
        text.map(|(bytes, share)| Text::new(bytes, share))
    }

    /// Gives the record to the observer and to the outbox.
    fn publish(
        &self,
        record: Record,
        text: Option<Text>,
        (refusal, unparsed): (Option<Refusal>, u64),
        mut guard: InFlightGuard,
    ) {
        let slot = guard.slot;
        let mut observer = self.worker.observer.borrow_mut();
        if let Some(reason) = refusal {
            observer.reject(&record.identity.tenant, reason);
        }
        let output = if self.role.get().is_counted() { record.tokens.output() } else { 0 };
        self.gauges.settle_live(&mut **observer, output);
        // A record whose text will be counted elsewhere is booked there, with that count.
        let counted_elsewhere = text.is_some();
        if !counted_elsewhere {
            observer.end(slot, &record);
            guard.taken = false;
        }
        observer.overhead(if self.is_streamed() { Class::Stream } else { Class::Body }, self.overhead_ns);
        for (what, count) in [
            (Dropped::UsageRejected, u64::from(record.usage_rejected)),
            (Dropped::FrameUnparsed, unparsed),
            (Dropped::CachedExcess, u64::from(record.cached_excess > 0)),
        ] {
            if count > 0 {
                observer.dropped(what, count);
            }
        }
        match self.worker.outbox.put(record, text) {
            Ok(()) if counted_elsewhere => observer.abandon(slot),
            Ok(()) => {}
            Err(back) => {
                if counted_elsewhere {
                    observer.end(slot, &back.record);
                }
                observer.dropped(Dropped::Record, 1);
            }
        }
        guard.taken = false;
    }
}

/// Returns true if the answer carries no count.
fn is_uncounted(record: &Record) -> bool {
    let tokens = &record.tokens;
    (tokens.input_provenance, tokens.output_provenance) == (Provenance::None, Provenance::None)
}
