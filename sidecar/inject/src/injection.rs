//! One pod: it gets the sidecar, or there is a reason to leave it.

use serde_json::Value;

use crate::annotations::{self, Annotations, Mode};
use crate::config::Config;
use crate::pod::{CONTAINER, containers, list, map_mut, text};
use crate::reason::Reason;
use crate::{deadline, named_port, port, probes, redirect, server, sidecar, takeover};

/// A pod with the sidecar.
#[derive(Clone, Debug, PartialEq)]
pub struct Injected {
    /// The pod.
    pub pod: Value,
    /// Facts that its owner should know.
    pub warnings: Vec<String>,
}

/// Adds the sidecar to a pod.
///
/// # Errors
///
/// The pod is to be left as it is, for the returned reason.
pub fn inject(pod: &Value, config: &Config) -> Result<Injected, Reason> {
    let spec = pod.get("spec").filter(|spec| spec.is_object()).ok_or(Reason::NotAPod)?;
    if list(spec, "containers").is_empty() {
        return Err(Reason::NotAPod);
    }
    if text(pod, &["metadata", "labels", "tokenmeter.io/inject"]) == Some("false") {
        return Err(Reason::OptedOut);
    }
    if containers(spec).any(|container| text(container, &["name"]) == Some(CONTAINER)) {
        return Err(Reason::Already);
    }
    if spec.get("hostNetwork") == Some(&Value::Bool(true)) {
        return Err(Reason::HostNetwork);
    }
    if text(spec, &["os", "name"]) == Some("windows") {
        return Err(Reason::Windows);
    }
    let annotations = Annotations::read(pod)?;
    let (index, server) = server::find(spec, config, annotations.container)?;
    let container = list(spec, "containers").get(index).ok_or(Reason::NotAPod)?;
    let ports = port::read(spec, container, server, &annotations, config)?;
    probes::check_scheme(container, ports)?;

    let name = text(container, &["name"]).unwrap_or_default();
    let mut changed = container.clone();
    let mut warnings = annotations::unknown(pod);
    let mut pod = pod.clone();
    let spec = pod.get_mut("spec").ok_or(Reason::NotAPod)?;
    let addresses = match annotations.mode {
        Mode::Takeover => takeover::apply(&mut changed, server, ports, &annotations)?,
        Mode::NamedPort => named_port::apply(&mut changed, ports)?,
        Mode::Redirect => redirect::apply(spec, config, ports)?,
    };
    let waits = probes::add_pre_stop(&mut changed, config.admin_port())?;
    deadline::keep_restarts(&mut changed, deadline::of_pod(spec), waits);
    if !waits {
        warnings.push(format!(
            "container {name} keeps its preStop hook; its server may stop before its streams have ended"
        ));
    }
    *spec.get_mut("containers").and_then(|all| all.get_mut(index)).ok_or(Reason::NotAPod)? = changed;
    sidecar::add(spec, config, &annotations, server, addresses)?;
    deadline::raise(spec, config, &annotations)?;
    sidecar::allow_port(spec, addresses.listen)?;

    let status = status(annotations.mode, name, addresses);
    map_mut(&mut pod, "metadata")?;
    let metadata = pod.get_mut("metadata").ok_or(Reason::NotAPod)?;
    map_mut(metadata, "labels")?.insert("tokenmeter.io/injected".to_owned(), "true".into());
    map_mut(metadata, "annotations")?.insert("tokenmeter.io/status".to_owned(), status.into());
    Ok(Injected { pod, warnings })
}

/// Returns the value of the annotation `tokenmeter.io/status`.
fn status(mode: Mode, container: &str, addresses: sidecar::Addresses) -> String {
    let version = env!("CARGO_PKG_VERSION");
    // Written in the order of the policy's text, and not as a map: both write the same bytes.
    format!(
        "{{\"version\":\"{version}\",\"mode\":\"{}\",\"container\":{},\"port\":{},\"server_port\":{}}}",
        mode.name(),
        Value::from(container),
        addresses.listen,
        addresses.upstream
    )
}
