//! The progress of long work on a ledger, as the caller of the work learns it.

use crate::source::Month;

/// The progress of one step of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The step, in words: `reading rows`.
    pub step: &'static str,
    /// The month of the file that is read or written; `None` if the step is of the whole ledger.
    pub month: Option<Month>,
    /// Rows that the step has finished.
    pub done_rows: u64,
    /// All rows of the step; `None` if their number is not known.
    pub total_rows: Option<u64>,
}

/// The callback that takes progress. It is called at most once for each few thousand rows.
pub type OnProgress<'a> = dyn Fn(Progress) + 'a;
