//! Named-port move: the name of the server's port leads to the sidecar, and the server stays.

use serde_json::Value;

use crate::pod::{list_mut, text};
use crate::port::Ports;
use crate::probes;
use crate::reason::Reason;
use crate::sidecar::Addresses;

/// Gives the port's name to the sidecar. The entry stays in the model's container, where Services of every version of
/// Kubernetes find it.
pub(crate) fn apply(container: &mut Value, ports: Ports) -> Result<Addresses, Reason> {
    probes::rewrite(container, ports, ports.own);
    let entries = list_mut(container, "ports")?;
    let mut moved = false;
    for entry in entries.iter_mut().filter(|entry| text(entry, &["name"]).is_some()) {
        let number = entry.get("containerPort").and_then(Value::as_u64);
        if number == Some(ports.own.into()) || number == Some(ports.public.into()) {
            let entry = entry.as_object_mut().ok_or(Reason::NotAPod)?;
            entry.insert("containerPort".to_owned(), ports.gained.into());
            moved = true;
        }
    }
    if moved {
        Ok(Addresses { listen: ports.gained, upstream: ports.own, transparent: false })
    } else {
        Err(Reason::Mode("the mode named-port needs a name for the server's port in its container's ports"))
    }
}
