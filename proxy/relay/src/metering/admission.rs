//! The facts of a request that are asked for before it goes upstream, and its end if it is refused there.

use std::sync::Arc;

use exchange::recorded;

use super::Metering;
use crate::rejection::Known;
use crate::{Refusal, clock};

impl Metering {
    /// Returns the names of its provider and its upstream.
    pub(crate) fn place(&self) -> (Arc<str>, Arc<str>) {
        self.worker.place(self.upstream)
    }

    /// Returns true if the answer to such a request may not say how many tokens it cost.
    pub(crate) fn may_hide_counts(&self) -> bool {
        self.exchange.may_hide_counts(self.kind())
    }

    /// Its tenant may not spend, or not on this model. Nothing went upstream and nothing was generated, so
    /// there is no record that could be billed; the refusal is counted, and told to whom it may concern.
    pub(crate) fn refused(&mut self, reason: Refusal, status: u16) {
        self.dismiss(clock::now());
        let Some(tenant) = self.exchange.tenant() else { return };
        self.worker.observer.borrow_mut().reject(tenant, reason);
        let known = Known {
            tenant: Arc::clone(tenant),
            principal: self.exchange.principal().cloned(),
            dialect: self.exchange.dialect(),
            model: self.exchange.models().next().map(|model| recorded(model).into()),
        };
        self.worker.report_rejection(self.upstream, (reason, status), Some(known));
    }
}
