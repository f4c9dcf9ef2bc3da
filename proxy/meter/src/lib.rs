//! Turns events and ticks into one record per exchange. Plain values: no clock, no I/O, fixed memory per
//! exchange. The caller supplies the time at which bytes were read.
//!
//! Modules in the order of an exchange:

pub mod body;
pub mod close;
pub mod edges;
pub mod ending;
mod error_type;
pub mod exchange;
mod exchange_id;
mod gaps;
pub mod load;
mod position;
pub mod record;
pub mod role;
pub mod tick;
pub mod tokens;
pub mod trace;
mod track;
mod usage_resolver;

pub use body::Body;
pub use close::Close;
pub use ending::Ending;
pub use error_type::ErrorType;
pub use exchange::{Meter, Reading};
pub use exchange_id::ExchangeId;
pub use load::{Load, LoadReading, LoadSpan};
pub use record::{
    DEFAULT_TENANT, Gaps, Identity, MAX_REQUEST_ID_BYTES, Record, Span, Timing, Weight, is_processed,
};
pub use role::Role;
pub use tick::Tick;
pub use tokens::{Provenance, TokenType, Tokens};
pub use trace::{Spans, Trace};

#[cfg(test)]
mod record_tests;
#[cfg(test)]
mod source_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod usage_resolver_tests;
