//! Export of metrics, traces and logs to an OpenTelemetry collector. No other crate depends on OpenTelemetry.
//!
//! [`settings::resolve`] makes a [`Plan`] from the standard variables, and [`start`] starts the export thread with a
//! loop for each signal. [`Exporter::submit`] queues finished exchanges and never waits; metrics are read once per
//! interval. [`Exporter::counts`] returns the outcome of every item.
//!
//! In the order of an item's life: `finished`, `span`, `log` and `metric` build the protocol's messages, `queue` holds
//! items, `exporter` takes them out, `sender` retries until they are accepted, rejected or too late, `transport` makes
//! one attempt.
//!
//! Invariants: no text of a prompt or a response is exported. Every queue, text, response and wait is bounded
//! ([`limits`]). made = sent + dropped + queued, at every moment and for each signal.
//!
//! The protocol's messages come from `opentelemetry-proto`, the names of variables and their defaults from
//! `opentelemetry-otlp` and the SDK, if these have them. The exporters of `opentelemetry-otlp` are not used: they read
//! the environment themselves, retry by their own rules, do not report a partial rejection, and accept neither metrics
//! nor log records of other origin. All three signals therefore share this exporter over hyper and tonic, with exact
//! counts. `tests/otlp/official.rs` compares its requests with those of the official exporters.

pub mod limits;
pub mod plan;
pub mod settings;

mod attributes;
mod charge;
mod finished;
mod log;
mod metric;
mod span;
mod text;

mod counts;
mod exporter;
mod queue;
mod samples;
mod sender;

mod connector;
mod transport;

pub use charge::Charge;
pub use counts::{Counts, Durations, SignalCounts};
pub use exporter::{Exporter, start};
pub use finished::{Energy, Finished};
pub use metrics::Upstream;
pub use plan::{
    ClientCertificate, Detail, EventName, Histograms, Periodic, Plan, Protocol, Queued, Signal, Target,
};

/// The `User-Agent` of requests to collectors.
const USER_AGENT: &str = concat!("tokenmeter/", env!("CARGO_PKG_VERSION"));
