//! Samples of the use of the resources that clients share. Invariant: each number comes with its limit.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use metrics::{ADMIN_CONNECTION, ADMIN_HANDSHAKE, Metric, SampleWriter, Samples};
use relay::{CapacityReading, CapacityUse};

/// The use of shared resources, once the data plane runs.
#[derive(Default)]
pub(crate) struct ResourceUsage {
    running: OnceLock<Running>,
    /// Evicted connections to the admin address.
    evicted: AtomicU64,
    /// Connections to the admin address that failed their TLS handshake.
    failed_handshakes: AtomicU64,
}

struct Running {
    read: Box<dyn Fn() -> CapacityReading + Send + Sync>,
    upstreams: Vec<Arc<str>>,
}

impl ResourceUsage {
    /// Records that the data plane runs.
    pub(crate) fn running(&self, relay: &relay::Running, upstreams: Vec<Arc<str>>) {
        self.running.get_or_init(|| Running { read: Box::new(relay.reader()), upstreams });
    }

    /// Counts an evicted connection to the admin address.
    pub(crate) fn admin_evicted(&self) {
        self.evicted.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a connection to the admin address that failed its TLS handshake.
    pub(crate) fn admin_handshake_failed(&self) {
        self.failed_handshakes.fetch_add(1, Ordering::Relaxed);
    }
}

impl Samples for ResourceUsage {
    fn write(&self, to: &mut SampleWriter) {
        let running = self.running.get();
        for (what, counter) in [(ADMIN_CONNECTION, &self.evicted), (ADMIN_HANDSHAKE, &self.failed_handshakes)]
        {
            let count = counter.load(Ordering::Relaxed);
            to.count(Metric::Dropped, &[what], (running.is_some() || count > 0).then_some(count));
        }
        let Some(Running { read, upstreams }) = running else { return };
        let held = read();
        bounded(to, [Metric::Connections, Metric::ConnectionsLimit], &[], held.connections);
        bounded(to, [Metric::GatheredBytes, Metric::GatheredLimit], &[], held.gathered_bytes);
        for (upstream, of) in upstreams.iter().zip(held.upstream_connections) {
            let metrics = [Metric::UpstreamConnections, Metric::UpstreamConnectionsLimit];
            bounded(to, metrics, &[upstream], of);
        }
    }
}

/// Writes a use and its limit.
fn bounded(to: &mut SampleWriter, [used, limit]: [Metric; 2], labels: &[&str], of: CapacityUse) {
    to.count(used, labels, of.taken as u64);
    to.count(limit, labels, of.most as u64);
}
