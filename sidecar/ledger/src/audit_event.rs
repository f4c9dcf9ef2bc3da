//! An event of the audit trail.

use std::sync::Arc;

/// An event of the audit trail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEvent {
    /// The time, microseconds since 1970.
    pub at_us: i64,
    /// The action.
    pub what: Arc<str>,
    /// The actor.
    pub who: Arc<str>,
    /// JSON.
    pub detail: Arc<str>,
}
