//! Interim responses (1xx) from an upstream: the useful ones are written to the client's socket before the response.
//! `100 Continue` is not forwarded: the proxy sends its own on this hop.

use std::fmt::Write as _;

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, StatusCode, Version};

use crate::limits::{BUFFER_BYTES, INTERIM_RESPONSES};
use crate::request::headers;

/// Collects the interim responses of all attempts of one request.
pub(crate) struct Interim {
    /// True if the client gets them; others are only counted.
    is_forwarded: bool,
    heads: String,
    /// The number of bytes of these that were taken.
    taken: usize,
    count: usize,
}

impl Interim {
    /// Returns the interim responses of a request that the client sent with this version of HTTP.
    pub(crate) fn new(version: Version) -> Self {
        Self { is_forwarded: version == Version::HTTP_11, heads: String::new(), taken: 0, count: 0 }
    }

    /// Adds an interim response.
    pub(crate) fn push(&mut self, status: StatusCode, fields: &HeaderMap) {
        self.count += 1;
        let full = self.count > INTERIM_RESPONSES || self.heads.len() > BUFFER_BYTES;
        if full || !self.is_forwarded || status == StatusCode::CONTINUE {
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
        if status != StatusCode::EARLY_HINTS || !self.heads.contains(&head) {
            self.heads.push_str(&head);
        }
    }

    /// Takes the responses since the last call.
    pub(crate) fn take(&mut self) -> Option<&str> {
        let left = &self.heads[self.taken..];
        self.taken = self.heads.len();
        (!left.is_empty()).then_some(left)
    }

    /// Returns true if the upstream sent more than [`INTERIM_RESPONSES`].
    pub(crate) fn is_flood(&self) -> bool {
        self.count > INTERIM_RESPONSES
    }
}
