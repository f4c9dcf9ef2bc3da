//! The data of the admin listener, read from the other parts.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use accounting::admin_page;
use accounting::billing;
use accounting::pipeline::Tally;
use metrics::Metrics;
use relay::ServerKind;

use crate::assemble::drain::Drain;
use crate::assemble::readiness::Readiness;
use crate::assemble::resource_usage::ResourceUsage;
use crate::cli;

/// The parts that the admin listener reads.
pub(crate) struct Source {
    pub(crate) metrics: Metrics,
    pub(crate) billing: billing::State,
    pub(crate) resource_usage: Arc<ResourceUsage>,
    pub(crate) readiness: Readiness,
    pub(crate) drain: Drain,
    pub(crate) tally: Tally,
    pub(crate) started: Instant,
    /// Name and URL of each upstream.
    pub(crate) upstreams: Vec<(String, String)>,
    /// The listener of each upstream, once it is open.
    pub(crate) addresses: Arc<OnceLock<Vec<SocketAddr>>>,
}

impl page::Source for Source {
    fn metrics(&self, accept: &str) -> page::Scrape {
        admin_page::scrape(&self.metrics, accept)
    }

    fn ready(&self) -> page::Readiness {
        match self.readiness.reasons() {
            none if none.is_empty() => admin_page::readiness(&self.billing),
            reasons => page::Readiness::NotReady(reasons),
        }
    }

    fn view(&self) -> page::View {
        page::View {
            version: cli::version().to_owned(),
            uptime_s: self.started.elapsed().as_secs(),
            upstreams: self.upstreams(),
            models: admin_page::models(&self.metrics),
            spend: self.billing.today(),
            provenances: self.tally.read(),
        }
    }

    fn drain(&self, token: Option<&str>) -> Result<(), page::NoDrain> {
        self.drain.order(token)
    }

    fn drained(&self) -> Option<page::Drained> {
        Some(self.drain.drained())
    }

    fn evicted(&self) {
        self.resource_usage.admin_evicted();
    }
}

impl Source {
    fn upstreams(&self) -> Vec<page::Upstream> {
        let addresses = self.addresses.get().map_or(&[][..], Vec::as_slice);
        let hiding = self.metrics.snapshot().hide_cached_tokens;
        let fault = |name: &str| hiding.iter().find(|(upstream, _)| &**upstream == name).map(hides_cached);
        let upstreams = self.upstreams.iter().zip(addresses).enumerate();
        let shown = upstreams.map(|(index, ((name, url), listen))| page::Upstream {
            name: name.clone(),
            listen: *listen,
            url: url.clone(),
            up: self.readiness.reached(index),
            fault: fault(name),
        });
        shown.collect()
    }
}

fn hides_cached((_, kind): &(Arc<str>, Option<ServerKind>)) -> String {
    let remedy = kind.map_or("", engine::hidden_cached_remedy);
    format!("its cache hits are not in its usage, so they are priced as computed tokens{remedy}")
}
