//! A client connection that switched protocols and is a tunnel.

use std::sync::Arc;

use meter::Tick;

use crate::holder::Holder;

/// The state of a tunnel.
pub(super) struct Tunnel {
    /// The tick at which its client last sent bytes.
    pub(super) read: Tick,
    /// The index of its upstream, and the holder of the connection to it; `None` if no share limits the holder.
    pub(super) holder: Option<(usize, Arc<Holder>)>,
}
