//! The probes and lifecycle hooks of the model's container, which follow its server.

use serde_json::{Value, json};

use crate::pod::{at, list, text};
use crate::port::Ports;
use crate::reason::Reason;

/// The probes and hooks of a container.
const PLACES: [[&str; 2]; 5] = [
    ["startupProbe", ""],
    ["readinessProbe", ""],
    ["livenessProbe", ""],
    ["lifecycle", "postStart"],
    ["lifecycle", "preStop"],
];

/// The kinds of action that name a port.
const ACTIONS: [&str; 3] = ["httpGet", "tcpSocket", "grpc"];

/// Fails if a probe of the server's port uses TLS, which the sidecar does not speak.
pub(crate) fn check_scheme(container: &Value, ports: Ports) -> Result<(), Reason> {
    for [outer, inner] in PLACES {
        let Some(place) = container.get(outer).and_then(|outer| step(outer, inner)) else { continue };
        let is_tls = text(place, &["httpGet", "scheme"]) == Some("HTTPS");
        let port = at(place, &["httpGet", "port"]);
        if is_tls && port.is_some_and(|port| leads_to(container, port, ports)) {
            return Err(Reason::Tls);
        }
    }
    Ok(())
}

/// Rewrites the ports of probes and hooks that lead to the server's port.
pub(crate) fn rewrite(container: &mut Value, ports: Ports, to: u16) {
    let before = container.clone();
    for [outer, inner] in PLACES {
        let Some(place) = container.get_mut(outer).and_then(|outer| step_mut(outer, inner)) else { continue };
        for action in ACTIONS {
            if let Some(port) = place.get_mut(action).and_then(|action| action.get_mut("port"))
                && leads_to(&before, port, ports)
            {
                *port = to.into();
            }
        }
    }
}

/// Adds the hook that delays the server's SIGTERM until the sidecar has drained. Returns false if there is another hook.
pub(crate) fn add_pre_stop(container: &mut Value, admin_port: u16) -> Result<bool, Reason> {
    let lifecycle = crate::pod::map_mut(container, "lifecycle")?;
    if lifecycle.get("preStop").is_some_and(|hook| !hook.is_null()) {
        return Ok(false);
    }
    lifecycle.insert("preStop".to_owned(), json!({"httpGet": {"path": "/drained", "port": admin_port}}));
    Ok(true)
}

/// Returns true if a port of a probe, a number or a name, is the server's or the public one.
fn leads_to(container: &Value, port: &Value, ports: Ports) -> bool {
    let is_ours = |number: u64| number == u64::from(ports.own) || number == u64::from(ports.public);
    if let Some(number) = port.as_u64() {
        return is_ours(number);
    }
    let Some(name) = port.as_str() else { return false };
    list(container, "ports").iter().any(|entry| {
        text(entry, &["name"]) == Some(name)
            && entry.get("containerPort").and_then(Value::as_u64).is_some_and(is_ours)
    })
}

fn step<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    if key.is_empty() { Some(value) } else { value.get(key) }
}

fn step_mut<'v>(value: &'v mut Value, key: &str) -> Option<&'v mut Value> {
    if key.is_empty() { Some(value) } else { value.get_mut(key) }
}
