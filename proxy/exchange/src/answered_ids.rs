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
    /// The body, in place: an allocation costs more than the room.
    body: [u8; BODY_BYTES],
    /// The length of the body so far; over that room it is too long.
    length: usize,
}

impl NamedIds {
    /// Reads those of a path and of a query.
    pub(crate) fn of(path: &str, query: Option<&str>) -> Self {
        let mut rest = path;
        let path = [(); 2].map(|()| {
            rest = rest.trim_end_matches('/');
            // Bytes cost less to compare than characters.
            let item = &rest[rest.bytes().rposition(|byte| byte == b'/').map_or(0, |slash| slash + 1)..];
            rest = &rest[..rest.len() - item.len()];
            if item.is_empty() { 0 } else { fingerprint(item) }
        });
        let values = query.into_iter().flat_map(parameters);
        let query =
            values.filter_map(|(_, value)| str::from_utf8(&value).ok().map(fingerprint::<str>)).collect();
        Self { path, query, body: [0; BODY_BYTES], length: 0 }
    }

    /// Keeps a slice of a short body.
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        let end = self.length.saturating_add(bytes.len());
        if let Some(room) = self.body.get_mut(self.length..end) {
            room.copy_from_slice(bytes);
        }
        self.length = end;
    }

    /// Returns true if the body has bytes.
    pub(crate) fn has_body(&self) -> bool {
        self.length > 0
    }

    /// Returns true if one of them is this id. An empty id names no answer: some servers give each answer one.
    pub(crate) fn contain(&self, id: &str) -> bool {
        let is_string = |text: &[u8]| text.first() == Some(&b'"') && text.last() == Some(&b'"');
        let is_id = |text: &[u8]| is_string(text) && &text[1..text.len() - 1] == id.as_bytes();
        let named = fingerprint(id);
        let is_in_head = self.path.contains(&named) || self.query.contains(&named);
        let body = self.body.get(..self.length).unwrap_or_default();
        !id.is_empty() && (is_in_head || body.windows(id.len() + 2).any(is_id))
    }
}

#[cfg(test)]
mod tests {
    use super::NamedIds;

    #[test]
    fn ids_are_named_in_path_query_and_body() {
        let names = |path: &str, query: Option<&str>, body: &str, id: &str| {
            let mut ids = NamedIds::of(path, query);
            body.as_bytes().chunks(3).for_each(|slice| ids.read(slice));
            ids.contain(id)
        };
        let long = format!("{{\"id\":\"a-1\",\"x\":\"{}\"}}", "x".repeat(512));
        for (path, query, body, id, is_named) in [
            ("/jobs/a-1", None, "", "a-1", true),
            ("/jobs//a-1//result/", None, "", "a-1", true),
            ("/a-1/jobs/result", None, "", "a-1", false),
            ("a-1", None, "", "a-1", true),
            ("/poll", Some("job=a%2D1"), "", "a-1", true),
            ("/poll", None, "{\"job\":\"a-1\"}", "a-1", true),
            ("/poll", None, "{\"job\":\"a-11\"}", "a-1", false),
            ("/poll", None, &*long, "a-1", false),
            // An id that says nothing.
            ("/", Some("x="), "{\"stop\":\"\"}", "", false),
        ] {
            assert_eq!(names(path, query, body, id), is_named, "{path} {query:?} {body} {id}");
        }
    }
}
