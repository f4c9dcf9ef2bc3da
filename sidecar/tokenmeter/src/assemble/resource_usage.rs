//! Copies the use of shared resources from the data plane to the metrics, for each scrape.

use std::sync::{Arc, OnceLock};

use metrics::{Bounded, Metrics, ResourceReading};
use relay::{CapacityReading, CapacityUse};

/// Reads the use of shared resources once the data plane runs.
#[derive(Clone, Default)]
pub(crate) struct ResourceUsage(Arc<OnceLock<Running>>);

struct Running {
    read: Box<dyn Fn() -> CapacityReading + Send + Sync>,
    upstreams: Vec<Arc<str>>,
}

impl ResourceUsage {
    /// Records that the data plane runs.
    pub(crate) fn running(&self, relay: &relay::Running) {
        let upstreams = relay.addresses().iter().map(|(name, _)| Arc::clone(name)).collect();
        self.0.get_or_init(|| Running { read: Box::new(relay.reader()), upstreams });
    }

    /// Updates the metrics.
    pub(crate) fn refresh(&self, metrics: &Metrics) {
        let Some(Running { read, upstreams }) = self.0.get() else { return };
        let held = read();
        metrics.resources(ResourceReading {
            connections: bounded(held.connections),
            gathered_bytes: bounded(held.gathered_bytes),
            upstream_connections: upstreams
                .iter()
                .cloned()
                .zip(held.upstream_connections.into_iter().map(bounded))
                .collect(),
        });
    }
}

fn bounded(of: CapacityUse) -> Bounded {
    Bounded { used: of.taken as u64, limit: of.most as u64 }
}
