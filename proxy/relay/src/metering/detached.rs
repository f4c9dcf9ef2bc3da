//! Detached work in the metering of a request: its answer may start some, or be the result of some.

use exchange::Ended;
use meter::{Ending, Tick};

use super::Metering;
use super::work::Work;

impl Metering {
    /// Sets the relation of the request to detached work.
    pub(crate) fn works(&mut self, work: Work) {
        self.work = work;
        if self.fetches_detached() {
            self.exchange.fetches_detached();
        }
    }

    /// Returns true if the request fetches the result of detached work.
    pub(crate) fn fetches_detached(&self) -> bool {
        matches!(self.work, Work::Fetched(_))
    }

    /// Returns true if the tenant's last requests to this path started detached work.
    pub(crate) fn has_started_detached(&self, now: Tick) -> bool {
        let Work::MayStart(path @ 1..) = self.work else { return false };
        self.exchange.tenant().is_some_and(|tenant| self.worker.detached.is_started(tenant, path, now))
    }

    /// Records what the ended exchange shows of detached work. Returns true if it started some: its id is not that of an
    /// answer that was counted.
    pub(super) fn note_detached(&self, ended: &Ended, at: Tick) -> bool {
        let record = &ended.record;
        match self.work {
            Work::Fetched(job) if record.tokens.is_counted() => _ = self.worker.detached.counted(job),
            Work::MayStart(path) if record.ending == Ending::Detached => {
                self.worker.detached.begin((&record.identity.tenant, path), ended.job.as_deref(), at);
                return true;
            }
            _ => {}
        }
        false
    }
}
