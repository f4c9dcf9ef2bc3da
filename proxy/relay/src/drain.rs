//! The shutdown of a worker: `Serving → Draining → Stopped`, in this order only:
//!
//! | phase | new connections | idle connections | requests in flight |
//! |---|---|---|---|
//! | serving | served | kept | served |
//! | draining, for `drain_delay` | served | kept until their next response | served; HTTP/1 connections then close |
//! | draining, then for `drain_grace` | refused by the kernel: the listeners are closed | closed after a second | finish |
//! | stopped | refused | closed | cut |
//!
//! A worker ends as soon as its last connection has ended.

use tokio::sync::watch;

/// The phase of all workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Requests are served.
    Serving,
    /// Workers end once their current requests have ended.
    Draining,
    /// Workers end now.
    Stopped,
}

impl Phase {
    /// Waits for `phase` or a later one, and returns it. A dropped sender can no longer stop the workers, so it counts
    /// as a stop.
    pub(crate) async fn reached(phases: &mut watch::Receiver<Self>, phase: Self) -> Self {
        phases.wait_for(|now| *now >= phase).await.map_or(Self::Stopped, |now| *now)
    }
}
