//! Brings what clients hold of what they share from the data plane to the metrics, when a page is made.

use std::sync::{Arc, OnceLock};

use metrics::{Bounded, Metrics, ResourceReading};
use relay::{Held, HeldOf};

/// Reads the data plane once it runs.
#[derive(Clone, Default)]
pub(crate) struct Holdings(Arc<OnceLock<Running>>);

struct Running {
    read: Box<dyn Fn() -> Held + Send + Sync>,
    upstreams: Vec<Arc<str>>,
}

impl Holdings {
    /// The data plane runs, with these upstreams.
    pub(crate) fn running(&self, relay: &relay::Running) {
        let upstreams = relay.addresses().iter().map(|(name, _)| Arc::clone(name)).collect();
        self.0.get_or_init(|| Running { read: Box::new(relay.reader()), upstreams });
    }

    /// Tells the metrics how it stands.
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

fn bounded(of: HeldOf) -> Bounded {
    Bounded { used: of.taken as u64, limit: of.most as u64 }
}
