//! The status of usage events, for metrics, readiness and the retention of rows.

use std::path::PathBuf;

use agent::Kind;

/// The status of usage events. All counts are since the start.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// Events that the receiver accepted.
    pub sent_total: u64,
    /// Events that the receiver rejected, though it accepted others.
    pub rejected_total: u64,
    /// Exchanges that retention deleted before their events were sent.
    pub deleted_total: u64,
    /// Exchanges whose events are not sent yet, as of the last poll of the ledger.
    pub pending: u64,
    /// True if the last attempt succeeded.
    pub up: bool,
    /// Failed attempts, in the order of [`Reason::ALL`].
    pub failures: [u64; Reason::ALL.len()],
    /// The current error and its remedy.
    pub error: Option<String>,
    /// The files whose events were all sent at the last poll.
    pub complete: Vec<PathBuf>,
}

meter::listed_enum! {
    /// The reason of a failed attempt.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Reason {
        /// There was no response in time, or none that is HTTP.
        Unreachable = "unreachable",
        /// The receiver is temporarily overloaded or broken.
        Busy = "busy",
        /// The receiver refuses the sender, the address or every event.
        Refused = "refused",
        /// The ledger, the cursor or the token's file cannot be read or written.
        Local = "local",
    }
    /// Returns the label value.
    pub fn name(self);
}

impl From<Kind> for Reason {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Unreachable => Self::Unreachable,
            Kind::Busy => Self::Busy,
            Kind::Rejected | Kind::Refused => Self::Refused,
        }
    }
}
