//! What the engine that carried a response says of its end. What that means is [`crate::Ending`].

/// How the bytes of a response ended, as the engine that carried them saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// The body ended as HTTP says it should. `whole`: of an unstreamed body, its JSON was all
    /// there.
    Clean {
        /// The scanner saw one whole value.
        whole: bool,
    },
    /// The upstream's bytes broke off.
    Cut,
    /// The client left. `whole`: of an unstreamed body, its JSON was all there.
    ClientGone {
        /// The scanner saw one whole value.
        whole: bool,
    },
    /// The proxy answered itself.
    Local,
}
