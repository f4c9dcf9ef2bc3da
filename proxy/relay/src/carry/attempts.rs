//! The attempts to send one request: which connection the next one needs, and whether there is a next one.

use http::header::UPGRADE;
use http::{HeaderMap, Uri};

use crate::conn::pool::{Need, Pool};
use crate::limits;
use crate::request::headers::list_bytes;
use crate::wire::failure::SendFailure;

/// The attempts to send one request.
#[derive(Clone, Copy)]
pub(super) struct Attempts {
    /// True if it needs HTTP/1.1, as a request to switch protocols does.
    needs_http1: bool,
    /// True if it needs a connection without other requests.
    is_unshared: bool,
    refusals: usize,
}

impl Attempts {
    /// No attempt yet of a request with this head. `is_secure`: its upstream has TLS.
    pub(super) fn new(is_secure: bool, target: &Uri, fields: &HeaderMap) -> Self {
        // Without TLS there is no HTTP/2, and no connection is shared.
        let needs_http1 = is_secure && fields.contains_key(UPGRADE);
        Self { needs_http1, is_unshared: is_secure && is_long(target, fields), refusals: 0 }
    }

    /// The same attempts, of which the next needs HTTP/1.1.
    pub(super) fn by_http1(self) -> Self {
        Self { needs_http1: true, ..self }
    }

    /// The connection that the next attempt needs.
    pub(super) fn need(&self, pool: &Pool) -> Need {
        if self.needs_http1 || pool.needs_http1.get() {
            Need::Http1
        } else if self.is_unshared {
            Need::Unshared
        } else {
            Need::Any
        }
    }

    /// Returns true if another attempt may follow one that failed: nothing was sent, or the server states that it
    /// processed nothing. `is_reused`: the connection may have carried a request before.
    pub(super) fn may_repeat(&mut self, pool: &Pool, cause: &SendFailure, is_reused: bool) -> bool {
        let may_repeat = match cause {
            SendFailure::NeedsHttp1 => {
                pool.needs_http1.set(true);
                true
            }
            SendFailure::Refused => self.refusals < limits::H2_REFUSALS,
            // If this request is the cause, its next connection has no streams of others.
            SendFailure::ConnectionError => !std::mem::replace(&mut self.is_unshared, true),
            // Nothing was sent, so nothing is sent twice. A new connection gets no second attempt.
            _ => is_reused,
        };
        self.refusals += 1;
        may_repeat
    }
}

/// Returns true if the server may close a connection because of the length of this head.
fn is_long(target: &Uri, fields: &HeaderMap) -> bool {
    let target = target.path_and_query().map_or(0, |target| target.as_str().len());
    target + list_bytes(fields) > limits::H2_SHARED_LIST_BYTES
}
