//! The buffers and the idle upstream connections of one worker.

use std::rc::Rc;

use super::upstream_socket::UpstreamSocket;
use crate::Plan;
use crate::engine::net::idle::IdlePool;
use crate::wire::Buffers;

/// The buffers and the idle upstream connections of one worker.
pub(crate) struct Http1 {
    pub(super) buffers: Buffers,
    /// Idle connections, one pool for each upstream in the plan's order.
    pub(super) pools: Vec<Rc<IdlePool<UpstreamSocket>>>,
}

impl Http1 {
    /// The state of a worker without connections.
    pub(crate) fn new(plan: &Plan) -> Self {
        let pools = plan.upstreams.iter().map(|_| Rc::new(IdlePool::new(plan.pool_size, plan.pool_idle)));
        Self { buffers: Buffers::new(), pools: pools.collect() }
    }

    /// Closes idle connections that are too old or were closed by their peer.
    pub(crate) fn sweep(&self) {
        self.pools.iter().for_each(|pool| pool.sweep());
    }
}
