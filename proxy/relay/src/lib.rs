//! The data plane's only HTTP: accept, forward, tee, cancel, drain. It knows which requests are
//! metered and shows them to the meter as they pass; it changes nothing of what passes but what the
//! plan asks for, delays nothing, and cancels the upstream the moment the client is gone.
//!
//! [`start()`] binds the plan's addresses and starts the workers; [`Running`] ends them. In the
//! order of the path of a byte: [`worker`] accepts, the [`engine`] serves the connection,
//! [`policy`] refuses what is ambiguous, [`route`] names the dialect, [`headers`] ends what belongs
//! to one hop, the tenancy says whose a request is and the [`gate`] whether it may spend, [`trace`] finds the request's place among others, the engine's tee shows the body to
//! the [`exchange`], and the [`mod@outbox`] takes the record.

pub mod start;

pub mod plan;
pub mod worker;

pub mod answer;
pub mod engine;
pub mod headers;
mod path;
pub mod policy;
pub mod route;

pub mod chance;
pub mod clock;
pub mod exchange;
mod metered;

mod asked;
mod asking;
pub mod gate;
mod holder;
pub mod kind;
pub mod learned;
pub mod observer;
pub mod outbox;
mod reader;
pub mod role;
mod room;
mod said;
mod shape;
pub mod shares;
mod tenancy;
pub mod trace;
pub mod turned;

mod drain;
pub mod limits;
mod listen;

pub use exchange::{Exchange, Head};
pub use gate::{Gap, Gate, Models, Refused, Terms, UnknownPaths, Wanted};
pub use kind::Kind;
pub use learned::Learned;
pub use observer::{Class, Dropped, ModelSlot, Observer, Passthrough, Refusal, UsageStep};
pub use outbox::{Finished, Inbox, Missed, Notice, Outbox, Text, Told, outbox};
pub use plan::{Plan, Upstream};
pub use role::RoleSource;
pub use shares::Shares;
pub use start::{Held, HeldOf, Running, StartError, start};
/// How a request's tenant was decided.
pub use tenant::{Distrust, RuleKind};
pub use trace::{Draw, Sampler, Tracing};
pub use turned::{Known, TurnedAway};
