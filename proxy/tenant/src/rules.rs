//! The ordered list: first hit wins. A rule that comes after one that asks the body waits for it.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use crate::asked::{BodyFacts, Head, Pending, RuleKind, Said, Who};
use crate::credential;
use crate::hash::{HashKey, Purpose};
use crate::jwk::KeySet;
use crate::jwt::Jwt;
use crate::miss::{Distrust, Miss};
use crate::name::{Name, Names, bounded};
use crate::nets::Nets;
use crate::path::covered;
use crate::rule::{ApiKeys, BodyKey, EndUser, Rule};
use crate::verdicts::Verdicts;

/// What rules are made of.
#[derive(Clone, Debug, Default)]
pub struct Spec {
    /// The rules, in their order.
    pub rules: Vec<Rule>,
    /// Whose a request is that no rule hits; `default` if nobody is named.
    pub default: Option<Name>,
    /// Peers whose header fields are believed.
    pub trusted: Nets,
    /// Whether fields that only trusted peers may send are taken out of others' requests.
    pub strip_untrusted: bool,
    /// Where the end user is named: the first that says one.
    pub end_user: Vec<EndUser>,
    /// The keys of all hashes.
    pub hash: Option<HashKey>,
    /// Whether principals of claims and headers are told as they are, not as a hash.
    pub plain_principals: bool,
    /// Whether end users are told as they are, not as a hash.
    pub plain_end_users: bool,
}

/// Rules, ready to be asked. Cheap to ask, made anew to change.
#[derive(Debug)]
pub struct Rules {
    spec: Spec,
    default: Arc<str>,
    names: Names,
    /// Fields that only trusted peers may send.
    spoofable: Box<[Box<str>]>,
    wanted: Box<[BodyKey]>,
    /// Of each rule in its place; empty where a rule is not about tokens.
    verdicts: Box<[Verdicts]>,
}

impl Spec {
    /// The keys of a source, if a rule asks it.
    pub fn keys(&self, source: &str) -> Option<&KeySet> {
        self.rules.iter().find_map(|rule| match rule {
            Rule::Jwt(jwt) if *jwt.source == *source => Some(&jwt.keys),
            _ => None,
        })
    }

    /// The tenants that a request can be, if the rules name them all; `None` if tokens, headers or bodies
    /// say any name there is.
    pub fn tenants(&self) -> Option<BTreeSet<&str>> {
        let mut all: BTreeSet<&str> = [self.default.as_ref().map_or(DEFAULT, |name| name.text())].into();
        for rule in &self.rules {
            match rule {
                // Nobody's header is believed, so this rule names nobody.
                Rule::Header { .. } if self.trusted.is_empty() => {}
                Rule::Jwt(_) | Rule::Header { .. } | Rule::Body(_) => return None,
                Rule::ApiKeys(keys) => all.extend(keys.owners().map(|owner| &**owner.tenant.text())),
                Rule::Path { tenant, .. } | Rule::Peer { tenant, .. } => {
                    all.insert(tenant.text());
                }
            }
        }
        Some(all)
    }

    /// Gives every rule whose keys come from this source these keys.
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

/// A tenant, and perhaps a principal, that a rule found.
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
    /// Rules as told.
    pub fn new(spec: Spec) -> Self {
        let end_users = spec.end_user.iter().filter_map(|end_user| match end_user {
            EndUser::Header(field) => Some(field),
            EndUser::Body(_) => None,
        });
        let fields = spec.rules.iter().flat_map(Rule::spoofable).chain(end_users);
        let mut spoofable: Vec<Box<str>> = fields.cloned().collect();
        spoofable.sort();
        spoofable.dedup();
        let asked = spec.rules.iter().filter_map(|rule| match rule {
            Rule::Body(key) => Some(key),
            _ => None,
        });
        let end_users = spec.end_user.iter().filter_map(|end_user| match end_user {
            EndUser::Body(key) => Some(key),
            EndUser::Header(_) => None,
        });
        let mut wanted: Vec<BodyKey> = Vec::new();
        for key in asked.chain(end_users) {
            if !wanted.contains(key) {
                wanted.push(key.clone());
            }
        }
        let default = spec.default.as_ref().map_or_else(|| DEFAULT.into(), |name| name.text().clone());
        Self {
            default,
            names: Names::default(),
            spoofable: spoofable.into(),
            wanted: wanted.into(),
            verdicts: spec.rules.iter().map(|_| Verdicts::default()).collect(),
            spec,
        }
    }

    /// Whether any rule, or the end user, asks the body.
    pub fn needs_body(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// What is to be found in the body; nothing else of it is looked at.
    pub fn wanted(&self) -> &[BodyKey] {
        &self.wanted
    }

    /// Returns true if this peer is trusted to name tenants.
    pub fn trusts(&self, peer: IpAddr) -> bool {
        self.spec.trusted.contains(peer)
    }

    /// The fields that this peer may not send, to be ignored and counted; none if it is trusted.
    pub fn untrusted(&self, peer: IpAddr) -> impl Iterator<Item = &str> {
        let fields = if self.trusts(peer) { &[] } else { &*self.spoofable };
        fields.iter().map(|field| &**field)
    }

    /// Whether such fields are taken out as well.
    pub fn strips_untrusted(&self) -> bool {
        self.spec.strip_untrusted
    }

    /// How many bytes the upstream is spared at the beginning of this path: those of the first rule
    /// that covers it and says so, whichever rule decides the tenant. What remains begins with `/`,
    /// or is nothing, which means `/`: nothing is spared of a path whose next slash is an escaped one.
    pub fn strip(&self, path: &str) -> usize {
        let strips = self.spec.rules.iter().find_map(|rule| match rule {
            Rule::Path { prefix, strip: true, .. } => covered(path, prefix),
            _ => None,
        });
        let whole = |at: &usize| path.get(*at..).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        strips.filter(whole).unwrap_or(0)
    }

    /// Whose a request with this head is.
    pub fn head(&self, head: &Head<'_>) -> Said {
        self.judge(head).0
    }

    /// The same, and why its tokens were not believed, if it has some and no other of them was: of
    /// several the one that got furthest.
    pub fn judge(&self, head: &Head<'_>) -> (Said, Option<Distrust>) {
        let mut distrust = None;
        let hit = self.spec.rules.iter().enumerate().find_map(|(index, rule)| {
            match self.hit(index, rule, head) {
                Ok((hit, kind)) => return Some((index, hit, kind)),
                Err(Miss::Token(why)) => distrust = distrust.max(Some(why)),
                Err(_) => {}
            }
            None
        });
        let distrust = distrust.filter(|_| !matches!(hit, Some((.., RuleKind::Jwt))));
        (self.said(head, hit), distrust)
    }

    /// Each rule that was asked before one hit, and why it did not; `facts` are the body's, if it was
    /// read.
    pub fn misses(&self, head: &Head<'_>, facts: Option<&BodyFacts<'_>>) -> Vec<(&Rule, Miss)> {
        let mut misses = Vec::new();
        for (index, rule) in self.spec.rules.iter().enumerate() {
            let miss = match (rule, facts) {
                (Rule::Body(key), Some(facts)) => match facts.text(key).map(|text| self.names.tenant(text)) {
                    Some(Some(_)) => break,
                    Some(None) => Miss::NoName,
                    None => Miss::Absent,
                },
                _ => match self.hit(index, rule, head) {
                    Ok(_) => break,
                    Err(miss) => miss,
                },
            };
            misses.push((rule, miss));
            if miss == Miss::NoBody {
                break;
            }
        }
        misses
    }

    fn said(&self, head: &Head<'_>, hit: Option<(usize, Hit, RuleKind)>) -> Said {
        let (until, hit, rule) = hit.unwrap_or_else(|| {
            let default = Hit { tenant: self.default.clone(), principal: None };
            (self.spec.rules.len(), default, RuleKind::Default)
        });
        let (consumer, consumer_until) = self.end_user_of_head(head);
        let otherwise = Who { tenant: hit.tenant, principal: hit.principal, consumer, rule };
        let is_body = |rule: &Rule| matches!(rule, Rule::Body(_));
        let decided = !self.spec.rules[..until].iter().any(is_body);
        let names_end_user = |end_user: &EndUser| matches!(end_user, EndUser::Body(_));
        if decided && !self.spec.end_user[..consumer_until].iter().any(names_end_user) {
            return Said::Is(otherwise);
        }
        let unread = match decided {
            true => otherwise.clone(),
            false => Who {
                tenant: self.default.clone(),
                principal: None,
                consumer: otherwise.consumer.clone(),
                rule: RuleKind::Default,
            },
        };
        Said::AskBody(Pending { until, consumer_until, otherwise, unread, decided })
    }

    /// Whose it is, now that the body was read.
    pub fn body(&self, pending: Pending, facts: &BodyFacts<'_>) -> Who {
        let mut who = pending.otherwise;
        let rules = self.spec.rules.iter().take(pending.until);
        let named = rules.filter_map(|rule| match rule {
            Rule::Body(key) => self.names.tenant(facts.text(key)?),
            _ => None,
        });
        if let Some(tenant) = { named }.next() {
            who = Who { tenant, principal: None, consumer: who.consumer, rule: RuleKind::Body };
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
            Rule::Jwt(jwt) => (self.claimed(jwt, &self.verdicts[index], head)?, RuleKind::Jwt),
            Rule::ApiKeys(keys) => (self.known_key(keys, head)?, RuleKind::ApiKey),
            Rule::Header { field, principal } => {
                let sent = |at| (head.field)(field, at).is_some();
                if !self.spec.trusted.contains(head.peer) {
                    return Err(if sent(0) { Miss::Untrusted } else { Miss::Absent });
                }
                let tenant = head.text(field).and_then(|text| self.names.tenant(text));
                let tenant = tenant.ok_or_else(|| match (sent(0), sent(1)) {
                    (false, _) => Miss::Absent,
                    (true, false) => Miss::NoName,
                    (true, true) => Miss::Several,
                })?;
                let principal = principal.as_ref().and_then(|field| head.text(field));
                let principal = principal.and_then(|text| self.personal(Purpose::Principal, text));
                (Hit { tenant, principal }, RuleKind::Header)
            }
            Rule::Path { prefix, tenant, .. } if covered(head.path, prefix).is_some() => {
                (fixed(tenant), RuleKind::Path)
            }
            Rule::Peer { nets, tenant } if nets.contains(head.peer) => (fixed(tenant), RuleKind::Peer),
            Rule::Path { .. } | Rule::Peer { .. } => return Err(Miss::Elsewhere),
            Rule::Body(_) => return Err(Miss::NoBody),
        })
    }

    fn claimed(&self, jwt: &Jwt, verdicts: &Verdicts, head: &Head<'_>) -> Result<Hit, Miss> {
        let mut furthest = None;
        let mut hit = |token: &[u8]| {
            let found = self.believed(jwt, verdicts, head.now_unix_s, token);
            found.map_err(|why| furthest = furthest.max(Some(why))).ok()
        };
        let mut tokens = jwt.tokens(head);
        let among_first = tokens.by_ref().take(TOKENS_MOST - 1).find_map(&mut hit);
        let found = among_first.or_else(|| hit(tokens.last()?));
        found.ok_or_else(|| furthest.map_or(Miss::Absent, Miss::Token))
    }

    fn believed(&self, jwt: &Jwt, verdicts: &Verdicts, now: u64, token: &[u8]) -> Result<Hit, Distrust> {
        let claims = verdicts.of(token, || jwt.claims(token))?;
        if now < claims.from {
            return Err(Distrust::Early);
        }
        if now >= claims.until {
            return Err(Distrust::Expired);
        }
        let principal = claims.principal.as_ref();
        let principal = principal.and_then(|text| self.personal(Purpose::Principal, text));
        Ok(Hit { tenant: self.names.tenant(&claims.tenant).ok_or(Distrust::Tenant)?, principal })
    }

    fn known_key(&self, keys: &ApiKeys, head: &Head<'_>) -> Result<Hit, Miss> {
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

    /// The end user that the head names, and before which place in the list the body comes first.
    fn end_user_of_head(&self, head: &Head<'_>) -> (Option<Arc<str>>, usize) {
        let named = self.spec.end_user.iter().enumerate().find_map(|(index, end_user)| match end_user {
            EndUser::Header(field) if self.spec.trusted.contains(head.peer) => {
                Some((Some(self.personal(Purpose::EndUser, head.text(field)?)?), index))
            }
            _ => None,
        });
        named.unwrap_or((None, self.spec.end_user.len()))
    }

    /// A person's name: hashed, unless told otherwise. Without a key to hash with there is none.
    fn personal(&self, purpose: Purpose, text: &str) -> Option<Arc<str>> {
        let plain = match purpose {
            Purpose::EndUser => self.spec.plain_end_users,
            _ => self.spec.plain_principals,
        };
        if plain {
            return self.names.shared(text);
        }
        // The whole text is hashed: two that differ beyond what a name may hold stay two.
        let text = text.trim();
        bounded(text)?;
        Some(self.spec.hash.as_ref()?.name(purpose, text).into())
    }
}

/// Tokens of one request that are verified, which costs time: the first ones and the last, since a
/// server that takes one of several takes the first or the last.
const TOKENS_MOST: usize = 8;

/// Whose a request is that no rule hits.
const DEFAULT: &str = "default";

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
