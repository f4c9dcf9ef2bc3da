//! Budgets: spending limits of tenants per period, the spend under them, alerts and rejections.
//!
//! Laws: money is exact, in whole pico-units; each threshold is sent once per period; requests are
//! rejected only by an enforced budget. [`Budgets`] is pure: charges and times go in; notices,
//! states and rejections come out. [`Webhook`] is the only part with a thread and a socket.

// Definition.
mod budget;
mod period;

// Spend and its evaluation.
mod alert_state;
mod budgets;
mod fleet;
mod forecast;
mod sent_alerts;
mod spend;

// Output.
mod notice;
mod state;

// Delivery.
mod signature;
mod webhook;

pub use agent::{Endpoint, EndpointError};
pub use budget::{Budget, Threshold};
pub use budgets::{Budgets, OTHER, TRACKED_MAX_TENANTS};
pub use calendar::{Calendar, DAY_US, Zone};
pub use fleet::Observed;
pub use notice::Notice;
pub use period::{Period, Span, day_of};
pub use sent_alerts::{SentAlerts, SentAlertsError};
pub use signature::{SIGNATURE, Secret, SecretError};
pub use state::{BudgetState, Rejection, tightest};
pub use webhook::{Plan, QUEUE_MAX_ITEMS, RETRY_MAX_ITEMS, Webhook, WebhookCounts};
