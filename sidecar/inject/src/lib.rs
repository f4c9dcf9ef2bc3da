//! Admission of pods: a pod becomes the same pod with the sidecar, or there is a reason to leave it.
//!
//! [`inject`] is a pure function of a pod and a [`Config`]; [`review`] wraps it in an AdmissionReview; [`webhook`]
//! serves that over HTTPS. The same changes as expressions of a policy are in `helm/tokenmeter/templates/injection`.
//!
//! Invariant: every pod is admitted. For any JSON, a pod is changed as a whole or not at all.

mod annotations;
mod config;
mod deadline;
pub mod dry_run;
mod injection;
mod named_port;
mod pod;
mod port;
mod probes;
mod reason;
mod redirect;
pub mod review;
mod review_json;
mod server;
mod sidecar;
mod takeover;
pub mod webhook;

pub use annotations::{KINDS, NAMES, ROLES, USAGES};
pub use config::{Config, ConfigError};
pub use injection::{Injected, inject};
pub use reason::Reason;
pub use server::{EnvForm, Server};
