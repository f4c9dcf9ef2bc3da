//! Whose a request is: an ordered list of rules over what its head and body say, first hit wins.
//!
//! Laws: rules only, no I/O and no clock (the time is handed in); nothing that a client can write
//! counts unless its peer is trusted, its claim verified or the rule says in so many words that
//! clients are believed; an API key is seen as a keyed hash and nowhere kept (law 11); names are
//! bounded in length and in the memory they take (law 6, law 12).

mod asked;
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
mod rule;
mod rules;
mod verdicts;

pub use asked::{BodyFacts, Head, Pending, RuleKind, Said, Who};
pub use escape::escape;
pub use hash::{HashKey, KeyHash, Purpose, WeakKey};
pub use jwk::{Algorithm, KEYS_MOST, KeySet, NotKeys};
pub use jwt::{Claim, Jwt, TOKEN_BYTES};
pub use live::Live;
pub use miss::{Distrust, Miss};
pub use name::{NAME_BYTES, Name};
pub use nets::Nets;
pub use path::begins_path;
pub use rule::{ApiKeys, BodyKey, EndUser, KEY_FIELDS, Owner, Rule};
pub use rules::{Rules, Spec};

#[cfg(test)]
mod spoofing_tests;
