//! The resource that describes this process. The resource section of `otlp.md` lists the sources of each attribute.
//!
//! The variables of `k8s.*` and `service.instance.id` are read in a pod only, where Kubernetes sets
//! `KUBERNETES_SERVICE_HOST`: elsewhere a `CONTAINER_NAME` belongs to some other program.

use std::hash::{BuildHasher, RandomState};

use super::header_list::pairs;
use super::reader::Reader;
use crate::limits::{RESOURCE_ATTRIBUTES_MAX, TEXT_MAX_BYTES};
use crate::text::cut;

/// Usual names of variables of Kubernetes' downward API.
const DOWNWARD: [(&str, &[&str]); 8] = [
    ("k8s.namespace.name", &["K8S_NAMESPACE", "POD_NAMESPACE"]),
    ("k8s.pod.name", &["K8S_POD_NAME", "POD_NAME"]),
    ("k8s.pod.uid", &["K8S_POD_UID", "POD_UID"]),
    ("k8s.pod.ip", &["K8S_POD_IP", "POD_IP"]),
    ("k8s.node.name", &["K8S_NODE_NAME", "NODE_NAME"]),
    ("k8s.container.name", &["K8S_CONTAINER_NAME", "CONTAINER_NAME"]),
    ("k8s.deployment.name", &["K8S_DEPLOYMENT_NAME", "DEPLOYMENT_NAME"]),
    ("k8s.cluster.name", &["K8S_CLUSTER_NAME", "CLUSTER_NAME"]),
];

pub(super) fn resource(reader: &mut Reader<'_>) -> Vec<(String, String)> {
    let mut attributes = detected(reader);
    let variable = "OTEL_RESOURCE_ATTRIBUTES";
    let configured = match pairs(&reader.text(variable).unwrap_or_default()) {
        Ok(configured) => configured,
        Err(what) => {
            let remedy = "write it as name=value,name=value with %-codes for special characters";
            reader.error(variable, &what, remedy);
            Vec::new()
        }
    };
    let service = reader.text("OTEL_SERVICE_NAME").map(|name| ("service.name".to_owned(), name));
    for (name, value) in configured.into_iter().chain(service) {
        set(&mut attributes, &name, cut(&value, TEXT_MAX_BYTES).to_owned());
    }
    if attributes.len() > RESOURCE_ATTRIBUTES_MAX {
        let remedy = format!("set at most {RESOURCE_ATTRIBUTES_MAX} attributes");
        reader.error(variable, "has too many attributes", &remedy);
    }
    attributes
}

/// Returns the detected attributes.
fn detected(reader: &Reader<'_>) -> Vec<(String, String)> {
    let mut attributes = Vec::new();
    set(&mut attributes, "service.name", "tokenmeter".to_owned());
    set(&mut attributes, "service.version", env!("CARGO_PKG_VERSION").to_owned());
    let in_pod = reader.text("KUBERNETES_SERVICE_HOST").is_some();
    for (name, variables) in DOWNWARD.iter().filter(|_| in_pod) {
        if let Some(value) = variables.iter().find_map(|variable| reader.text(variable)) {
            set(&mut attributes, name, cut(&value, TEXT_MAX_BYTES).to_owned());
        }
    }
    let known = |name: &str| attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value);
    let instance = match (known("k8s.pod.uid"), known("k8s.container.name")) {
        (Some(pod), Some(container)) => format!("{pod}.{container}"),
        _ => random_uuid(),
    };
    set(&mut attributes, "service.instance.id", instance);
    let host = reader.text("HOSTNAME").or_else(|| {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
        Some(name.trim().to_owned()).filter(|name| !name.is_empty())
    });
    if let Some(host) = host {
        set(&mut attributes, "host.name", host);
    }
    set(&mut attributes, "process.pid", std::process::id().to_string());
    attributes
}

fn set(attributes: &mut Vec<(String, String)>, name: &str, value: String) {
    match attributes.iter_mut().find(|(known, _)| known == name) {
        Some((_, old)) => *old = value,
        None => attributes.push((name.to_owned(), value)),
    }
}

/// Returns a UUID of version 4. It must be unique, but need not be unpredictable.
fn random_uuid() -> String {
    let random = |salt: u64| RandomState::new().hash_one(salt);
    let (high, low) = (random(1) & !0xf000 | 0x4000, random(2) & (u64::MAX >> 2) | 1 << 63);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}
