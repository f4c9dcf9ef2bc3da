//! An AdmissionReview and its answer, which always admits the pod.

use std::panic::{AssertUnwindSafe, catch_unwind};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::annotations;
use crate::config::Config;
use crate::injection::{Injected, inject};
use crate::pod::text;
use crate::reason::{Reason, bounded};
use crate::review_json::{self, Unread, VALUES_MAX};

/// The answer to a review.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The AdmissionReview to return.
    pub review: Value,
    /// `injected`, the reason's name, or `failed`.
    pub outcome: &'static str,
    /// The pod as the log names it.
    pub pod: String,
}

/// The reason why a body has no answer. The API server then applies the webhook's `failurePolicy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// It is not an AdmissionReview v1.
    #[error("the body is not an AdmissionReview of admission.k8s.io/v1 with a request and its uid")]
    NotAReview,
    /// Its pod has too many JSON values.
    #[error("the pod has more than {VALUES_MAX} JSON values in its spec, labels and annotations")]
    TooManyValues,
}

/// Maximum bytes of a uid; Kubernetes' have 36.
const UID_MAX_BYTES: usize = 256;

/// Maximum bytes of the pod's name in the log.
const NAME_MAX_BYTES: usize = 512;

/// Answers a review. A body that is passed by value is freed before the answer is made.
///
/// # Errors
///
/// There is no request to answer, or it is too large.
pub fn answer(body: impl AsRef<[u8]>, config: &Config) -> Result<Answer, Unanswered> {
    let review = review_json::read(body.as_ref());
    drop(body);
    let review = review.map_err(|why| match why {
        Unread::NotJson => Unanswered::NotAReview,
        Unread::TooManyValues => Unanswered::TooManyValues,
    })?;
    let is_v1 = text(&review, &["apiVersion"]) == Some("admission.k8s.io/v1")
        && text(&review, &["kind"]) == Some("AdmissionReview");
    let uid = text(&review, &["request", "uid"]).filter(|uid| is_v1 && uid.len() <= UID_MAX_BYTES);
    let uid = uid.ok_or(Unanswered::NotAReview)?;
    let request = review.get("request").unwrap_or(&Value::Null);
    // A panic is a fault of this program, and no reason to stop a rollout.
    let admitted = catch_unwind(AssertUnwindSafe(|| admit(request, config)));
    let (patch, warnings, outcome) = admitted.unwrap_or_else(|_| {
        (None, vec!["tokenmeter: internal error, the pod is not metered".to_owned()], "failed")
    });
    let mut response = json!({"uid": uid, "allowed": true});
    if let Some(patch) = patch {
        response["patchType"] = "JSONPatch".into();
        response["patch"] = STANDARD.encode(patch).into();
    }
    if !warnings.is_empty() {
        response["warnings"] = warnings.into();
    }
    let name = text(request, &["name"]).filter(|name| !name.is_empty());
    let name = name.or_else(|| text(request, &["object", "metadata", "generateName"])).unwrap_or_default();
    let namespace = text(request, &["namespace"]).unwrap_or_default();
    Ok(Answer {
        review: json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}),
        outcome,
        pod: bounded(&format!("{namespace}/{name}"), NAME_MAX_BYTES),
    })
}

fn prefixed(warnings: Vec<String>) -> impl Iterator<Item = String> {
    warnings.into_iter().map(|warning| format!("tokenmeter: {warning}"))
}

/// Returns the patch, the warnings and the outcome of a request.
fn admit(request: &Value, config: &Config) -> (Option<Vec<u8>>, Vec<String>, &'static str) {
    let pod = request.get("object").unwrap_or(&Value::Null);
    let injected = if text(request, &["operation"]) != Some("CREATE") {
        Err(Reason::NotCreated)
    } else if text(request, &["kind", "kind"]) != Some("Pod") {
        Err(Reason::NotAPod)
    } else {
        inject(pod, config)
    };
    match injected {
        Ok(Injected { pod: changed, warnings }) => {
            let patch = serde_json::to_vec(&json_patch::diff(pod, &changed)).ok();
            (patch, prefixed(warnings).collect(), "injected")
        }
        Err(reason) => {
            let is_labelled = text(pod, &["metadata", "labels", "tokenmeter.io/inject"]) == Some("true");
            let mut warnings = Vec::new();
            if reason.warns(is_labelled) {
                warnings.push(format!("tokenmeter: not metered: {reason}"));
                // A misspelt name may be the cause.
                warnings.extend(prefixed(annotations::unknown(pod)));
            }
            (None, warnings, reason.name())
        }
    }
}
