//! The answers of the last exchanges, by their ids: an answer that is sent again did not cost its tokens again. Only an
//! exchange without the sign of a run of a model is asked about, because some servers let a client choose the id.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::fingerprint;

/// The number of ids that are kept: those of the last minutes of a busy process, in 32 KiB.
const SLOTS: usize = 4096;

/// The ids of the last answers. Threads share it, and touch it at the end of an exchange only.
#[derive(Debug)]
pub struct AnsweredIds {
    /// The fingerprint of an id, at its place by that.
    slots: Box<[AtomicU64]>,
}

impl AnsweredIds {
    /// No ids.
    pub fn new() -> Self {
        Self { slots: (0..SLOTS).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Adds an id. Returns true if it is there already.
    pub fn add(&self, id: &str) -> bool {
        let fingerprint = fingerprint(id) | 1;
        let slot = &self.slots[(fingerprint >> 32) as usize % SLOTS];
        slot.swap(fingerprint, Ordering::Relaxed) == fingerprint
    }
}

impl Default for AnsweredIds {
    fn default() -> Self {
        Self::new()
    }
}

/// The last two segments of a path, of which one may be the id of an earlier answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathItems([u64; 2]);

impl PathItems {
    /// Reads them.
    pub(crate) fn of(path: &str) -> Self {
        let mut items = path.rsplit('/').filter(|item| !item.is_empty()).map(fingerprint::<str>);
        Self([items.next().unwrap_or(0), items.next().unwrap_or(0)])
    }

    /// Returns true if one of them is this id.
    pub(crate) fn name(self, id: &str) -> bool {
        self.0.contains(&fingerprint(id))
    }
}
