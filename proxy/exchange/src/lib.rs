//! The metering of one exchange, without HTTP engine, clock and thread: its bytes in, one record out.
//!
//! Modules in the order of an exchange:

pub mod path;
pub mod role;
pub mod route;

pub mod model;
pub mod request_reader;
pub mod request_state;

pub mod header_facts;
pub mod names;
pub mod response_reader;
pub mod seal;
pub mod tenant;
pub mod usage_policy;

pub use self::tenant::{RequestHead, RuleMembers, TenantResolution};
pub use role::RoleSource;
pub use route::{Route, Speaks, begins_batch, route};
pub use seal::is_sealed;
pub use usage_policy::{CONVERSATION_ID, Question, UpstreamFacts, keeps_conversations};
