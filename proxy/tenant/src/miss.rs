//! The reasons that a rule did not match. Counters and logs contain these words only, never the values sent:
//! a token that is invalid here may be valid at another service.

use meter::TokenRejection;

/// The reason that a rule did not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Miss {
    /// The request lacks the value.
    Absent,
    /// The client presented no certificate.
    NoCertificate,
    /// The header field is present, but the peer is not trusted.
    Untrusted,
    /// The header field, or the kind of name in the certificate, occurs more than once.
    Repeated,
    /// The value cannot be a name.
    InvalidName,
    /// The rule lists none of the keys.
    UnknownKey,
    /// The token was rejected; of several the one that passed most checks.
    Token(TokenRejection),
    /// The path or the peer differs.
    Mismatch,
    /// The rule needs the body, which was not read. Later rules are not tried.
    BodyUnread,
}
