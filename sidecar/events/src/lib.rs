//! Usage events: one CloudEvent for each exchange of the ledger, posted to a metering or billing system.
//!
//! Laws: an event is sent at least once, and its id is that of the exchange, so that the receiver keeps it once. The
//! ledger and a cursor determine the next batch, and only this batch is in memory. A receiver that fails delays nothing
//! but events.

mod batch;
mod cursors;
mod event;
mod sender;
mod status;

pub use agent::Endpoint;
pub use event::{EVENT_SOURCE, EVENT_TYPE, event};
pub use sender::{BATCH_MAX_EVENTS, Plan, Sender, StatusReader, Token, start};
pub use status::{Reason, Status};
