//! Redirection: packets to the public number reach the sidecar, and the server stays.

use serde_json::{Value, json};

use crate::config::Config;
use crate::pod::{at, containers, list_mut, text};
use crate::port::Ports;
use crate::reason::Reason;
use crate::sidecar::Addresses;

/// Adds the init container that sets the rules, before the sidecar starts.
pub(crate) fn apply(spec: &mut Value, config: &Config, ports: Ports) -> Result<Addresses, Reason> {
    let Some(mut redirect) = config.redirect.clone() else {
        return Err(Reason::Mode("the mode redirect is not offered by the injection config"));
    };
    let name = text(&redirect, &["name"]).map(str::to_owned);
    if containers(spec).any(|container| text(container, &["name"]) == name.as_deref()) {
        return Err(Reason::Conflict("the name of the init container"));
    }
    let excepted = user(&config.container).unwrap_or(USER);
    if containers(spec).any(|container| user(container).or(user(spec)) == Some(excepted)) {
        return Err(Reason::Conflict("the user id of the sidecar, which the mode redirect excepts"));
    }
    let rules = [
        format!("--to={}", ports.gained),
        format!("--port={}", ports.own),
        format!("--exclude-uid={excepted}"),
    ];
    list_mut(&mut redirect, "args")?.extend(rules.map(|rule| json!(rule)));
    list_mut(spec, "initContainers")?.push(redirect);
    Ok(Addresses { listen: ports.gained, upstream: ports.own, transparent: true })
}

/// The user of the sidecar's image.
const USER: u64 = 65_532;

/// Returns the user id of a container or a pod, if it is written.
fn user(value: &Value) -> Option<u64> {
    at(value, &["securityContext", "runAsUser"]).and_then(Value::as_u64)
}
