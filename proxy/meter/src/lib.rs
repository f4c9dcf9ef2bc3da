//! Turns events and ticks into one record per exchange. Plain values: no clock, no I/O, fixed memory per
//! exchange. The caller supplies the time at which bytes were read.
//!
//! Modules in the order of an exchange:

pub mod body;
pub mod close;
mod disagreement;
pub mod edges;
pub mod ending;
mod error_type;
pub mod exchange;
mod exchange_id;
mod gaps;
mod limits;
pub mod load;
pub mod observer;
mod position;
mod prompt;
pub mod rate_limits;
pub mod record;
pub mod role;
mod rule_kind;
mod server_kind;
pub mod tick;
mod token_rejection;
pub mod tokens;
pub mod trace;
mod track;
mod usage_list;
mod usage_reading;
mod usage_resolver;

pub use body::Body;
pub use close::Close;
pub use disagreement::Disagreement;
pub use ending::Ending;
pub use error_type::ErrorType;
pub use exchange::{EnginePrompt, EngineStep, Meter, MeterSink};
pub use exchange_id::ExchangeId;
pub use load::{Load, LoadReading, LoadSpan};
pub use observer::{Class, Dropped, ModelSlot, Observer, Passthrough, Refusal, Stated, UsageStep};
pub use rate_limits::{Quota, QuotaReading, RateLimits};
pub use record::{
    DEFAULT_TENANT, Gaps, Identity, MAX_REQUEST_ID_BYTES, Record, Span, StreamPace, Timing, Weight,
    is_processed,
};
pub use role::Role;
pub use rule_kind::RuleKind;
/// Declares an enum with the list of its variants and their names.
pub use scan::{is_standard_tier, listed_enum};
pub use server_kind::ServerKind;
pub use tick::Tick;
pub use token_rejection::TokenRejection;
pub use tokens::{Provenance, TokenType, Tokens};
pub use trace::{Spans, Trace};

#[cfg(test)]
mod engine_tests;
#[cfg(test)]
mod record_tests;
#[cfg(test)]
mod source_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod usage_list_tests;
#[cfg(test)]
mod usage_reading_tests;
#[cfg(test)]
mod usage_resolver_tests;
