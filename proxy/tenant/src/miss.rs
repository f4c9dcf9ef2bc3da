//! Why a rule did not hit. What is counted and told are these words alone, never what was sent: a
//! token that one service does not believe may be good at another.

/// Why a token was not believed; the later ones were found out later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Distrust {
    /// It is no token of a kind that is read: its parts are not what they should be, or it has `crit`.
    Malformed,
    /// Its algorithm is not allowed, or is none.
    Algorithm,
    /// There is no key of its id, or no key at all yet.
    UnknownKey,
    /// No key made its signature.
    Signature,
    /// It is from another issuer.
    Issuer,
    /// It is for another audience.
    Audience,
    /// It has no `exp`, or a time that is none.
    Times,
    /// Its claim that names the tenant is not there, or cannot be a name.
    Tenant,
    /// It is not good yet.
    Early,
    /// It is not good any more.
    Expired,
}

impl Distrust {
    /// All, in the order of their indices.
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

    /// Its name as a label.
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

/// Why a rule did not hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Miss {
    /// What it looks at is not in the request.
    Absent,
    /// Its header field is there, but the peer is not trusted.
    Untrusted,
    /// Its header field was sent more than once.
    Several,
    /// What is there cannot be a name.
    NoName,
    /// The keys that were sent are none that it lists.
    UnknownKey,
    /// The token was not believed; of several the one that got furthest.
    Token(Distrust),
    /// The path or the peer is another one.
    Elsewhere,
    /// It asks the body, which was not read. No rule after it is asked.
    NoBody,
}
