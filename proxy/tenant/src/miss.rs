//! The reasons that a rule did not match. Counters and logs contain these words only, never the values sent:
//! a token that is invalid here may be valid at another service.

/// The reason a token was rejected, in the order of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Distrust {
    /// It is no readable token: a part is malformed, or it has `crit`.
    Malformed,
    /// Its algorithm is not allowed, or is `none`.
    Algorithm,
    /// There is no key with its id, or no key yet.
    UnknownKey,
    /// No key verifies its signature.
    Signature,
    /// Its issuer is not allowed.
    Issuer,
    /// Its audience is not allowed.
    Audience,
    /// It has no `exp`, or an invalid time.
    Times,
    /// Its tenant claim is missing, or cannot be a name.
    Tenant,
    /// It is not valid yet.
    Early,
    /// It has expired.
    Expired,
}

impl Distrust {
    /// All reasons, in the order of their indices.
    pub const ALL: [Self; 10] = [
        Self::Malformed,
        Self::Algorithm,
        Self::UnknownKey,
        Self::Signature,
        Self::Issuer,
        Self::Audience,
        Self::Times,
        Self::Tenant,
        Self::Early,
        Self::Expired,
    ];

    /// The label value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Algorithm => "algorithm",
            Self::UnknownKey => "unknown_key",
            Self::Signature => "signature",
            Self::Issuer => "issuer",
            Self::Audience => "audience",
            Self::Times => "times",
            Self::Tenant => "tenant",
            Self::Early => "early",
            Self::Expired => "expired",
        }
    }
}

/// The reason that a rule did not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Miss {
    /// The request lacks the value.
    Absent,
    /// The header field is present, but the peer is not trusted.
    Untrusted,
    /// The header field occurs more than once.
    Repeated,
    /// The value cannot be a name.
    InvalidName,
    /// The rule lists none of the keys.
    UnknownKey,
    /// The token was rejected; of several the one that passed most checks.
    Token(Distrust),
    /// The path or the peer differs.
    Mismatch,
    /// The rule needs the body, which was not read. Later rules are not tried.
    BodyUnread,
}
