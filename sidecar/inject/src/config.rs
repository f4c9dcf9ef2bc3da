//! The injection config: what the operator offers to every pod.

use serde::Deserialize;
use serde_json::Value;

use crate::pod::CONTAINER;
use crate::server::Server;

/// The injection config. The chart writes it, for the webhook and for the policy.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The sidecar, a corev1.Container without the parts that differ between pods.
    pub container: Value,
    /// The pod volumes of the sidecar.
    #[serde(default)]
    pub volumes: Vec<Value>,
    /// True for a native sidecar (Kubernetes 1.29), false for a plain container.
    pub native: bool,
    /// The address of the sidecar's listener: 0.0.0.0, or [::] for IPv6 and IPv4.
    #[serde(default = "ipv4")]
    pub address: String,
    /// The port that a pod gains: a server moves there, or the sidecar listens there.
    pub server_port: u16,
    /// Seconds in which streams may finish while the pod stops.
    pub grace_seconds: u32,
    /// Seconds before the drain, in which requests still arrive.
    #[serde(default)]
    pub delay_seconds: u32,
    /// The init container of the mode `redirect`, if it is offered.
    #[serde(default)]
    pub redirect: Option<Value>,
    /// Words of vendors and platforms, without digits at their end, that may surround a server's name in an image's name.
    #[serde(default)]
    pub platforms: Vec<String>,
    /// The known servers.
    pub servers: Vec<Server>,
}

fn ipv4() -> String {
    "0.0.0.0".to_owned()
}

/// The error of a config that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub(crate) String);

impl ConfigError {
    #[expect(clippy::needless_pass_by_value, reason = "used by map_err")]
    pub(crate) fn of_yaml(error: serde_saphyr::Error) -> Self {
        Self(error.without_snippet().to_string())
    }
}

/// Maximum grace: a day. The pod's deadline in seconds stays far below its maximum.
pub(crate) const GRACE_MAX_SECONDS: u32 = 86_400;

/// Maximum delay: an hour.
const DELAY_MAX_SECONDS: u32 = 3_600;

impl Config {
    /// Parses and checks a config.
    ///
    /// # Errors
    ///
    /// The text is not YAML of this shape, or a pod with its parts would be invalid.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let config: Self = serde_saphyr::from_str(text).map_err(ConfigError::of_yaml)?;
        config.check().map_err(|message| ConfigError(message.to_owned()))?;
        Ok(config)
    }

    fn check(&self) -> Result<(), &'static str> {
        let names = |value: &Value| value.get("name").and_then(Value::as_str).map(str::to_owned);
        if names(&self.container).as_deref() != Some(CONTAINER) {
            return Err("container: its name must be tokenmeter");
        }
        if self.volumes.iter().any(|volume| names(volume).is_none()) {
            return Err("volumes: each needs a name");
        }
        if self.redirect.as_ref().is_some_and(|redirect| names(redirect).is_none()) {
            return Err("redirect: it needs a name");
        }
        if !["0.0.0.0", "[::]"].contains(&self.address.as_str()) {
            return Err("address: must be 0.0.0.0 or [::]");
        }
        if self.server_port < 1024 || self.server_port > u16::MAX - 10 {
            return Err("server_port: must be between 1024 and 65525");
        }
        if self.grace_seconds > GRACE_MAX_SECONDS {
            return Err("grace_seconds: must be at most 86400");
        }
        if self.delay_seconds > DELAY_MAX_SECONDS {
            return Err("delay_seconds: must be at most 3600");
        }
        if self.servers.iter().any(|server| server.port_flags.is_empty() && server.port_env.is_empty()) {
            return Err("servers: each needs port_flags or port_env");
        }
        Ok(())
    }

    /// Returns the port of the admin address: of the entry `tm-admin`, or 9464.
    pub(crate) fn admin_port(&self) -> u16 {
        let ports = self.container.get("ports").and_then(Value::as_array);
        let named = |port: &&Value| port.get("name").and_then(Value::as_str) == Some("tm-admin");
        let number = |port: &Value| u16::try_from(port.get("containerPort")?.as_u64()?).ok();
        ports.and_then(|ports| ports.iter().find(named)).and_then(number).unwrap_or(9464)
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
