//! Word of a request that the proxy answered itself and that makes no record: for the access log. The law:
//! it holds nothing of what was said (law 11), and is told only where somebody keeps such a log.

use std::sync::Arc;

use scan::Dialect;

use crate::Refusal;

/// A request that was turned away before anything of it went upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Name of the upstream it was for, as configured.
    pub upstream: Arc<str>,
    /// Why.
    pub reason: Refusal,
    /// The status it was answered with.
    pub status: u16,
    /// What is known of it beyond that; nothing, if it was turned away before anybody asked.
    pub known: Option<Known>,
}

/// What is known of a request for inference, or of one for a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Whose it is.
    pub tenant: Arc<str>,
    /// The key or account it was made with: a name of ours, or a keyed hash.
    pub principal: Option<Arc<str>>,
    /// The JSON shape spoken; of a tunnel nobody knows.
    pub dialect: Dialect,
    /// The model it names, if that was read. At most 128 bytes.
    pub model: Option<Arc<str>>,
}
