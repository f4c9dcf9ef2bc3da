//! Events and ticks to one record per exchange. Plain values: no clock, no I/O, fixed memory per
//! exchange. The caller says when bytes were read; the meter says what that means.
//!
//! Modules in the order of an exchange's life:

pub mod body;
pub mod close;
pub mod edges;
pub mod ending;
mod error_type;
pub mod exchange;
mod exchange_id;
mod gaps;
mod ladder;
pub mod load;
mod position;
pub mod record;
pub mod role;
pub mod tick;
pub mod tokens;
pub mod trace;
mod track;

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
mod ladder_tests;
#[cfg(test)]
mod record_tests;
#[cfg(test)]
mod source_tests;
#[cfg(test)]
mod tests;
