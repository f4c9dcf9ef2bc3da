//! The deadlines of a pod: of its end, which a drain prolongs, and of a restart of its model, which it must not.

use serde_json::Value;

use crate::annotations::Annotations;
use crate::config::Config;
use crate::reason::Reason;

/// Kubernetes' default deadline.
const DEFAULT_SECONDS: i64 = 30;

/// Time beyond the drain's delay and grace: the server's own stop, and the sidecar's last commit.
const MARGIN_SECONDS: u64 = 30;

/// Maximum deadline of a restart: a hung server has no stream to finish, and its hook waits for the drain of a pod that
/// does not end.
const RESTART_MAX_SECONDS: i64 = 30;

/// The probes that restart a container.
const RESTARTING: [&str; 2] = ["startupProbe", "livenessProbe"];

/// Returns the pod's deadline as its owner wrote it.
pub(crate) fn of_pod(spec: &Value) -> i64 {
    spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(DEFAULT_SECONDS)
}

/// Raises the pod's deadline above the drain's.
pub(crate) fn raise(spec: &mut Value, config: &Config, annotations: &Annotations<'_>) -> Result<(), Reason> {
    let needed = u64::from(config.delay_seconds) + grace_seconds(config, annotations) + MARGIN_SECONDS;
    if of_pod(spec) < i64::try_from(needed).unwrap_or(i64::MAX) {
        let spec = spec.as_object_mut().ok_or(Reason::NotAPod)?;
        spec.insert("terminationGracePeriodSeconds".to_owned(), needed.into());
    }
    Ok(())
}

/// Gives the probes that restart the model a deadline of their own, so that a restart does not wait as long as the
/// pod's end. `pod` is the pod's deadline as written; `waits` is true if the preStop hook waits for the drain.
pub(crate) fn keep_restarts(container: &mut Value, pod: i64, waits: bool) {
    let seconds = if waits { pod.min(RESTART_MAX_SECONDS) } else { pod };
    for probe in RESTARTING {
        if let Some(probe) = container.get_mut(probe).and_then(Value::as_object_mut)
            && probe.get("terminationGracePeriodSeconds").is_none_or(Value::is_null)
        {
            // Kubernetes rejects less than a second here.
            probe.insert("terminationGracePeriodSeconds".to_owned(), seconds.max(1).into());
        }
    }
}

/// Returns the seconds in which streams may finish.
pub(crate) fn grace_seconds(config: &Config, annotations: &Annotations<'_>) -> u64 {
    annotations.grace_seconds.unwrap_or(config.grace_seconds).into()
}
