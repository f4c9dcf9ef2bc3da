//! The tenant of a request: an ordered list of rules over its head and body; the first match decides.
//!
//! Laws: rules only, no I/O and no clock (the caller supplies the time). A client's value counts only if its
//! peer is trusted, its claim or its certificate is verified, or the rule explicitly trusts clients. An API key is used
//! as a keyed hash only and never stored (law 11). Names are bounded in length and memory (law 6, law 12).

mod certificate;
mod credential;
mod escape;
mod hash;
mod jwk;
mod jwt;
mod live;
mod miss;
mod name;
mod nets;
mod path;
mod request;
mod rule;
mod rules;
mod token_cache;
mod workload;

pub use certificate::{CertificateName, CertificateNames};
pub use escape::escape;
pub use hash::{HashKey, KeyHash, Purpose, ShortKeyError};
pub use jwk::{Algorithm, KeySet, KeySetError, MAX_KEYS};
pub use jwt::{Claim, Jwt, TOKEN_MAX_BYTES};
pub use live::Live;
/// Words of the observer that rules return.
pub use meter::{RuleKind, TokenRejection};
pub use miss::Miss;
pub use name::{NAME_MAX_BYTES, Name};
pub use nets::Nets;
pub use path::begins_path;
pub use request::{BodyFacts, Head, PendingTenant, Resolution, TenantIdentity};
pub use rule::{ApiKeys, BodyKey, EndUser, KEY_FIELDS, MAX_BODY_KEYS, Owner, Rule, TenantPart};
pub use rules::{Rules, Spec};

#[cfg(test)]
mod spoofing_tests;
