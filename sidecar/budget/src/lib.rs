//! Budgets: what a tenant may spend in a period, how much of it is gone, and who is to be told.
//!
//! Laws: money is exact and whole pico-units; a threshold is told of once in a period; nobody is
//! refused unless a budget says so. [`Budgets`] is a pure value: charges and times go in, notices,
//! readings and refusals come out. [`Webhook`] is the only part with a thread and a socket.

// What is promised.
mod budget;
mod period;

// What was spent, and what follows from it.
mod account;
mod budgets;
mod fleet;
mod forecast;
mod spend;
mod told;

// What leaves.
mod notice;
mod reading;

// Where it goes.
mod endpoint;
mod post;
mod signature;
mod webhook;

pub use budget::{Budget, Threshold};
pub use budgets::{Budgets, OTHER, TRACKED};
pub use endpoint::{Endpoint, EndpointError};
pub use fleet::Observed;
pub use notice::Notice;
pub use period::{DAY_US, Period, Span, day_of};
pub use reading::{Reading, Refused, tightest};
pub use signature::{SIGNATURE, Secret, SecretError};
pub use told::{Told, ToldError};
pub use webhook::{KEPT, Plan, QUEUE, Sent, Webhook};
