//! The kinds of tenant rules.

scan::listed_enum! {
    /// The kinds of rules, in the order of the metric's documentation.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum RuleKind {
        /// A claim of a token whose signature was verified.
        Jwt = "jwt",
        /// A known API key.
        ApiKey = "api_key",
        /// A verified certificate of the client.
        Certificate = "certificate",
        /// A header field from a trusted peer.
        Header = "header",
        /// A member of the body.
        Body = "body",
        /// The prefix of the path.
        Path = "path",
        /// The network of the peer.
        Peer = "peer",
        /// No rule.
        Default = "default",
    }
    /// The label value.
    pub fn name(self);
}

impl RuleKind {
    /// The index in [`RuleKind::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }
}
