//! The content of the admin listener that comes from the metrics and from billing.

use std::time::Instant;

use live::{History, Now, Readiness, Recorder, Step, Upstream};
use metrics::{Format, Metrics, Snapshot};
use page::{Cached, Content};

use crate::billing::State;
use crate::month_spend;

/// The numbers of the admin listener.
pub struct AdminPage {
    metrics: Metrics,
    billing: State,
    recorder: Recorder,
    spend: Option<Cached>,
}

impl AdminPage {
    /// Returns the numbers of these metrics and this billing.
    pub fn new(metrics: &Metrics, billing: &State) -> Self {
        Self {
            metrics: metrics.clone(),
            billing: billing.clone(),
            recorder: Recorder::default(),
            spend: billing
                .ledger_path()
                .map(|(path, currency)| month_spend::cached(path, currency, metrics, billing.ledger())),
        }
    }

    /// Returns the scrape page in the format that `accept`, a header field, prefers.
    pub fn scrape(&self, accept: &str) -> Content {
        let format = Format::accepted(accept);
        let metrics = self.metrics.clone();
        Content {
            content_type: format.content_type(),
            write: Box::new(move |out| metrics.scrape(format).write(format, out)),
        }
    }

    /// Returns the readiness of a process that can serve: problems of billing affect no traffic.
    pub fn readiness(&self) -> Readiness {
        match self.billing.troubles() {
            none if none.is_empty() => Readiness::Ready,
            troubles => Readiness::Impaired(troubles),
        }
    }

    /// Samples the metrics, and returns the current state. Called once per second.
    pub fn sample(
        &mut self,
        version: &str,
        readiness: Readiness,
        upstreams: impl FnOnce(&Snapshot) -> Vec<Upstream>,
    ) -> Now {
        let snapshot = self.metrics.snapshot();
        let now = self.recorder.sample(Instant::now(), &snapshot);
        Now { version: version.to_owned(), readiness, upstreams: upstreams(&snapshot), ..now }
    }

    /// Returns the history of a scope; `None` for an unknown one.
    pub fn history(&self, scope: &str, step: Step) -> Option<History> {
        self.recorder.history(scope, step)
    }

    /// Returns the spend of this month as JSON; `None` without a ledger.
    pub fn spend(&self) -> Option<Content> {
        self.spend.as_ref().map(Cached::content)
    }
}
