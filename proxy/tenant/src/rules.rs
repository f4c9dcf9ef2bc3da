//! The ordered list of rules: the first match decides. A rule after one on the body waits for the body.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use meter::{RuleKind, TokenRejection};

use crate::credential;
use crate::hash::{HashKey, Purpose};
use crate::jwk::KeySet;
use crate::jwt::Jwt;
use crate::miss::Miss;
use crate::name::{Name, Names, bounded};
use crate::nets::Nets;
use crate::path::covered;
use crate::request::{BodyFacts, Head, PendingTenant, Resolution, TenantIdentity};
use crate::rule::{ApiKeys, BodyKey, EndUser, Rule};
use crate::token_cache::TokenCache;

/// The configuration of rules.
#[derive(Clone, Debug, Default)]
pub struct Spec {
    /// The rules, in their order.
    pub rules: Vec<Rule>,
    /// The tenant of a request that no rule matches; `default` if unset.
    pub default: Option<Name>,
    /// The peers whose header fields are trusted.
    pub trusted: Nets,
    /// True if fields that only trusted peers may send are removed from other requests.
    pub strip_untrusted: bool,
    /// The places of the end user's name; the first with a value counts.
    pub end_user: Vec<EndUser>,
    /// The key of all hashes.
    pub hash: Option<HashKey>,
    /// True if principals of claims and headers are reported in plain text, not as a hash.
    pub plain_principals: bool,
    /// True if end users are reported in plain text, not as a hash.
    pub plain_end_users: bool,
}

/// Rules prepared for lookups. They are immutable; a change builds new ones.
#[derive(Debug)]
pub struct Rules {
    spec: Spec,
    default: Arc<str>,
    names: Names,
    /// The fields that only trusted peers may send.
    trusted_only_fields: Box<[Box<str>]>,
    body_keys: Box<[BodyKey]>,
    /// One per rule, by index; empty for rules without tokens.
    token_caches: Box<[TokenCache]>,
}

impl Spec {
    /// Returns the keys of a source, if a rule uses it.
    pub fn keys(&self, source: &str) -> Option<&KeySet> {
        self.rules.iter().find_map(|rule| match rule {
            Rule::Jwt(jwt) if *jwt.source == *source => Some(&jwt.keys),
            _ => None,
        })
    }

    /// Returns the possible tenants, if the rules list them all; `None` if tokens, certificates, headers or
    /// bodies may contain any name.
    pub fn tenants(&self) -> Option<BTreeSet<&str>> {
        let mut all: BTreeSet<&str> = [self.default.as_ref().map_or(DEFAULT, |name| name.text())].into();
        for rule in &self.rules {
            match rule {
                // No peer is trusted, so this rule never matches.
                Rule::Header { .. } if self.trusted.is_empty() => {}
                Rule::Jwt(_) | Rule::Certificate { .. } | Rule::Header { .. } | Rule::Body(_) => return None,
                Rule::ApiKeys(keys) => all.extend(keys.owners().map(|owner| &**owner.tenant.text())),
                Rule::Path { tenant, .. } | Rule::Peer { tenant, .. } => {
                    all.insert(tenant.text());
                }
            }
        }
        Some(all)
    }

    /// Sets the keys of every rule with this source.
    pub fn set_keys(&mut self, source: &str, keys: &KeySet) {
        for rule in &mut self.rules {
            if let Rule::Jwt(jwt) = rule
                && *jwt.source == *source
            {
                jwt.keys = keys.clone();
            }
        }
    }
}

/// The tenant, and optionally the principal, of a matching rule.
pub(crate) struct Hit {
    pub(crate) tenant: Arc<str>,
    pub(crate) principal: Option<Arc<str>>,
}

impl Default for Rules {
    fn default() -> Self {
        Self::new(Spec::default())
    }
}

impl Rules {
    /// Prepares the rules of `spec`.
    pub fn new(spec: Spec) -> Self {
        let end_users = spec.end_user.iter().filter_map(|end_user| match end_user {
            EndUser::Header(field) => Some(field),
            EndUser::Body(_) => None,
        });
        let fields = spec.rules.iter().flat_map(Rule::trusted_only_fields).chain(end_users);
        let mut trusted_only_fields: Vec<Box<str>> = fields.cloned().collect();
        trusted_only_fields.sort();
        trusted_only_fields.dedup();
        let rule_keys = spec.rules.iter().filter_map(|rule| match rule {
            Rule::Body(key) => Some(key),
            _ => None,
        });
        let end_users = spec.end_user.iter().filter_map(|end_user| match end_user {
            EndUser::Body(key) => Some(key),
            EndUser::Header(_) => None,
        });
        let mut body_keys: Vec<BodyKey> = Vec::new();
        for key in rule_keys.chain(end_users) {
            if !body_keys.contains(key) {
                body_keys.push(key.clone());
            }
        }
        let default = spec.default.as_ref().map_or_else(|| DEFAULT.into(), |name| name.text().clone());
        Self {
            default,
            names: Names::default(),
            trusted_only_fields: trusted_only_fields.into(),
            body_keys: body_keys.into(),
            token_caches: spec.rules.iter().map(|_| TokenCache::default()).collect(),
            spec,
        }
    }

    /// Returns true if a rule, or the end user, needs the body.
    pub fn needs_body(&self) -> bool {
        !self.body_keys.is_empty()
    }

    /// The members of the body that are read; nothing else of it is.
    pub fn body_keys(&self) -> &[BodyKey] {
        &self.body_keys
    }

    /// Returns true if this peer is trusted to name tenants.
    pub fn trusts(&self, peer: IpAddr) -> bool {
        self.spec.trusted.contains(peer)
    }

    /// Returns the fields that this peer may not send, to be ignored and counted; none if it is trusted.
    pub fn untrusted(&self, peer: IpAddr) -> impl Iterator<Item = &str> {
        let fields = if self.trusts(peer) { &[] } else { &*self.trusted_only_fields };
        fields.iter().map(|field| &**field)
    }

    /// Returns true if such fields are also removed.
    pub fn strips_untrusted(&self) -> bool {
        self.spec.strip_untrusted
    }

    /// Returns the length of the prefix to remove from this path for the upstream: that of the first rule
    /// with `strip` that covers it, whichever rule determines the tenant. The rest begins with `/` or is
    /// empty, which means `/`; a path whose next slash is escaped is not stripped.
    pub fn strip(&self, path: &str) -> usize {
        let length = self.spec.rules.iter().find_map(|rule| match rule {
            Rule::Path { prefix, strip: true, .. } => covered(path, prefix),
            _ => None,
        });
        let whole = |at: &usize| path.get(*at..).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        length.filter(whole).unwrap_or(0)
    }

    /// Returns true if a rule checks the time of a request.
    pub fn needs_time(&self) -> bool {
        self.spec.rules.iter().any(|rule| matches!(rule, Rule::Jwt(_)))
    }

    /// Returns true if a token needed a key that this source lacks, since the last call.
    pub fn take_missed(&self, source: &str) -> bool {
        self.spec.keys(source).is_some_and(KeySet::take_missed)
    }

    /// Returns the tenant of a request with this head.
    pub fn head(&self, head: &Head<'_>) -> Resolution {
        self.resolve_head(head).0
    }

    /// Returns the same, and the reason its tokens were rejected, if it has tokens and none was accepted: of
    /// several the one that passed most checks.
    pub fn resolve_head(&self, head: &Head<'_>) -> (Resolution, Option<TokenRejection>) {
        let mut rejection = None;
        let hit = self.spec.rules.iter().enumerate().find_map(|(index, rule)| {
            match self.hit(index, rule, head) {
                Ok((hit, kind)) => return Some((index, hit, kind)),
                Err(Miss::Token(why)) => rejection = rejection.max(Some(why)),
                Err(_) => {}
            }
            None
        });
        let rejection = rejection.filter(|_| !matches!(hit, Some((.., RuleKind::Jwt))));
        (self.resolve(head, hit), rejection)
    }

    /// Returns each rule before the matching one, and the reason that it did not match; `facts` are the
    /// body's, if it was read.
    pub fn misses(&self, head: &Head<'_>, facts: Option<&BodyFacts<'_>>) -> Vec<(&Rule, Miss)> {
        let mut misses = Vec::new();
        for (index, rule) in self.spec.rules.iter().enumerate() {
            let miss = match (rule, facts) {
                (Rule::Body(key), Some(facts)) => match facts.text(key).map(|text| self.names.tenant(text)) {
                    Some(Some(_)) => break,
                    Some(None) => Miss::InvalidName,
                    None => Miss::Absent,
                },
                _ => match self.hit(index, rule, head) {
                    Ok(_) => break,
                    Err(miss) => miss,
                },
            };
            misses.push((rule, miss));
            if miss == Miss::BodyUnread {
                break;
            }
        }
        misses
    }

    fn resolve(&self, head: &Head<'_>, hit: Option<(usize, Hit, RuleKind)>) -> Resolution {
        let (until, hit, rule) = hit.unwrap_or_else(|| {
            let default = Hit { tenant: self.default.clone(), principal: None };
            (self.spec.rules.len(), default, RuleKind::Default)
        });
        let (consumer, consumer_until) = self.end_user_of_head(head);
        let otherwise = TenantIdentity { tenant: hit.tenant, principal: hit.principal, consumer, rule };
        let is_body = |rule: &Rule| matches!(rule, Rule::Body(_));
        let decided = !self.spec.rules[..until].iter().any(is_body);
        let names_end_user = |end_user: &EndUser| matches!(end_user, EndUser::Body(_));
        if decided && !self.spec.end_user[..consumer_until].iter().any(names_end_user) {
            return Resolution::Resolved(otherwise);
        }
        let unread = match decided {
            true => otherwise.clone(),
            false => TenantIdentity {
                tenant: self.default.clone(),
                principal: None,
                consumer: otherwise.consumer.clone(),
                rule: RuleKind::Default,
            },
        };
        Resolution::NeedsBody(PendingTenant { until, consumer_until, otherwise, unread, decided })
    }

    /// Returns the result for a body that was read.
    pub fn body(&self, pending: PendingTenant, facts: &BodyFacts<'_>) -> TenantIdentity {
        let mut who = pending.otherwise;
        let rules = self.spec.rules.iter().take(pending.until);
        let named = rules.filter_map(|rule| match rule {
            Rule::Body(key) => self.names.tenant(facts.text(key)?),
            _ => None,
        });
        if let Some(tenant) = { named }.next() {
            who = TenantIdentity { tenant, principal: None, consumer: who.consumer, rule: RuleKind::Body };
        }
        let end_users = self.spec.end_user.iter().take(pending.consumer_until);
        let named = end_users.filter_map(|end_user| match end_user {
            EndUser::Body(key) => self.personal(Purpose::EndUser, facts.text(key)?),
            EndUser::Header(_) => None,
        });
        who.consumer = { named }.next().or(who.consumer);
        who
    }

    fn hit(&self, index: usize, rule: &Rule, head: &Head<'_>) -> Result<(Hit, RuleKind), Miss> {
        let fixed = |tenant: &Name| Hit { tenant: tenant.text().clone(), principal: None };
        Ok(match rule {
            Rule::Jwt(jwt) => (self.token_hit(jwt, &self.token_caches[index], head)?, RuleKind::Jwt),
            Rule::ApiKeys(keys) => (self.key_hit(keys, head)?, RuleKind::ApiKey),
            Rule::Certificate { name, tenant } => {
                let text = head.certificate.ok_or(Miss::NoCertificate)?.only(*name)?;
                let tenant = tenant.of(text).and_then(|text| self.names.tenant(&text));
                let tenant = tenant.ok_or(Miss::InvalidName)?;
                (Hit { tenant, principal: None }, RuleKind::Certificate)
            }
            Rule::Header { field, tenant, principal } => {
                let sent = |at| (head.field)(field, at).is_some();
                if !self.spec.trusted.contains(head.peer) {
                    return Err(if sent(0) { Miss::Untrusted } else { Miss::Absent });
                }
                let named = head.text(field).and_then(|text| self.names.tenant(&tenant.of(text)?));
                let tenant = named.ok_or_else(|| match (sent(0), sent(1)) {
                    (false, _) => Miss::Absent,
                    (true, false) => Miss::InvalidName,
                    (true, true) => Miss::Repeated,
                })?;
                let principal = principal.as_ref().and_then(|field| head.text(field));
                let principal = principal.and_then(|text| self.personal(Purpose::Principal, text));
                (Hit { tenant, principal }, RuleKind::Header)
            }
            Rule::Path { prefix, tenant, .. } if covered(head.path, prefix).is_some() => {
                (fixed(tenant), RuleKind::Path)
            }
            Rule::Peer { nets, tenant } if nets.contains(head.peer) => (fixed(tenant), RuleKind::Peer),
            Rule::Path { .. } | Rule::Peer { .. } => return Err(Miss::Mismatch),
            Rule::Body(_) => return Err(Miss::BodyUnread),
        })
    }

    fn token_hit(&self, jwt: &Jwt, cache: &TokenCache, head: &Head<'_>) -> Result<Hit, Miss> {
        let mut best = None;
        let mut hit = |token: &[u8]| {
            let found = self.verified(jwt, cache, head.now_unix_s, token);
            found.map_err(|why| best = best.max(Some(why))).ok()
        };
        let mut tokens = jwt.tokens(head);
        let among_first = tokens.by_ref().take(MAX_VERIFIED_TOKENS - 1).find_map(&mut hit);
        let found = among_first.or_else(|| hit(tokens.last()?));
        found.ok_or_else(|| best.map_or(Miss::Absent, Miss::Token))
    }

    fn verified(&self, jwt: &Jwt, cache: &TokenCache, now: u64, token: &[u8]) -> Result<Hit, TokenRejection> {
        let claims = cache.of(token, || jwt.claims(token))?;
        if now < claims.from {
            return Err(TokenRejection::Early);
        }
        if now >= claims.until {
            return Err(TokenRejection::Expired);
        }
        let principal = claims.principal.as_ref();
        let principal = principal.and_then(|text| self.personal(Purpose::Principal, text));
        Ok(Hit { tenant: self.names.tenant(&claims.tenant).ok_or(TokenRejection::Tenant)?, principal })
    }

    fn key_hit(&self, keys: &ApiKeys, head: &Head<'_>) -> Result<Hit, Miss> {
        let mut missed = Miss::Absent;
        let mut values = keys.fields.iter().flat_map(|field| head.each(field));
        let owner = values.find_map(|value| {
            credential::find(value, |key| {
                missed = Miss::UnknownKey;
                keys.owners.get(&self.spec.hash.as_ref()?.api_key(key).hash)
            })
        });
        let owner = owner.ok_or(missed)?;
        let principal = owner.principal.as_ref().map(|name| name.text().clone());
        Ok(Hit { tenant: owner.tenant.text().clone(), principal })
    }

    /// Returns the end user in the head, and the index in the list before which the body comes first.
    fn end_user_of_head(&self, head: &Head<'_>) -> (Option<Arc<str>>, usize) {
        let named = self.spec.end_user.iter().enumerate().find_map(|(index, end_user)| match end_user {
            EndUser::Header(field) if self.spec.trusted.contains(head.peer) => {
                Some((Some(self.personal(Purpose::EndUser, head.text(field)?)?), index))
            }
            _ => None,
        });
        named.unwrap_or((None, self.spec.end_user.len()))
    }

    /// Returns a person's name: hashed, unless configured as plain. Without a hash key there is none.
    fn personal(&self, purpose: Purpose, text: &str) -> Option<Arc<str>> {
        let plain = match purpose {
            Purpose::EndUser => self.spec.plain_end_users,
            _ => self.spec.plain_principals,
        };
        if plain {
            return self.names.shared(text);
        }
        // The whole text is hashed: two texts that differ beyond a name's length get different hashes.
        let text = text.trim();
        bounded(text)?;
        Some(self.spec.hash.as_ref()?.name(purpose, text).into())
    }
}

/// The limit of verified tokens per request, since verification costs time: the first ones and the last,
/// because a server that accepts one of several takes the first or the last.
const MAX_VERIFIED_TOKENS: usize = 8;

/// The tenant of a request that no rule matches.
const DEFAULT: &str = "default";

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
