//! The tenant of a request: the rules resolve it from the head, or, if they depend on the body, after the body was
//! read. The caller counts the result, and guards itself against a panic in the rules.

use std::net::IpAddr;
use std::sync::Arc;

use http::HeaderMap;
use http::header::HeaderValue;
use meter::{DEFAULT_TENANT, RuleKind, TokenRejection};
use scan::{Member, Name, SelectedMembers};
use tenant::{BodyFacts, BodyKey, CertificateNames, Head, PendingTenant, Resolution, Rules, TenantIdentity};

use crate::request_reader::RequestReader;

/// The body members that the last rules read, and those rules: recomputed only when the rules change.
#[derive(Default)]
pub struct RuleMembers(Option<(Arc<Rules>, Arc<SelectedMembers>)>);

impl RuleMembers {
    fn of(&mut self, rules: &Arc<Rules>) -> Arc<SelectedMembers> {
        match &self.0 {
            Some((of, members)) if Arc::ptr_eq(of, rules) => Arc::clone(members),
            _ => {
                let members = Arc::new(members(rules));
                self.0 = Some((Arc::clone(rules), Arc::clone(&members)));
                members
            }
        }
    }
}

fn members(rules: &Rules) -> SelectedMembers {
    SelectedMembers::new(rules.body_keys().iter().map(|key| match key {
        BodyKey::User => Member::User,
        BodyKey::SafetyIdentifier => Member::SafetyIdentifier,
        BodyKey::Metadata(key) => Member::Metadata(key.clone()),
    }))
}

/// The head of a request and its peer, as the tenant rules read them.
#[derive(Clone, Copy)]
pub struct RequestHead<'a> {
    /// The peer of the connection, never an address that a header claims.
    pub peer: IpAddr,
    /// The names in the client's verified certificate, if it presented one.
    pub certificate: Option<&'a CertificateNames>,
    /// The path as received, without the query.
    pub path: &'a str,
    /// The header fields.
    pub headers: &'a HeaderMap,
    /// The current time in seconds since 1970.
    pub now_unix_s: u64,
}

/// The tenant of a request, as far as it is resolved; by default the default tenant.
pub struct TenantResolution(State);

enum State {
    /// Resolved.
    Resolved(TenantIdentity),
    /// It depends on the body.
    Unresolved(Box<Unresolved>),
}

/// The rules that need a body.
struct Unresolved {
    rules: Arc<Rules>,
    pending: PendingTenant,
    selected_members: Arc<SelectedMembers>,
    /// The body, once all of it was read.
    body: Option<RequestReader>,
}

impl TenantResolution {
    /// Resolves the tenant of a request with this head. Returns the reason why a token in it was rejected, too.
    pub fn of_head(
        rules: &Arc<Rules>,
        members: &mut RuleMembers,
        head: &RequestHead<'_>,
    ) -> (Self, Option<TokenRejection>) {
        let RequestHead { peer, certificate, path, headers, now_unix_s } = *head;
        let field =
            |name: &str, at| headers.get_all(name).iter().nth(at).map(|value: &HeaderValue| value.as_bytes());
        let (resolved, rejection) =
            rules.resolve_head(&Head { peer, certificate, path, field: &field, now_unix_s });
        let resolution = match resolved {
            Resolution::Resolved(identity) => State::Resolved(identity),
            Resolution::NeedsBody(pending) => {
                let selected_members = members.of(rules);
                let rules = Arc::clone(rules);
                State::Unresolved(Box::new(Unresolved { rules, pending, selected_members, body: None }))
            }
        };
        (Self(resolution), rejection)
    }

    /// The kind of rule that determined the tenant, once it is resolved.
    pub fn rule(&self) -> Option<RuleKind> {
        match &self.0 {
            State::Resolved(identity) => Some(identity.rule),
            State::Unresolved(_) => None,
        }
    }

    /// The tenant, if the body cannot change it.
    pub fn tenant(&self) -> Option<&Arc<str>> {
        match &self.0 {
            State::Resolved(identity) => Some(&identity.tenant),
            State::Unresolved(unresolved) => unresolved.pending.tenant(),
        }
    }

    /// The key or account, if the body cannot change it.
    pub fn principal(&self) -> Option<&Arc<str>> {
        match &self.0 {
            State::Resolved(identity) => identity.principal.as_ref(),
            State::Unresolved(_) => None,
        }
    }

    /// The body members that the rules read.
    pub(crate) fn selected_members(&self) -> Option<&Arc<SelectedMembers>> {
        match &self.0 {
            State::Resolved(_) => None,
            State::Unresolved(unresolved) => Some(&unresolved.selected_members),
        }
    }

    /// Gives it the body, if the rules depend on it. `None` if the body was not read whole.
    pub(crate) fn give_body(&mut self, body: Option<RequestReader>) {
        if let State::Unresolved(unresolved) = &mut self.0 {
            unresolved.body = body;
        }
    }

    /// Resolves the tenant by the body that was given, or else as that of an unreadable one. Returns the kind of rule
    /// that determined it; `None` if it was resolved before. It is the default tenant if the rules panic.
    pub fn resolve(&mut self) -> Option<RuleKind> {
        if matches!(self.0, State::Resolved(_)) {
            return None;
        }
        let State::Unresolved(unresolved) = std::mem::take(self).0 else { return None };
        let Unresolved { rules, pending, selected_members, body } = *unresolved;
        let identity = match body.as_ref().and_then(RequestReader::values) {
            Some(values) => facts(&selected_members, values, |facts| rules.body(pending, facts)),
            None => pending.unread(),
        };
        let rule = identity.rule;
        self.0 = State::Resolved(identity);
        Some(rule)
    }

    /// Returns the identity at the exchange's end. Resolves an unresolved tenant first.
    pub fn identity(&mut self) -> TenantIdentity {
        self.resolve();
        match &self.0 {
            State::Resolved(identity) => identity.clone(),
            State::Unresolved(_) => default_identity(),
        }
    }
}

impl From<TenantIdentity> for TenantResolution {
    /// A tenant that the caller knows without rules.
    fn from(identity: TenantIdentity) -> Self {
        Self(State::Resolved(identity))
    }
}

impl Default for TenantResolution {
    fn default() -> Self {
        Self(State::Resolved(default_identity()))
    }
}

/// The identity of a request without rules, or after its rules panicked.
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
