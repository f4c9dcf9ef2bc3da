//! The tenant of a request: the current rules resolve it from the head, or, if they depend on the body, after the body
//! was read. No request waits for that (law 2), unless a [`Gate`](crate::Gate) needs the tenant first. A panic in the
//! rules is counted, and the request belongs to the default tenant (law 3).

use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use exchange::{RequestHead, TenantResolution};
use http::HeaderMap;
use http::header::HeaderName;
use tenant::{CertificateNames, Rules};

use crate::Dropped;
use crate::request::headers;
use crate::state::WorkerState;

/// The tenant rules for one request, and its client.
#[derive(Clone)]
pub(crate) struct TenantResolver {
    rules: Arc<Rules>,
    peer: IpAddr,
    certificate: Option<Arc<CertificateNames>>,
}

impl TenantResolver {
    /// The current rules, for a request of a client with this address and these names in its certificate.
    pub(crate) fn new(
        worker: &WorkerState,
        peer: IpAddr,
        certificate: Option<Arc<CertificateNames>>,
    ) -> Self {
        Self { rules: worker.control.tenants.load(), peer, certificate }
    }

    /// Returns true if the peer is trusted.
    pub(crate) fn trusts_peer(&self, worker: &WorkerState) -> bool {
        guarded(worker, || self.rules.trusts(self.peer)).unwrap_or(false)
    }

    /// Returns the length of the prefix of `path` that is stripped.
    pub(crate) fn strip_prefix_len(&self, worker: &WorkerState, path: &str) -> usize {
        guarded(worker, || self.rules.strip(path)).unwrap_or(0)
    }

    /// Counts the fields that this peer may not send, in the head or the trailers, and removes them if the rules demand
    /// it.
    pub(crate) fn strip_untrusted_headers(&self, worker: &WorkerState, headers: &mut HeaderMap) {
        guarded(worker, || {
            for field in self.rules.untrusted(self.peer) {
                if headers.contains_key(field) {
                    worker.observer.borrow_mut().untrusted_header();
                    if self.rules.strips_untrusted()
                        && let Ok(name) = HeaderName::from_bytes(field.as_bytes())
                    {
                        headers::take_out(headers, &name);
                    }
                }
            }
        });
    }

    /// Resolves the tenant of a request with this head, which began at `unix_ns`; `path` is the received one.
    pub(crate) fn resolve(
        self,
        worker: &WorkerState,
        path: &str,
        headers: &HeaderMap,
        unix_ns: u64,
    ) -> TenantResolution {
        let now_unix_s = unix_ns / 1_000_000_000;
        let resolved = guarded(worker, || {
            let certificate = self.certificate.as_deref();
            let head = RequestHead { peer: self.peer, certificate, path, headers, now_unix_s };
            let members = &mut worker.rule_members.borrow_mut();
            let (resolution, rejection) = TenantResolution::of_head(&self.rules, members, &head);
            let mut observer = worker.observer.borrow_mut();
            if let Some(why) = rejection {
                observer.untrusted_token(why);
            }
            if let Some(rule) = resolution.rule() {
                observer.tenant(rule);
            }
            resolution
        });
        resolved.unwrap_or_default()
    }
}

/// Resolves a tenant that depends on the body, as far as that was read, and counts the rule.
pub(crate) fn resolve_by_body(worker: &WorkerState, tenant: &mut TenantResolution) {
    let resolved = guarded(worker, || {
        if let Some(rule) = tenant.resolve() {
            worker.observer.borrow_mut().tenant(rule);
        }
    });
    if resolved.is_none() {
        *tenant = TenantResolution::default();
    }
}

/// Calls the rules. A panic is counted, and the result is `None`.
fn guarded<R>(worker: &WorkerState, ask: impl FnOnce() -> R) -> Option<R> {
    catch_unwind(AssertUnwindSafe(ask)).map_err(|_panic| worker.dropped(Dropped::Panic)).ok()
}
