//! The facts of a request that its admission depends on, and the end of a rejected request.

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

    /// Returns true if the answer to such a request may not state how many tokens it cost.
    pub(crate) fn may_hide_counts(&self) -> bool {
        self.exchange.may_hide_counts(self.kind())
    }

    /// Returns true if the body may ask for detached work.
    pub(crate) fn may_detach(&self) -> bool {
        !self.fetches_detached() && self.exchange.may_detach(self.kind())
    }

    /// Ends the exchange of a rejected request without a record: nothing was sent upstream and nothing was generated, so
    /// there is nothing to charge. The rejection is counted, and reported to the access log.
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
