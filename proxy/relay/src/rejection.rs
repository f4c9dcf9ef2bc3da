//! The report of a request that the proxy answered itself and that makes no record, for the access log. It contains
//! nothing of the request's contents (law 11), and is made only with such a log.

use std::sync::Arc;

use scan::Dialect;

use crate::Refusal;

/// A request that was rejected before anything of it went upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Name of the request's upstream, as configured.
    pub upstream: Arc<str>,
    /// The reason.
    pub reason: Refusal,
    /// The status of the answer.
    pub status: u16,
    /// The further known facts; `None` if the request was rejected before its tenant was resolved.
    pub known: Option<Known>,
}

/// The facts of a request for inference or for a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its tenant.
    pub tenant: Arc<str>,
    /// The key or account of the request: a configured name, or a keyed hash.
    pub principal: Option<Arc<str>>,
    /// The JSON shape; unknown for a tunnel.
    pub dialect: Dialect,
    /// The model it names, if the proxy read it. At most 128 bytes.
    pub model: Option<Arc<str>>,
}
