//! Port takeover: the sidecar listens on the public number, and the server moves.
//!
//! The model's `ports` stay as they are: an entry is a name for a number of the pod, and Services find names in plain
//! containers only, before Kubernetes 1.32.

use serde_json::{Value, json};

use crate::knobs::Knobs;
use crate::pod::{list, list_mut, map_mut, text};
use crate::port::{Ports, has_host, move_server};
use crate::probes;
use crate::reason::Reason;
use crate::server::Server;
use crate::sidecar::Addresses;

/// Ports below this need a privilege, which the sidecar lacks.
const UNPRIVILEGED: u16 = 1024;

/// The sysctl that lowers that bound for the pod; Kubernetes lists it as safe.
const SYSCTL: &str = "net.ipv4.ip_unprivileged_port_start";

/// Moves the server of `container`.
pub(crate) fn apply(
    container: &mut Value,
    server: &Server,
    ports: Ports,
    knobs: &Knobs<'_>,
) -> Result<Addresses, Reason> {
    let is_movable = !server.host_flags.is_empty() || !server.port_env.is_empty();
    if knobs.loopback && !(is_movable && (server.takes_new_flags() || has_host(container, server))) {
        return Err(Reason::Knob("loopback"));
    }
    move_server(container, server, ports.gained, knobs.loopback)?;
    // The kubelet cannot reach loopback: there, probes go through the sidecar.
    if !knobs.loopback {
        probes::rewrite(container, ports, ports.gained);
    }
    Ok(Addresses { listen: ports.public, upstream: ports.gained, transparent: false })
}

/// Lets the sidecar listen on a privileged port.
pub(crate) fn allow_port(spec: &mut Value, port: u16) -> Result<(), Reason> {
    if port >= UNPRIVILEGED {
        return Ok(());
    }
    map_mut(spec, "securityContext")?;
    let Some(context) = spec.get_mut("securityContext") else { return Ok(()) };
    if list(context, "sysctls").iter().any(|sysctl| text(sysctl, &["name"]) == Some(SYSCTL)) {
        return Ok(());
    }
    list_mut(context, "sysctls")?.push(json!({"name": SYSCTL, "value": "0"}));
    Ok(())
}
