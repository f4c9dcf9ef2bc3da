//! The end of a response as the engine saw it. Its meaning is [`crate::Ending`].

/// The end of a response's bytes, as the engine saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// The body ended as HTTP requires.
    Clean {
        /// True if the scanner saw one complete JSON value: an unstreamed body is complete.
        whole: bool,
    },
    /// The upstream's bytes broke off.
    Cut,
    /// The client left.
    ClientGone {
        /// True if the scanner saw one complete JSON value: an unstreamed body is complete.
        whole: bool,
    },
    /// The proxy answered itself.
    Local,
}
