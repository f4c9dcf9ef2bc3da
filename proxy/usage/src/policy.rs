//! The usage policy of an upstream: the options that the proxy may inject.

scan::listed_enum! {
    /// The usage options that the proxy adds to a client's request.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum Policy {
        /// Usage at the end of each stream.
        #[default]
        Inject = "inject",
        /// Usage at the end, and running counts in every frame, by the server's own option. The relay falls back
        /// to [`Policy::Inject`] for a server without running counts, or one that changes its frames for them
        /// (vLLM's Rust front end).
        Continuous = "continuous",
        /// None: requests and responses stay unchanged.
        Observe = "observe",
    }
    /// The name in settings and metrics.
    pub fn name(self);
}
