//! The protocol switch of a client connection, from the upstream's 101 to the tunnel.

use std::sync::Arc;

use meter::Tick;

use crate::conn::tunnel::UpstreamIo;
use crate::holder::Holder;
use crate::session::Session;

/// The upstream's side of a connection that switches protocols, and its session, if it is metered.
pub(super) type Switched = (UpstreamIo, Option<Box<Session>>);

/// The state of the switch.
#[derive(Default)]
pub(super) enum Switching {
    /// The connection carries HTTP.
    #[default]
    No,
    /// The 101 was sent, and the tunnel has not begun.
    Accepted(Box<Switched>),
    /// The connection is a tunnel.
    Tunnel {
        /// The tick at which its client last sent bytes.
        read: Tick,
        /// The index of its upstream, and the holder of the connection to it.
        holder: Option<(usize, Arc<Holder>)>,
    },
}
