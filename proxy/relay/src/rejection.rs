//! The report of a request that the proxy answered itself and that makes no record, for the access log. The law:
//! it holds nothing of the request's contents (law 11), and is made only where such a log is kept.

use std::sync::Arc;

use scan::Dialect;

use crate::Refusal;

/// A request that was rejected before anything of it went upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Name of the upstream it was for, as configured.
    pub upstream: Arc<str>,
    /// The reason.
    pub reason: Refusal,
    /// The status it was answered with.
    pub status: u16,
    /// The facts known beyond that; `None` if it was rejected before its tenant was resolved.
    pub known: Option<Known>,
}

/// The facts of a request for inference, or of one for a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its tenant.
    pub tenant: Arc<str>,
    /// The key or account it was made with: a name of ours, or a keyed hash.
    pub principal: Option<Arc<str>>,
    /// The JSON shape spoken; of a tunnel it is unknown.
    pub dialect: Dialect,
    /// The model it names, if that was read. At most 128 bytes.
    pub model: Option<Arc<str>>,
}
