//! Metrics, traces and logs to an OpenTelemetry collector. The only crate that knows OpenTelemetry.
//!
//! [`settings::resolve`] makes a [`Plan`] of the standard variables, [`start`] takes it and begins to
//! send: one thread, a loop for each signal. Finished exchanges come in through [`Exporter::submit`],
//! which never waits; metrics are read when they are due. What became of every item is told by
//! [`Exporter::counts`].
//!
//! In the order of an item's life: `finished`, `span`, `log` and `metric` say it in the protocol's
//! messages, `queue` holds it, `exporter` takes it out, `sender` tries until it is taken, refused or
//! out of time, `transport` makes one attempt.
//!
//! Laws: nothing of a prompt or an answer goes out. Every queue, text, reply and wait has a bound
//! ([`limits`]). made = sent + dropped + queued, at every moment and for each signal.
//!
//! The protocol's messages are `opentelemetry-proto`'s; the names of the variables and their defaults
//! are `opentelemetry-otlp`'s and the SDK's, where these have them. The exporters of
//! `opentelemetry-otlp` are not used: they read the environment for themselves, try again by rules of
//! their own, keep a partial rejection to themselves, and take neither metrics nor log records that
//! were made elsewhere. So that all three signals have one way out with exact counts, that way is
//! here, over hyper and tonic. What goes out by it is what those exporters send: `tests/otlp/official.rs`
//! gives them the same spans, numbers and log records and compares.

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
mod sender;

mod connect;
mod tls;
mod transport;

pub use charge::Charge;
pub use counts::{Counts, Durations, SignalCounts};
pub use exporter::{Exporter, start};
pub use finished::{Energy, Finished, route};
pub use metrics::Upstream;
pub use plan::{ClientCertificate, EventName, Histograms, Periodic, Plan, Protocol, Queued, Signal, Target};

/// How we name ourselves to collectors.
const USER_AGENT: &str = concat!("tokenmeter/", env!("CARGO_PKG_VERSION"));
