//! The end of an exchange: what the observer and the upstream's profile learn of it, and the way of its record to the
//! outbox.

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
        // First of all, so that nothing that fails below can leave them behind.
        let Some(load) = self.gauges.leave(&mut self.worker.load(self.upstream), at) else { return };
        let slot = self.gauges.slot();
        let mut guard = InFlightGuard { worker: Rc::clone(&self.worker), slot, taken: true };
        // It may end before its request is complete.
        self.request_complete(at);
        let caller = self.caller_facts();
        let Some(mut ended) = self.exchange.end(close, load, at, caller) else {
            // Nothing of inference was seen: the guard leaves the gauge, and there is no record.
            return self.worker.passthrough(Passthrough::Path);
        };
        if ended.is_renamed {
            self.gauges.unlabel();
        }
        if ended.was_unknown || ended.is_renamed {
            self.gauges.admit(&mut **self.worker.observer.borrow_mut(), self.exchange.model_name(), true);
            guard.slot = self.gauges.slot();
        }
        self.learn(ended.habits, at);
        let text = ended.text.take().zip(self.text.take()).map(|(bytes, share)| Text::new(bytes, share));
        ended.count_losses(&mut **self.worker.observer.borrow_mut());
        self.publish(ended.record, text, refusal, guard);
    }

    /// The facts in its record that the exchange itself does not know.
    fn caller_facts(&mut self) -> CallerFacts {
        let (provider, upstream) = self.place();
        CallerFacts {
            id: self.origin.id,
            started_unix_ns: self.origin.started_unix_ns,
            request_id: self.origin.request_id.take(),
            upstream,
            provider,
            trace: self.origin.position.trace.take(),
        }
    }

    /// Notes in the upstream's profile if a stream that ended had counts, and if it had them without being asked.
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

    /// Gives the record to the observer and to the outbox.
    fn publish(
        &self,
        record: Arc<Record>,
        text: Option<Text>,
        refusal: Option<Refusal>,
        mut guard: InFlightGuard,
    ) {
        let slot = guard.slot;
        let mut observer = self.worker.observer.borrow_mut();
        if let Some(reason) = refusal {
            observer.reject(&record.identity.tenant, reason);
        }
        self.gauges.settle_live(&mut **observer, &record);
        // A record whose text will be counted elsewhere is booked there, with that count.
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
