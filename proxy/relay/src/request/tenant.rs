//! The tenant of a request: the current rules resolve it from the head, or, if they depend on the body, after the body
//! was read. No request waits for that (law 2), unless a [`Gate`](crate::Gate) needs the tenant first. A panic in the
//! rules is counted, and the request belongs to the default tenant (law 3).

use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use meter::DEFAULT_TENANT;
use scan::{Member, Name, SelectedMembers};
use tenant::{BodyFacts, Head, PendingTenant, Resolution, RuleKind, Rules, TenantIdentity};

use crate::request::headers;
use crate::state::WorkerState;
use crate::{Dropped, clock};

/// The tenant rules for one request, and its peer.
#[derive(Clone)]
pub(crate) struct TenantResolver {
    rules: Arc<Rules>,
    peer: IpAddr,
}

impl TenantResolver {
    /// The current rules, for a request from `peer`.
    pub(crate) fn of(worker: &WorkerState, peer: IpAddr) -> Self {
        Self { rules: worker.plan.tenants.load(), peer }
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

    /// Resolves the tenant of a request with this head; `path` is the received one.
    pub(crate) fn resolve(self, worker: &WorkerState, path: &str, headers: &HeaderMap) -> TenantResolution {
        let field =
            |name: &str, at| headers.get_all(name).iter().nth(at).map(|value: &HeaderValue| value.as_bytes());
        let now_unix_s = clock::wall_unix_ns() / 1_000_000_000;
        let resolved = guarded(worker, || {
            let head = Head { peer: self.peer, path, field: &field, now_unix_s };
            let (resolved, rejection) = self.rules.resolve_head(&head);
            if let Some(why) = rejection {
                worker.observer.borrow_mut().untrusted_token(why);
            }
            match resolved {
                Resolution::Resolved(who) => {
                    worker.observer.borrow_mut().tenant(who.rule);
                    TenantResolution::Resolved(who)
                }
                Resolution::NeedsBody(pending) => {
                    let selected_members = worker.selected_members(&self.rules);
                    TenantResolution::Unresolved(Box::new(Unresolved {
                        rules: Arc::clone(&self.rules),
                        pending,
                        selected_members,
                    }))
                }
            }
        });
        resolved.unwrap_or_default()
    }
}

/// The tenant of a request, as far as it is resolved.
pub(crate) enum TenantResolution {
    /// Resolved.
    Resolved(TenantIdentity),
    /// It depends on the body.
    Unresolved(Box<Unresolved>),
}

/// The rules that need a body.
pub(crate) struct Unresolved {
    rules: Arc<Rules>,
    pending: PendingTenant,
    selected_members: Arc<SelectedMembers>,
}

impl TenantResolution {
    /// The body members that the rules read.
    pub(crate) fn selected_members(&self) -> Option<&Arc<SelectedMembers>> {
        match self {
            Self::Resolved(_) => None,
            Self::Unresolved(unresolved) => Some(&unresolved.selected_members),
        }
    }

    /// The tenant, if the body cannot change it.
    pub(crate) fn tenant(&self) -> Option<&Arc<str>> {
        match self {
            Self::Resolved(who) => Some(&who.tenant),
            Self::Unresolved(unresolved) => unresolved.pending.tenant(),
        }
    }

    /// The key or account, if the body cannot change it.
    pub(crate) fn principal(&self) -> Option<&Arc<str>> {
        match self {
            Self::Resolved(who) => who.principal.as_ref(),
            Self::Unresolved(_) => None,
        }
    }

    /// Resolves the tenant by the body: `values` are the members it has; `None` if it was unreadable.
    pub(crate) fn body(&mut self, worker: &WorkerState, values: Option<&[Name]>) {
        let Self::Unresolved(_) = self else { return };
        let Self::Unresolved(unresolved) = std::mem::take(self) else { return };
        let Unresolved { rules, pending, selected_members } = *unresolved;
        let known = guarded(worker, || {
            let who = match values {
                Some(values) => facts(&selected_members, values, |facts| rules.body(pending, facts)),
                None => pending.unread(),
            };
            worker.observer.borrow_mut().tenant(who.rule);
            who
        });
        *self = known.map_or_else(Self::default, Self::Resolved);
    }

    /// Takes the identity at the exchange's end. An unresolved tenant is then resolved without the body.
    pub(crate) fn take(&mut self, worker: &WorkerState) -> TenantIdentity {
        self.body(worker, None);
        match std::mem::take(self) {
            Self::Resolved(who) => who,
            Self::Unresolved(_) => default_identity(),
        }
    }
}

impl Default for TenantResolution {
    fn default() -> Self {
        Self::Resolved(default_identity())
    }
}

/// The identity of a request after its rules panicked.
fn default_identity() -> TenantIdentity {
    TenantIdentity { tenant: DEFAULT_TENANT.into(), principal: None, consumer: None, rule: RuleKind::Default }
}

/// Calls `ask` with the members' values, in the form that the rules accept.
fn facts<R>(selected_members: &SelectedMembers, values: &[Name], ask: impl FnOnce(&BodyFacts<'_>) -> R) -> R {
    let mut facts = BodyFacts::default();
    let mut metadata = Vec::new();
    for (member, value) in
        selected_members.members().iter().zip(values).filter(|(_, value)| !value.is_empty())
    {
        let value = value.as_str().as_bytes();
        match member {
            Member::User => facts.user = Some(value),
            Member::SafetyIdentifier => facts.safety_identifier = Some(value),
            Member::Metadata(key) => metadata.push((&**key, value)),
        }
    }
    ask(&BodyFacts { metadata: &metadata, ..facts })
}

/// Calls the rules. A panic is counted, and the result is `None`.
fn guarded<R>(worker: &WorkerState, ask: impl FnOnce() -> R) -> Option<R> {
    catch_unwind(AssertUnwindSafe(ask)).map_err(|_panic| worker.dropped(Dropped::Panic)).ok()
}
