//! The kinds of tenant rules.

/// The kinds of rules, in the order of the metric's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RuleKind {
    /// A claim of a token whose signature was verified.
    Jwt,
    /// A known API key.
    ApiKey,
    /// A verified certificate of the client.
    Certificate,
    /// A header field from a trusted peer.
    Header,
    /// A member of the body.
    Body,
    /// The prefix of the path.
    Path,
    /// The network of the peer.
    Peer,
    /// No rule.
    Default,
}

impl RuleKind {
    /// All kinds, in the order of their indices.
    pub const ALL: [Self; 8] = [
        Self::Jwt,
        Self::ApiKey,
        Self::Certificate,
        Self::Header,
        Self::Body,
        Self::Path,
        Self::Peer,
        Self::Default,
    ];

    /// The label value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jwt => "jwt",
            Self::ApiKey => "api_key",
            Self::Certificate => "certificate",
            Self::Header => "header",
            Self::Body => "body",
            Self::Path => "path",
            Self::Peer => "peer",
            Self::Default => "default",
        }
    }

    /// The index in [`RuleKind::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }
}
