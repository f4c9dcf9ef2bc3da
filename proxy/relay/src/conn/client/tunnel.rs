//! A client connection that switched protocols and is a tunnel.

use std::sync::Arc;

use meter::Tick;

use super::Client;
use crate::clock;
use crate::holder::Holder;

/// The state of a tunnel.
pub(super) struct Tunnel {
    /// The tick at which its client last sent bytes.
    pub(super) read: Tick,
    /// The index of its upstream, and the holder of the connection to it; `None` if no share limits the holder.
    holder: Option<(usize, Arc<Holder>)>,
}

impl Client {
    /// Records that the connection is a tunnel to the upstream with this index from now on. `holder`: that of the connection
    /// to it.
    pub(crate) fn begin_tunnel(&self, upstream: usize, holder: Option<&Arc<Holder>>) {
        let holder = holder.map(|holder| (upstream, Arc::clone(holder)));
        self.tunnel.replace(Some(Tunnel { read: clock::now(), holder }));
    }

    /// The tick at which the client of a tunnel last sent bytes; `None` if the connection is not a tunnel.
    pub(crate) fn tunnel_read(&self) -> Option<Tick> {
        self.tunnel.borrow().as_ref().map(|tunnel| tunnel.read)
    }

    /// The holder of this tunnel's connection to the upstream with this index; `None` if the connection is not a tunnel
    /// to it, or no share limits its holder.
    pub(crate) fn tunnel_holder(&self, upstream: usize) -> Option<Arc<Holder>> {
        let tunnel = self.tunnel.borrow();
        let (to, holder) = tunnel.as_ref()?.holder.as_ref()?;
        (*to == upstream).then(|| Arc::clone(holder))
    }
}
