//! A dry run: what the injection makes of the objects of a manifest, without an API server.

use serde_json::Value;

use crate::config::{Config, ConfigError};
use crate::injection::{Injected, inject};
use crate::pod::{at, text};
use crate::reason::Reason;

/// An object with a pod, and what becomes of it.
#[derive(Clone, Debug, PartialEq)]
pub struct DryRun {
    /// Kind and name.
    pub object: String,
    /// The object with the sidecar in its pod, as YAML, and the warnings; or the reason to leave it.
    pub result: Result<(String, Vec<String>), Reason>,
}

/// Adds the sidecar to each pod and each pod template of a manifest. Other objects are skipped.
///
/// # Errors
///
/// The text is not YAML, or no object in it has a pod.
pub fn dry_run(manifest: &str, config: &Config) -> Result<Vec<DryRun>, ConfigError> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(manifest).map_err(ConfigError::of_yaml)?;
    let results = objects.iter().filter_map(|object| one(object, config)).collect::<Result<Vec<_>, _>>()?;
    if results.is_empty() {
        return Err(ConfigError("no object in it is a Pod or has a pod template".to_owned()));
    }
    Ok(results)
}

/// Reads a config: the file of the webhook, or a manifest with the ConfigMap in which the chart writes it.
///
/// # Errors
///
/// The config cannot be used.
pub fn config(file: &str) -> Result<Config, ConfigError> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(file).map_err(ConfigError::of_yaml)?;
    let map = objects.iter().find_map(|object| text(object, &["data", "injection.yaml"]));
    Config::parse(map.unwrap_or(file))
}

fn one(object: &Value, config: &Config) -> Option<Result<DryRun, ConfigError>> {
    let is_pod = text(object, &["kind"]) == Some("Pod");
    let pod = if is_pod { object } else { at(object, &["spec", "template"])? };
    at(pod, &["spec", "containers"])?;
    let name = |path| text(object, path).unwrap_or("?");
    let result = inject(pod, config).map(|Injected { pod, warnings }| {
        let mut changed = object.clone();
        if is_pod {
            changed = pod;
        } else {
            changed["spec"]["template"] = pod;
        }
        (changed, warnings)
    });
    let result = match result {
        Ok((changed, warnings)) => match serde_saphyr::to_string(&changed) {
            Ok(yaml) => Ok((yaml, warnings)),
            Err(error) => return Some(Err(ConfigError(error.to_string()))),
        },
        Err(reason) => Err(reason),
    };
    Some(Ok(DryRun { object: format!("{} {}", name(&["kind"]), name(&["metadata", "name"])), result }))
}
