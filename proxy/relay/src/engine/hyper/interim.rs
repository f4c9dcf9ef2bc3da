//! Interim responses (1xx) from an upstream. hyper's server sends none of ours, so the ones worth
//! passing are written to the client's socket in front of the response. `100 Continue` is not
//! passed: this hop has its own.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{Request, StatusCode};

use crate::limits::{BUFFER_BYTES, INTERIM_RESPONSES};
use crate::request::headers;

/// Collects one request's interim responses. hyper asks for a callback that could be called from
/// any thread, hence the lock; it is only ever called inside a poll of the upstream connection.
#[derive(Clone, Default)]
pub(super) struct Interim(Arc<Mutex<Heads>>);

#[derive(Default)]
struct Heads {
    bytes: String,
    count: usize,
}

impl Interim {
    /// Has hyper report the interim responses to `request` here.
    pub(super) fn watch<B>(&self, request: &mut Request<B>) {
        let heads = Arc::clone(&self.0);
        hyper::ext::on_informational(request, move |response| {
            let mut heads = heads.lock().unwrap_or_else(PoisonError::into_inner);
            heads.count += 1;
            let full = heads.count > INTERIM_RESPONSES || heads.bytes.len() > BUFFER_BYTES;
            if full || response.status() == StatusCode::CONTINUE {
                return;
            }
            let reason = response.status().canonical_reason().unwrap_or_default();
            // Writing to a string cannot fail. A value that is not text is left out: early hints
            // are links.
            let _ = write!(heads.bytes, "HTTP/1.1 {} {reason}\r\n", response.status().as_str());
            // They end here as in any response, and an interim one has no body to be framed.
            let mut fields = headers::for_client(response.headers().clone(), false);
            fields.remove(TRANSFER_ENCODING);
            fields.remove(CONTENT_LENGTH);
            for (name, value) in &fields {
                if let Ok(value) = value.to_str() {
                    let _ = write!(heads.bytes, "{name}: {value}\r\n");
                }
            }
            heads.bytes.push_str("\r\n");
        });
    }

    /// Takes what came since the last call.
    pub(super) fn take(&self) -> Option<String> {
        let mut heads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if heads.bytes.is_empty() { None } else { Some(std::mem::take(&mut heads.bytes)) }
    }

    /// Whether the upstream sends more of them than anyone has a use for.
    pub(super) fn is_flood(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).count > INTERIM_RESPONSES
    }
}
