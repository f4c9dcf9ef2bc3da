//! The end of a worker. `Serving → Draining → Stopped`, never back:
//!
//! | phase | new connections | idle connections | requests under way |
//! |---|---|---|---|
//! | serving | served | kept | served |
//! | draining, for `drain_delay` | served | kept | served |
//! | draining, then for `drain_grace` | refused by the kernel: the listeners are closed | told to go | finish |
//! | stopped | refused | closed | cut |
//!
//! A worker whose last connection ends is done before the grace is over.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use tokio::sync::futures::OwnedNotified;
use tokio::sync::{Notify, watch};

/// The order given to all workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// To serve.
    Serving,
    /// To end when what they are at has ended.
    Draining,
    /// To end.
    Stopped,
}

impl Phase {
    /// Waits for `phase` or a later one, and says which. A sender that is gone can no longer stop
    /// us, so that counts as a stop.
    pub(crate) async fn reached(phases: &mut watch::Receiver<Self>, phase: Self) -> Self {
        phases.wait_for(|now| *now >= phase).await.map_or(Self::Stopped, |now| *now)
    }

    /// The same, or until `or` is done.
    pub(crate) async fn reached_before(
        phases: &mut watch::Receiver<Self>,
        phase: Self,
        mut or: Pin<&mut impl Future<Output = ()>>,
    ) {
        let mut reached = std::pin::pin!(Self::reached(phases, phase));
        std::future::poll_fn(|cx| match reached.as_mut().poll(cx) {
            Poll::Ready(_) => Poll::Ready(()),
            Poll::Pending => or.as_mut().poll(cx),
        })
        .await;
    }
}

/// The order to every connection of one worker to end after the request it is at.
#[derive(Debug, Default)]
pub(crate) struct Leaving {
    is_ordered: Cell<bool>,
    ordered: Arc<Notify>,
}

impl Leaving {
    /// Gives the order.
    pub(crate) fn order(&self) {
        self.is_ordered.set(true);
        self.ordered.notify_waiters();
    }

    /// Returns true once the order was given.
    pub(crate) fn is_ordered(&self) -> bool {
        self.is_ordered.get()
    }

    /// Ends when the order is given.
    pub(crate) fn ordered(&self) -> OwnedNotified {
        Arc::clone(&self.ordered).notified_owned()
    }
}
