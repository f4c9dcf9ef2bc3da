//! The usage policy of an upstream: the options that the proxy may inject.

/// The usage options that the proxy adds to a client's request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Usage at the end of each stream.
    #[default]
    Inject,
    /// Usage at the end, and running counts in every frame, by the server's own option. The relay falls back
    /// to [`Policy::Inject`] for a server without running counts, or one that changes its frames for them
    /// (vLLM's Rust front end).
    Continuous,
    /// None: requests and responses stay unchanged.
    Observe,
}

impl Policy {
    /// Every policy.
    pub const ALL: [Self; 3] = [Self::Inject, Self::Continuous, Self::Observe];

    /// The name in settings and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inject => "inject",
            Self::Continuous => "continuous",
            Self::Observe => "observe",
        }
    }
}
