//! Interim responses (1xx) from an upstream. Engines send none of ours, so the ones worth
//! passing are written to the client's socket in front of the response. `100 Continue` is not
//! passed: this hop has its own.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, StatusCode};

use crate::limits::{BUFFER_BYTES, INTERIM_RESPONSES};
use crate::request::headers;

/// Collects one request's interim responses. Engines ask for a function that could be called from
/// any thread, hence the lock; it is only ever called inside a poll of the upstream connection.
#[derive(Clone, Default)]
pub(crate) struct Interim(Arc<Mutex<Heads>>);

#[derive(Default)]
struct Heads {
    bytes: String,
    count: usize,
}

impl Interim {
    /// Adds an interim response.
    pub(crate) fn push(&self, status: StatusCode, fields: &HeaderMap) {
        let mut heads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        heads.count += 1;
        let full = heads.count > INTERIM_RESPONSES || heads.bytes.len() > BUFFER_BYTES;
        if full || status == StatusCode::CONTINUE {
            return;
        }
        let reason = status.canonical_reason().unwrap_or_default();
        // Writing to a string cannot fail. A value that is not text is left out: early hints
        // are links.
        let _ = write!(heads.bytes, "HTTP/1.1 {} {reason}\r\n", status.as_str());
        // They end here as in any response, and an interim one has no body to be framed.
        let mut fields = headers::for_client(fields.clone(), false);
        fields.remove(TRANSFER_ENCODING);
        fields.remove(CONTENT_LENGTH);
        for (name, value) in &fields {
            if let Ok(value) = value.to_str() {
                let _ = write!(heads.bytes, "{name}: {value}\r\n");
            }
        }
        heads.bytes.push_str("\r\n");
    }

    /// Takes what came since the last call.
    pub(crate) fn take(&self) -> Option<String> {
        let mut heads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if heads.bytes.is_empty() { None } else { Some(std::mem::take(&mut heads.bytes)) }
    }

    /// Returns true if the upstream sends more of them than [`INTERIM_RESPONSES`].
    pub(crate) fn is_flood(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).count > INTERIM_RESPONSES
    }
}
