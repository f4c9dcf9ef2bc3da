//! The sidecar's container: the config's template with the parts of one pod.

use serde_json::{Value, json};

use crate::annotations::Annotations;
use crate::config::Config;
use crate::deadline;
use crate::pod::{list, list_mut, map_mut, text};
use crate::reason::Reason;
use crate::server::Server;

/// The addresses of the proxy in a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Addresses {
    /// The port on which the sidecar listens.
    pub(crate) listen: u16,
    /// The port on which the server listens.
    pub(crate) upstream: u16,
    /// True if rules redirect the connections: the sidecar then refuses to start if they catch its own.
    pub(crate) transparent: bool,
}

/// Adds the sidecar and its volumes to a pod.
pub(crate) fn add(
    spec: &mut Value,
    config: &Config,
    annotations: &Annotations<'_>,
    server: &Server,
    addresses: Addresses,
) -> Result<(), Reason> {
    let mut container = config.container.clone();
    let mut volumes = config.volumes.clone();
    let mut set = |name: &str, value: &str| set_variable(&mut container, name, value);
    set("TOKENMETER_LISTEN", &format!("{}:{}", config.address, addresses.listen))?;
    set("TOKENMETER_UPSTREAM", &format!("http://127.0.0.1:{}", addresses.upstream))?;
    if addresses.transparent {
        set("TOKENMETER_TRANSPARENT", "true")?;
    }
    set("TOKENMETER_KIND", annotations.kind.unwrap_or(&server.name))?;
    set("TOKENMETER_DRAIN_GRACE_MS", &(deadline::grace_seconds(config, annotations) * 1000).to_string())?;
    for (name, value) in [("TOKENMETER_USAGE", annotations.usage), ("TOKENMETER_ROLE", annotations.role)] {
        if let Some(value) = value {
            set(name, value)?;
        }
    }
    let files = [
        ("prices", "TOKENMETER_PRICES", annotations.prices),
        ("tenants", "TOKENMETER_TENANTS", annotations.tenants),
    ];
    for (name, variable, config_map) in files {
        if let Some(config_map) = config_map {
            let volume = format!("tokenmeter-pod-{name}");
            let folder = format!("/etc/tokenmeter/pod-{name}");
            set_variable(&mut container, variable, &format!("{folder}/{name}.yaml"))?;
            list_mut(&mut container, "volumeMounts")?
                .push(json!({"name": volume, "mountPath": folder, "readOnly": true}));
            volumes.push(json!({"name": volume, "configMap": {"name": config_map}}));
        }
    }
    let fields = container.as_object_mut().ok_or(Reason::NotAPod)?;
    if let Some(image) = annotations.image {
        fields.insert("image".to_owned(), image.into());
    }
    if config.native {
        fields.insert("restartPolicy".to_owned(), "Always".into());
    } else {
        fields.remove("restartPolicy");
    }
    let names = |volume: &Value| text(volume, &["name"]).map(str::to_owned);
    let taken: Vec<_> = list(spec, "volumes").iter().map(names).collect();
    if volumes.iter().any(|volume| taken.contains(&names(volume))) {
        return Err(Reason::Conflict("the name of a volume of the sidecar"));
    }
    if !volumes.is_empty() {
        list_mut(spec, "volumes")?.extend(volumes);
    }
    // Last: the sidecar's start gates the model only, and other sidecars stop after it.
    let list = if config.native { "initContainers" } else { "containers" };
    list_mut(spec, list)?.push(container);
    Ok(())
}

/// Sets a variable, in place of the template's.
fn set_variable(container: &mut Value, name: &str, value: &str) -> Result<(), Reason> {
    let env = list_mut(container, "env")?;
    env.retain(|entry| text(entry, &["name"]) != Some(name));
    env.push(json!({"name": name, "value": value}));
    Ok(())
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

/// Ports below this need a privilege, which the sidecar lacks.
const UNPRIVILEGED: u16 = 1024;

/// The sysctl that lowers that bound for the pod; Kubernetes lists it as safe.
const SYSCTL: &str = "net.ipv4.ip_unprivileged_port_start";
