//! How far the proxy may go to learn what a stream cost. Set for each upstream.

/// What is asked of an upstream that the client did not ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Usage at the end of each stream.
    #[default]
    Inject,
    /// That, and running counts in every frame, in the way the server has. The relay falls back to
    /// [`Policy::Inject`] where a server has none, or would answer with other frames for it (vLLM's
    /// Rust front end).
    Continuous,
    /// Nothing: requests and responses are left as they are.
    Observe,
}

impl Policy {
    /// Every policy.
    pub const ALL: [Self; 3] = [Self::Inject, Self::Continuous, Self::Observe];

    /// Its name, as settings and metrics write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inject => "inject",
            Self::Continuous => "continuous",
            Self::Observe => "observe",
        }
    }
}
