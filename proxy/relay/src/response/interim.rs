//! Interim responses (1xx) from an upstream. Engines do not forward them, so the useful ones are written to the
//! client's socket before the response. `100 Continue` is not forwarded: the proxy sends its own on this hop.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, StatusCode, Version};

use crate::limits::{BUFFER_BYTES, INTERIM_RESPONSES};
use crate::request::headers;

/// Collects one request's interim responses. Engines require a function that may be called from any thread, hence the
/// lock; it is called only inside a poll of the upstream connection.
#[derive(Clone)]
pub(crate) struct Interim(Arc<Mutex<Heads>>);

#[derive(Default)]
struct Heads {
    /// True if the client gets them; others are only counted.
    is_forwarded: bool,
    bytes: String,
    /// The number of these bytes that were taken.
    taken: usize,
    count: usize,
}

impl Interim {
    /// Returns the interim responses of all attempts of one request, which the client sent with this version of HTTP.
    pub(crate) fn new(version: Version) -> Self {
        let is_forwarded = version == Version::HTTP_11;
        Self(Arc::new(Mutex::new(Heads { is_forwarded, ..Heads::default() })))
    }

    /// Adds an interim response.
    pub(crate) fn push(&self, status: StatusCode, fields: &HeaderMap) {
        let mut heads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        heads.count += 1;
        let full = heads.count > INTERIM_RESPONSES || heads.bytes.len() > BUFFER_BYTES;
        if full || !heads.is_forwarded || status == StatusCode::CONTINUE {
            return;
        }
        let reason = status.canonical_reason().unwrap_or_default();
        // Writing to a string cannot fail. A value that is not text is omitted: early hints are links.
        let mut head = format!("HTTP/1.1 {} {reason}\r\n", status.as_str());
        // Hop-by-hop fields are removed as in any response; an interim response has no body.
        let mut fields = headers::for_client(fields.clone(), false);
        fields.remove(TRANSFER_ENCODING);
        fields.remove(CONTENT_LENGTH);
        for (name, value) in &fields {
            if let Ok(value) = value.to_str() {
                let _ = write!(head, "{name}: {value}\r\n");
            }
        }
        head.push_str("\r\n");
        // A request that is sent again gets the same hints again.
        if status != StatusCode::EARLY_HINTS || !heads.bytes.contains(&head) {
            heads.bytes.push_str(&head);
        }
    }

    /// Takes the responses since the last call.
    pub(crate) fn take(&self) -> Option<String> {
        let mut heads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = heads.bytes[heads.taken..].to_owned();
        heads.taken = heads.bytes.len();
        (!left.is_empty()).then_some(left)
    }

    /// Returns true if the upstream sent more than [`INTERIM_RESPONSES`].
    pub(crate) fn is_flood(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).count > INTERIM_RESPONSES
    }
}
