//! The end of an exchange: its facts for the observer and for the upstream's profile, and its record for the outbox.

use std::rc::Rc;
use std::sync::Arc;

use exchange::{CallerFacts, UsageHabits};
use meter::{Close, Record, Tick};

use super::Metering;
use super::in_flight_guard::InFlightGuard;
use crate::outbox::Text;
use crate::{Class, Dropped, Passthrough, Refusal};

impl Metering {
    /// Ends the exchange, once. `refusal` is the reason of the proxy's own answer, if there is one.
    pub(super) fn end(&mut self, close: Close, refusal: Option<Refusal>, at: Tick) {
        if !self.exchange.is_inference() {
            return self.dismiss(at);
        }
        // First, so that a failure below cannot leave the exchange in the upstream's load.
        let Some(load) = self.gauges.leave(&mut self.worker.load(self.upstream), at) else { return };
        let slot = self.gauges.slot();
        let mut guard = InFlightGuard { worker: Rc::clone(&self.worker), slot, taken: true };
        // The exchange may end before its request is complete.
        self.request_complete(at);
        let caller = self.caller_facts();
        let Some(mut ended) = self.exchange.end(close, load, at, caller) else {
            // No sign of inference: the guard leaves the gauge, and no record is made.
            return self.worker.passthrough(Passthrough::Path);
        };
        let starts_detached = self.note_detached(&ended, at);
        let id = ended.record.identity.response_id.as_deref().filter(|_| !starts_detached);
        let is_known = id.is_some_and(|id| self.worker.answered.add(id)) && ended.may_repeat;
        // Work of which this process does not know is counted elsewhere, or was before a restart.
        let is_repeated =
            if ended.is_named { !id.is_some_and(|id| self.worker.detached.take(id)) } else { is_known };
        if is_repeated {
            return self.worker.passthrough(Passthrough::Replay);
        }
        if ended.is_renamed {
            self.gauges.unlabel();
        }
        if ended.was_unknown || ended.is_renamed {
            self.gauges.admit(&mut **self.worker.observer.borrow_mut(), self.exchange.model_name(), true);
            guard.slot = self.gauges.slot();
        }
        self.learn(ended.habits, at);
        let text = ended.text.take().zip(self.text.take());
        let text = text.map(|(bytes, share)| Box::new(Text::new(bytes, share)));
        ended.count_losses(&mut **self.worker.observer.borrow_mut());
        self.publish(ended.record, text, refusal, guard);
    }

    /// Returns the facts in the record that only the worker knows.
    fn caller_facts(&mut self) -> CallerFacts {
        let (provider, upstream) = self.place();
        CallerFacts {
            id: self.origin.id,
            started_unix_ns: self.origin.started_unix_ns,
            request_id: self.origin.request_id.take(),
            upstream,
            provider,
            is_provider_known: self.kind().is_some(),
            trace: self.origin.position.trace.take(),
        }
    }

    /// Records in the upstream's profile if an ended stream had counts, and if it had them without a request for them.
    fn learn(&self, habits: UsageHabits, at: Tick) {
        let profile = self.profile();
        if habits.sends_usage {
            profile.sends_usage(at);
        }
        if let Some(something) = habits.reports {
            profile.reports(something, at);
        }
        if habits.sends_no_usage {
            profile.sends_no_usage();
        }
    }

    /// Passes the record to the observer and to the outbox.
    fn publish(
        &self,
        record: Arc<Record>,
        text: Option<Box<Text>>,
        refusal: Option<Refusal>,
        mut guard: InFlightGuard,
    ) {
        let slot = guard.slot;
        let mut observer = self.worker.observer.borrow_mut();
        if let Some(reason) = refusal {
            observer.reject(&record.identity.tenant, reason);
        }
        self.gauges.settle_live(&mut **observer, &record);
        // The control plane counts the text of such a record, and then the record in cells of its own.
        let counted_elsewhere = text.is_some();
        if !counted_elsewhere {
            observer.end(slot, &record);
            guard.taken = false;
        }
        observer.overhead(
            if self.exchange.is_streamed() { Class::Stream } else { Class::Body },
            self.overhead_ns,
        );
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
