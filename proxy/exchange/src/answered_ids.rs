//! The answers of the last exchanges, by their ids: an answer that is sent again did not cost its tokens again. Only an
//! exchange without the sign of a run of a model is asked about, because some servers let a client choose the id.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::fingerprint;
use crate::query::parameters;

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

/// The number of strings that a request for an earlier answer has, and their longest. One with more is none.
const STRINGS: usize = 32;
const STRING_BYTES: usize = 128;

/// The ids that a request names, of which one may be that of an earlier answer: the last two segments of its path, the
/// values of its query, and the strings of its body. A process that did not see the answer recognises it by them.
#[derive(Debug)]
pub(crate) struct NamedIds {
    fingerprints: Vec<u64>,
    /// The string of the body that is open, as far as it was read.
    open: Option<Vec<u8>>,
    /// The body has bytes.
    pub(crate) has_body: bool,
}

impl NamedIds {
    /// Reads those of a path and of a query.
    pub(crate) fn of(path: &str, query: Option<&str>) -> Self {
        let items = path.rsplit('/').filter(|item| !item.is_empty()).take(2).map(fingerprint::<str>);
        let values = query.into_iter().flat_map(parameters).filter_map(|(_, value)| of_text(&value));
        Self { fingerprints: items.chain(values).collect(), open: None, has_body: false }
    }

    /// Reads those of a slice of the body. An escape ends a string: no id has one.
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        self.has_body |= !bytes.is_empty();
        for &byte in bytes {
            if self.fingerprints.len() > STRINGS
                || self.open.as_ref().is_some_and(|word| word.len() > STRING_BYTES)
            {
                return;
            }
            match (&mut self.open, byte) {
                (Some(word), b'"') => {
                    self.fingerprints.extend(of_text(word));
                    self.open = None;
                }
                (Some(word), byte) => word.push(byte),
                (None, b'"') => self.open = Some(Vec::new()),
                (None, _) => {}
            }
        }
    }

    /// Returns true if one of them is this id.
    pub(crate) fn contain(&self, id: &str) -> bool {
        self.fingerprints.contains(&fingerprint(id))
    }
}

fn of_text(text: &[u8]) -> Option<u64> {
    str::from_utf8(text).ok().map(fingerprint::<str>)
}
