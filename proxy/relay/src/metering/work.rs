//! The relation of a request to detached work.

use exchange::fingerprint;

/// The relation of a request to detached work.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// It may start some at the path with this fingerprint; zero if no gate asks for it.
    MayStart(u64),
    /// It fetches the result of this job.
    Fetched(u64),
}

impl Work {
    /// That of a request which starts work, if any, at this path.
    pub(crate) fn at(path: &str, has_gate: bool) -> Self {
        Self::MayStart(if has_gate { fingerprint(path) | 1 } else { 0 })
    }
}
