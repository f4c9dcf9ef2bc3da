//! Port takeover: the sidecar listens on the public number, and the server moves.
//!
//! The model's `ports` stay as they are: an entry is a name for a number of the pod, and Services find names in plain
//! containers only, before Kubernetes 1.32.

use serde_json::Value;

use crate::annotations::Annotations;
use crate::port::{Ports, has_host, move_server};
use crate::probes;
use crate::reason::Reason;
use crate::server::Server;
use crate::sidecar::Addresses;

/// Moves the server of `container`.
pub(crate) fn apply(
    container: &mut Value,
    server: &Server,
    ports: Ports,
    annotations: &Annotations<'_>,
) -> Result<Addresses, Reason> {
    let is_movable = !server.host_flags.is_empty() || !server.port_env.is_empty();
    if annotations.loopback && !(is_movable && (server.takes_new_flags || has_host(container, server))) {
        return Err(Reason::Annotation("loopback"));
    }
    move_server(container, server, ports.gained, annotations.loopback)?;
    // The kubelet cannot reach loopback: there, probes go through the sidecar.
    if !annotations.loopback {
        probes::rewrite(container, ports, ports.gained);
    }
    Ok(Addresses { listen: ports.public, upstream: ports.gained, transparent: false })
}
