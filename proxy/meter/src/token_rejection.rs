//! The reasons for which a tenant's token is rejected.

/// The reason a token was rejected, in the order of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TokenRejection {
    /// A part of it is malformed, or it has `crit`.
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

impl TokenRejection {
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
