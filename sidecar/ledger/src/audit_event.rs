//! Events of the audit trail: who changed what in a ledger, and when.

use std::sync::Arc;

/// An event of the audit trail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEvent {
    /// The time, microseconds since 1970.
    pub at_us: i64,
    /// The action, in a word: `opened`, `closed`, `repriced`, ….
    pub what: Arc<str>,
    /// The actor: a person, or this program with its version.
    pub who: Arc<str>,
    /// Details, JSON.
    pub detail: Arc<str>,
}
