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

/// The longest body of a request for an earlier answer. One with a longer body is none.
const BODY_BYTES: usize = 512;

/// The ids that a request names, of which one may be that of an earlier answer: the last two segments of its path, the
/// values of its query, and the strings of its body. A process that did not see the answer recognises it by them.
#[derive(Debug)]
pub(crate) struct NamedIds {
    path: [u64; 2],
    query: Vec<u64>,
    /// The body; empty if it is too long.
    body: Vec<u8>,
    /// The body has bytes.
    pub(crate) has_body: bool,
}

impl NamedIds {
    /// Reads those of a path and of a query.
    pub(crate) fn of(path: &str, query: Option<&str>) -> Self {
        let mut items = path.rsplit('/').filter(|item| !item.is_empty()).map(fingerprint::<str>);
        let path = [items.next().unwrap_or(0), items.next().unwrap_or(0)];
        let values = query.into_iter().flat_map(parameters);
        let query =
            values.filter_map(|(_, value)| str::from_utf8(&value).ok().map(fingerprint::<str>)).collect();
        Self { path, query, body: Vec::new(), has_body: false }
    }

    /// Keeps a slice of a short body.
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        let is_first = !self.has_body;
        self.has_body |= !bytes.is_empty();
        if self.body.len() + bytes.len() > BODY_BYTES {
            self.body.clear();
        } else if is_first || !self.body.is_empty() {
            self.body.extend_from_slice(bytes);
        }
    }

    /// Returns true if one of them is this id.
    pub(crate) fn contain(&self, id: &str) -> bool {
        let is_string = |text: &[u8]| text.first() == Some(&b'"') && text.last() == Some(&b'"');
        let is_id = |text: &[u8]| is_string(text) && &text[1..text.len() - 1] == id.as_bytes();
        let named = fingerprint(id);
        let is_in_head = self.path.contains(&named) || self.query.contains(&named);
        is_in_head || self.body.windows(id.len() + 2).any(is_id)
    }
}
