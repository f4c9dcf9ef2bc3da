//! The relation of a request to detached work.

use exchange::Route;

use crate::Passthrough;

/// The relation of a request to detached work.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// It may start some at the endpoint with this fingerprint; zero if no gate asks for it.
    MayStart(u64),
    /// It fetches the result of this job.
    Fetched(u64),
}

impl Work {
    /// That of a request which starts work, if any, at this path.
    pub(crate) fn at(route: &Result<Route, Passthrough>, path: &str, has_gate: bool) -> Self {
        match route {
            Ok(route) if has_gate => Self::MayStart(route.endpoint(path) | 1),
            _ => Self::MayStart(0),
        }
    }
}
