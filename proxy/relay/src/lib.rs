//! The data plane's only HTTP: accept, forward, tee, cancel, drain. It passes metered requests and their responses to
//! the meter. It changes nothing of what it forwards except as the plan says, delays nothing, and cancels the upstream
//! request the moment the client is gone.
//!
//! [`start()`] binds the plan's addresses and starts the workers; [`Running`] stops them. In the order of the path of a
//! byte: `worker` accepts a connection, `wire` reads and writes it by its protocol, `request` and `response` decide, `carry`
//! moves the bytes and passes them to the `metering`, and the [`mod@outbox`] takes the record.

pub mod start;

pub mod plan;
mod worker;

mod carry;
mod conn;
mod connections;
mod contained;
mod metering;
mod request;
mod response;
mod session;
mod state;
mod sweep;
#[doc(hidden)]
pub mod testing;
mod watched;
mod wire;

mod capacity;
mod claims;
mod client_certificate;
pub mod clock;
mod control;
mod drain;
pub mod gate;
mod holder;
pub mod limits;
mod listen;
pub mod outbox;
mod redirected;
pub mod rejection;
pub mod shares;
pub mod upstream_profile;

pub use client_certificate::certificate_names;
pub use control::Control;
pub use exchange::RoleSource;
pub use gate::{Gap, Gate, Models, Refused, RequestedModel, Terms, UnknownPaths};
pub use meter::observer::{Class, Dropped, ModelSlot, Observer, Passthrough, Refusal, UsageStep};
pub use meter::{RuleKind, ServerKind, TokenRejection};
pub use metering::trace::{Draw, Sampler, Tracing};
pub use outbox::{Finished, Inbox, Notice, OnFull, Outbox, ReportedRejection, Text, outbox};
pub use plan::{Listen, ListenAddress, Plan, Upstream};
pub use rejection::{Known, Rejection};
pub use shares::Shares;
pub use start::{BoundListener, CapacityReading, CapacityUse, Running, StartError, start};
pub use upstream_profile::UpstreamProfile;
pub use usage::Policy as UsagePolicy;

pub(crate) use metering::Metering;
