//! Reads the rules of a tenants file, by kind.

use std::collections::HashMap;
use std::path::Path;

use origin::fields::Fields;
use origin::file::{self, Node, Shape};
use origin::{Diagnostic, Origin};
use tenant::{
    Algorithm, ApiKeys, BodyKey, CertificateName, Claim, Jwt, KEY_FIELDS, KeyHash, KeySet, MAX_BODY_KEYS,
    Name, Owner, Rule, TenantPart, begins_path,
};
use text::{nearest, quoted};

use crate::rules_reader::RulesReader;
use crate::{Hash, KeySource, Place};

/// Rules of one file: each request tries them in order.
const RULES_MAX: usize = 1024;

impl RulesReader<'_> {
    pub(super) fn rules(&mut self, node: Node) -> Vec<Rule> {
        let items = match node.shape {
            Shape::List(items) => items,
            Shape::Nothing => Vec::new(),
            Shape::Scalar(_) | Shape::Map(_) => {
                self.report_error(&node.origin, "`rules` is not a list", "write each rule after a `-`");
                return Vec::new();
            }
        };
        if items.len() > RULES_MAX {
            let problem = format!("{} rules are listed", items.len());
            self.report_error(&node.origin, problem, format!("keep {RULES_MAX}; API keys share one rule"));
            return Vec::new();
        }
        let mut rules: Vec<(Rule, Origin)> = Vec::new();
        for item in items {
            let origin = item.origin.clone();
            if let Some(rule) = self.rule(item) {
                self.check_shadowed(&rules, &rule, &origin);
                rules.push((rule, origin));
            }
        }
        rules.into_iter().map(|(rule, _)| rule).collect()
    }

    /// Warns of a `path` rule that never matches because an earlier one matches all of its paths.
    fn check_shadowed(&mut self, earlier: &[(Rule, Origin)], rule: &Rule, origin: &Origin) {
        let Rule::Path { prefix, .. } = rule else { return };
        let shadow = earlier.iter().find_map(|(rule, origin)| match rule {
            Rule::Path { prefix: short, .. } if begins_path(prefix, short) => Some((short, origin)),
            _ => None,
        });
        if let Some((short, first)) = shadow {
            let problem = format!(
                "no request reaches the path rule `{prefix}`: `{short}` at {first} matches all of them"
            );
            self.warnings.push(Diagnostic::at(origin, problem, "put it before that one, or remove it"));
        }
    }

    fn rule(&mut self, item: Node) -> Option<Rule> {
        let (origin, kinds) = (item.origin.clone(), kinds(&item));
        let (kind, known) = match kinds[..] {
            [kind] => *KINDS.iter().find(|(known, _)| *known == kind)?,
            [] => return self.no_kind(item),
            [one, other, ..] => {
                let problem = format!("a rule has both `{one}` and `{other}`");
                self.report_error(&origin, problem, "split it into two rules; the first match applies");
                return None;
            }
        };
        let mut fields = self.fields(item, &format!("a `{kind}` rule"), known)?;
        let node = fields.take(kind)?;
        match kind {
            "jwt" => self.jwt(node),
            "api_keys" => self.api_keys(node, &mut fields),
            "certificate" => self.certificate(node, &mut fields),
            "header" => self.header(node, &mut fields),
            "body" => {
                let (text, origin) = self.text("body", node)?;
                self.body_key(&text, &origin).map(Rule::Body)
            }
            "path" => self.path(node, &mut fields),
            _ => {
                let nets = self.nets("peer", node);
                Some(Rule::Peer { nets, tenant: self.fixed_tenant(&mut fields)? })
            }
        }
    }

    fn no_kind(&mut self, item: Node) -> Option<Rule> {
        let names = KINDS.map(|(kind, _)| kind);
        let near = match &item.shape {
            Shape::Map(entries) => entries.iter().find_map(|(key, ..)| nearest(key, names)),
            _ => None,
        };
        let remedy = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("begin it with one of {}", names.join(", ")),
        };
        self.report_error(&item.origin, "the kind of a rule is missing", remedy);
        None
    }

    fn fixed_tenant(&mut self, fields: &mut Fields) -> Option<Name> {
        let node = fields.required("tenant", "add `tenant: NAME`", &mut self.errors)?;
        self.tenant("tenant", node)
    }

    fn header(&mut self, node: Node, fields: &mut Fields) -> Option<Rule> {
        let (text, origin) = self.text("header", node)?;
        let field = self.trusted_field(&text, &origin);
        let principal = fields.take("principal").and_then(|node| {
            let (text, origin) = self.text("principal", node)?;
            self.principals_hashed(&origin);
            self.trusted_field(&text, &origin)
        });
        let tenant = fields.take("workload").map_or(Some(TenantPart::Value), |node| self.workload(node));
        Some(Rule::Header { field: field?, tenant: tenant?, principal })
    }

    fn certificate(&mut self, node: Node, fields: &mut Fields) -> Option<Rule> {
        let (text, origin) = self.text("certificate", node)?;
        let name = CertificateName::ALL.into_iter().find(|name| name.name() == text);
        if name.is_none() {
            let problem = format!("`{}` is not a kind of name in a certificate", quoted(&text));
            let names = CertificateName::ALL.map(CertificateName::name);
            self.report_error(&origin, problem, format!("write one of {}", names.join(", ")));
        }
        let tenant = fields.take("workload").map_or(Some(TenantPart::Value), |node| self.workload(node));
        Some(Rule::Certificate { name: name?, tenant: tenant? })
    }

    /// Returns the part of a workload's identity that is the tenant.
    fn workload(&mut self, node: Node) -> Option<TenantPart> {
        let (text, origin) = self.text("workload", node)?;
        match &*text {
            "namespace" => Some(TenantPart::Namespace),
            "service_account" => Some(TenantPart::ServiceAccount),
            other => {
                let problem = format!("`{}` is not a part of a workload's identity", quoted(other));
                self.report_error(&origin, problem, "write namespace or service_account");
                None
            }
        }
    }

    /// Returns a header field that only trusted peers may set.
    pub(super) fn trusted_field(&mut self, text: &str, origin: &Origin) -> Option<Box<str>> {
        let field = self.field(text, origin)?;
        if SECRETS.contains(&&*field) || KEY_FIELDS.contains(&&*field) {
            let problem = format!("the value of `{field}` is a secret, not a name");
            self.report_error(
                origin,
                problem,
                "name a field that your gateway sets, or use `api_keys` or `jwt`",
            );
            return None;
        }
        if FRAMING.contains(&&*field) {
            let problem = format!("`{field}` belongs to HTTP and names no tenant");
            self.report_error(
                origin,
                problem,
                "name a field that your gateway sets for this, as in x-tenant",
            );
            return None;
        }
        if !self.trusts_peers {
            let problem = format!("no peer is trusted to set `{field}`");
            self.report_error(origin, problem, "list the peers under `trusted_peers`");
            return None;
        }
        Some(field)
    }

    fn field(&mut self, text: &str, origin: &Origin) -> Option<Box<str>> {
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if text.is_empty() || !text.bytes().all(token) {
            let problem = format!("`{}` is not a field name", quoted(text));
            self.report_error(origin, problem, "write the name alone, as in x-tenant");
            return None;
        }
        Some(text.to_ascii_lowercase().into())
    }

    pub(super) fn body_key(&mut self, text: &str, origin: &Origin) -> Option<BodyKey> {
        let key = match (text, text.split_once('.')) {
            ("user", _) => BodyKey::User,
            ("safety_identifier", _) => BodyKey::SafetyIdentifier,
            (_, Some(("metadata", key))) if (1..=64).contains(&key.len()) => BodyKey::Metadata(key.into()),
            _ => {
                let problem = format!("`{}` is not a supported member of the body", quoted(text));
                let remedy = "write user, safety_identifier or metadata.NAME (at most 64 bytes)";
                self.report_error(origin, problem, remedy);
                return None;
            }
        };
        // The first member over the limit is kept, too, so that it is reported once.
        if !self.members.contains(&key) && self.members.len() <= MAX_BODY_KEYS {
            self.members.push(key.clone());
            if self.members.len() > MAX_BODY_KEYS {
                let problem = format!("the rules need more than {MAX_BODY_KEYS} members of a body");
                let remedy = format!("keep {MAX_BODY_KEYS} distinct ones, those of `end_user` included");
                self.report_error(origin, problem, remedy);
            }
        }
        Some(key)
    }

    fn path(&mut self, node: Node, fields: &mut Fields) -> Option<Rule> {
        let (text, origin) = self.text("path", node)?;
        let strip = self.switch(fields, "strip").unwrap_or(false);
        let tenant = self.fixed_tenant(fields);
        let prefix = text.trim_end_matches('/');
        let graphic = prefix.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#".contains(&byte));
        let whole = prefix.split('/').skip(1).all(|segment| !["", ".", ".."].contains(&segment));
        if !prefix.starts_with('/') || !graphic || !whole {
            let problem = format!("`{}` is not a path prefix", quoted(&text));
            self.report_error(&origin, problem, "write `/` and whole segments, as in /teams/search");
            return None;
        }
        Some(Rule::Path { prefix: prefix.into(), tenant: tenant?, strip })
    }

    fn api_keys(&mut self, node: Node, rule: &mut Fields) -> Option<Rule> {
        let fields = rule.take("fields").map(|node| self.key_fields(node));
        self.needs_hash_key(&node.origin, "API keys are hashed", "");
        let Shape::List(items) = node.shape else {
            let remedy = "write each as `- {key: HASH, tenant: NAME}`";
            self.report_error(&node.origin, "`api_keys` is not a list", remedy);
            return None;
        };
        let mut seen: HashMap<[u8; 32], Origin> = HashMap::new();
        let mut keys = Vec::new();
        for item in items {
            let known = &["key", "tenant", "principal"];
            let Some(mut fields) = Fields::read_secret(item, "an API key", known, &mut self.errors) else {
                continue;
            };
            let remedy = "add `key: HASH`, as `tokenmeter tenants hash-key --hash-key-file FILE` prints it";
            let node = fields.required("key", remedy, &mut self.errors);
            let hash = node.and_then(|node| self.key_hash(node));
            let principal = fields.take("principal").and_then(|node| {
                let (text, origin) = self.text("principal", node)?;
                let name = Name::of(&text).filter(|_| text.len() <= tenant::NAME_MAX_BYTES);
                if name.is_none() {
                    let remedy = "write at most 128 bytes without control characters";
                    self.report_error(&origin, "the principal's name is invalid", remedy);
                }
                name
            });
            let tenant = self.fixed_tenant(&mut fields);
            let (Some((hash, origin)), Some(tenant)) = (hash, tenant) else { continue };
            if let Some(first) = seen.insert(hash.hash, origin.clone()) {
                let problem = format!("this API key is listed twice, first at {first}");
                self.report_error(&origin, problem, "remove one of them");
            }
            keys.push((hash, Owner { tenant, principal }));
        }
        let keys = ApiKeys::new(keys);
        Some(Rule::ApiKeys(match fields {
            Some(fields) => keys.in_fields(fields),
            None => keys,
        }))
    }

    /// Returns the header fields that may hold a key.
    fn key_fields(&mut self, node: Node) -> Vec<Box<str>> {
        let origin = node.origin.clone();
        let texts = self.texts("fields", node);
        if texts.len() > KEY_FIELDS_MAX {
            let problem = format!("{} fields may hold a key", texts.len());
            self.report_error(&origin, problem, format!("keep {KEY_FIELDS_MAX}"));
            return Vec::new();
        }
        texts.into_iter().filter_map(|(text, origin)| self.field(&text, &origin)).collect()
    }

    fn key_hash(&mut self, node: Node) -> Option<(KeyHash, Origin)> {
        let (text, origin) = self.text("key", node)?;
        let Some(hash) = KeyHash::read(&text) else {
            // The text may be the key itself, so the error does not repeat it.
            let remedy = "write what `tokenmeter tenants hash-key --hash-key-file FILE` prints; if this is a key in plain text, \
                          revoke it";
            self.report_error(&origin, "`key` is not the hash of an API key", remedy);
            return None;
        };
        if let Hash::Key(key) = &self.hash
            && key.mark() != hash.mark
        {
            let remedy = "hash the key again with this file, or set the file it was hashed with";
            self.report_error(&origin, "this hash was made with another hash key file", remedy);
            return None;
        }
        Some((hash, origin))
    }

    fn jwt(&mut self, node: Node) -> Option<Rule> {
        let mut fields = self.fields(node, "`jwt`", JWT)?;
        let origin = fields.origin.clone();
        let remedy = "add `keys: FILE` or `keys: https://…` with the issuer's JWKS";
        let node = fields.required("keys", remedy, &mut self.errors);
        let source = node.and_then(|node| self.text("keys", node));
        let source = source.and_then(|(text, origin)| self.source(&text, origin));
        let mut list = |reader: &mut Self, key: &str| -> Vec<Box<str>> {
            let texts = fields.take(key).map(|node| reader.texts(key, node)).unwrap_or_default();
            texts.into_iter().map(|(text, _)| text.into()).collect()
        };
        let (issuers, audiences) = (list(self, "issuer"), list(self, "audience"));
        if issuers.is_empty() {
            let remedy = "add `issuer: NAME`, the `iss` of the tokens";
            self.report_error(&origin, "`jwt` has no `issuer`", remedy);
        }
        if audiences.is_empty() {
            let problem =
                "without an `audience`, tokens that this issuer made for other services are accepted, too";
            self.warnings.push(Diagnostic::at(&origin, problem, "add the `aud` of your tokens"));
        }
        let algorithms = match fields.take("algorithms") {
            Some(node) => self.algorithms(node),
            None => Algorithm::ALL.to_vec(),
        };
        let remedy = "add `claim: NAME` for the tenant, or `claim: [NAME, NAME]` for a nested claim";
        let node = fields.required("claim", remedy, &mut self.errors);
        let tenant = node.and_then(|node| self.claim("claim", node));
        let principal = fields.take("principal").and_then(|node| {
            self.principals_hashed(&node.origin);
            self.claim("principal", node)
        });
        let leeway_s = fields.take("leeway_s").map_or(Some(LEEWAY_S), |node| self.leeway(node));
        let field = fields.take("header").map(|node| {
            let (text, origin) = self.text("header", node)?;
            self.field(&text, &origin)
        });
        Some(Rule::Jwt(Jwt {
            source: source?,
            keys: KeySet::default(),
            algorithms,
            issuers,
            audiences,
            tenant: tenant?,
            principal,
            leeway_s: leeway_s?,
            field: match field {
                Some(field) => Some(field?),
                None => None,
            },
        }))
    }

    fn principals_hashed(&mut self, origin: &Origin) {
        if self.hash_principals {
            self.needs_hash_key(origin, "principals are hashed", ", or write `hash_principals: false`");
        }
    }

    fn claim(&mut self, key: &str, node: Node) -> Option<Claim> {
        let names: Vec<Box<str>> = self.texts(key, node).into_iter().map(|(text, _)| text.into()).collect();
        (!names.is_empty()).then_some(Claim(names))
    }

    fn leeway(&mut self, node: Node) -> Option<u64> {
        let (text, origin) = self.text("leeway_s", node)?;
        let seconds = file::number(&text).filter(|seconds| *seconds <= LEEWAY_MAX_S);
        if seconds.is_none() {
            let problem = format!("`{}` is not a number of seconds", quoted(&text));
            self.report_error(&origin, problem, format!("write a whole number from 0 to {LEEWAY_MAX_S}"));
        }
        seconds
    }

    fn algorithms(&mut self, node: Node) -> Vec<Algorithm> {
        let mut all = Vec::new();
        for (text, origin) in self.texts("algorithms", node) {
            match Algorithm::from_name(&text) {
                Some(algorithm) => all.push(algorithm),
                None => {
                    let problem = format!("`{}` is not a supported algorithm", quoted(&text));
                    let names = Algorithm::ALL.map(Algorithm::name).join(", ");
                    self.report_error(&origin, problem, format!("write some of {names}"));
                }
            }
        }
        all
    }

    fn source(&mut self, text: &str, origin: Origin) -> Option<std::sync::Arc<str>> {
        let place = match text.split_once("://") {
            None => Place::File(self.path.parent().unwrap_or(Path::new("")).join(text)),
            Some((scheme, rest)) => {
                let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
                let parsed = text.parse::<http::Uri>().ok();
                if !["https", "http"].contains(&scheme) || authority.is_empty() || parsed.is_none() {
                    let remedy = "write https://HOST/PATH, or a file's path";
                    self.report_error(&origin, "`keys` is not an http(s) URL", remedy);
                    return None;
                }
                if authority.contains('@') {
                    self.report_error(&origin, "the URL of `keys` holds credentials", "remove them");
                    return None;
                }
                if scheme == "http" {
                    let problem = "anyone on the network path can replace keys that come over http://, and then act as \
                                any tenant";
                    self.warnings.push(Diagnostic::at(
                        &origin,
                        problem,
                        "use https:// unless the server is local",
                    ));
                }
                Place::Url(text.to_owned())
            }
        };
        let name = std::sync::Arc::<str>::from(text);
        if !self.sources.iter().any(|source| source.name == name) {
            self.sources.push(KeySource { name: name.clone(), place, origin });
        }
        Some(name)
    }
}

/// Returns the known kinds among a rule's keys.
fn kinds(item: &Node) -> Vec<&'static str> {
    let Shape::Map(entries) = &item.shape else { return Vec::new() };
    let is_there = |kind: &str| entries.iter().any(|(key, ..)| key == kind);
    KINDS.iter().map(|(kind, _)| *kind).filter(|kind| is_there(kind)).collect()
}

/// The kinds of rules, each with its keys.
const KINDS: [(&str, &[&str]); 7] = [
    ("jwt", &["jwt"]),
    ("api_keys", &["api_keys", "fields"]),
    ("certificate", &["certificate", "workload"]),
    ("header", &["header", "workload", "principal"]),
    ("body", &["body"]),
    ("path", &["path", "tenant", "strip"]),
    ("peer", &["peer", "tenant"]),
];

/// The keys of `jwt`.
const JWT: &[&str] =
    &["keys", "issuer", "audience", "claim", "principal", "algorithms", "leeway_s", "header"];

/// Header fields of a rule that may hold a key: each request tries them all.
const KEY_FIELDS_MAX: usize = 32;

/// Fields beside [`KEY_FIELDS`] whose value is a secret, which must not become a name in labels and reports (law 11).
const SECRETS: [&str; 2] = ["proxy-authorization", "cookie"];

/// Fields that requests need, so that they cannot be removed.
const FRAMING: [&str; 12] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The default leeway for clocks, in seconds.
const LEEWAY_S: u64 = 60;

/// The maximum leeway, in seconds.
const LEEWAY_MAX_S: u64 = 600;
