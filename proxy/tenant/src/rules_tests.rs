//! The rules against an oracle that has the whole request at once.

use std::net::IpAddr;

use proptest::prelude::*;

use super::{Rules, Spec};
use crate::certificate::{CertificateName, CertificateNames};
use crate::hash::HashKey;
use crate::jwk::{Algorithm, KeySet};
use crate::jwt::{Claim, Jwt};
use crate::name::Name;
use crate::nets::Nets;
use crate::request::{BodyFacts, Head, Resolution, TenantIdentity};
use crate::rule::{ApiKeys, BodyKey, EndUser, Owner, Rule, TenantPart};
use meter::{RuleKind, TokenRejection};

fn key() -> HashKey {
    HashKey::of(b"thirty-two bytes for the tests..").unwrap()
}

/// A whole request.
#[derive(Clone, Debug)]
struct Request {
    peer: [u8; 4],
    certificate: Option<CertificateNames>,
    path: &'static str,
    /// A name may occur several times.
    fields: Vec<(&'static str, &'static str)>,
    user: Option<&'static str>,
    team: Option<&'static str>,
}

impl Request {
    fn resolve(&self, rules: &Rules, read_body: bool) -> TenantIdentity {
        let field = |name: &str, at| self.values(name).nth(at).map(str::as_bytes);
        let head = Head {
            peer: IpAddr::from(self.peer),
            certificate: self.certificate.as_ref(),
            path: self.path,
            field: &field,
            now_unix_s: 0,
        };
        let metadata: Vec<(&str, &[u8])> = self.team.iter().map(|team| ("team", team.as_bytes())).collect();
        let facts =
            BodyFacts { user: self.user.map(str::as_bytes), safety_identifier: None, metadata: &metadata };
        match rules.head(&head) {
            Resolution::Resolved(who) => who,
            Resolution::NeedsBody(pending) => {
                assert!(rules.needs_body());
                match read_body {
                    true => rules.body(pending, &facts),
                    false => pending.unread(),
                }
            }
        }
    }

    fn values(&self, name: &str) -> impl Iterator<Item = &'static str> {
        self.fields.iter().filter(move |(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// The value of a field that occurs once.
    fn only(&self, name: &str) -> Option<&'static str> {
        let values: Vec<_> = self.values(name).collect();
        if let [only] = values[..] { Some(only).filter(|text| !text.is_empty()) } else { None }
    }

    fn member(&self, key: &BodyKey) -> Option<&'static str> {
        let text = match key {
            BodyKey::User => self.user,
            BodyKey::SafetyIdentifier => None,
            BodyKey::Metadata(_) => self.team,
        };
        text.filter(|text| !text.is_empty())
    }

    /// The tenant by the oracle: everything at once, in the order of the list.
    fn by_oracle(&self, spec: &Spec) -> (String, RuleKind) {
        let trusted = self.peer[0] == 10;
        for rule in &spec.rules {
            let hit = match rule {
                Rule::Jwt(_) => None,
                Rule::ApiKeys(_) => {
                    let spellings = ["sk-1", "Bearer sk-1", "Basic sk-1", "Basic dXNlcjpzay0x"];
                    let is_key =
                        |(name, value): &(&str, &str)| *name != "x-tenant" && spellings.contains(value);
                    self.fields.iter().any(is_key).then_some("keyed")
                }
                Rule::Certificate { name, .. } => {
                    let names = self.certificate.iter().flat_map(|certificate| &certificate.names);
                    let names: Vec<_> = names.filter(|(kind, _)| kind == name).collect();
                    if let [(_, only)] = names[..] {
                        Some(&**only).filter(|text| !text.is_empty())
                    } else {
                        None
                    }
                }
                Rule::Header { field, .. } => self.only(field).filter(|_| trusted),
                Rule::Body(key) => self.member(key),
                Rule::Path { prefix, .. } => {
                    let path = unescaped(self.path);
                    let segments: Vec<_> = path.split('/').filter(|segment| !segment.is_empty()).collect();
                    let wanted: Vec<_> = prefix.split('/').skip(1).collect();
                    segments.starts_with(&wanted).then_some("pathed")
                }
                Rule::Peer { .. } => (self.peer[..2] == [10, 1]).then_some("near"),
            };
            let kind = match rule {
                Rule::Jwt(_) => RuleKind::Jwt,
                Rule::ApiKeys(_) => RuleKind::ApiKey,
                Rule::Certificate { .. } => RuleKind::Certificate,
                Rule::Header { .. } => RuleKind::Header,
                Rule::Body(_) => RuleKind::Body,
                Rule::Path { .. } => RuleKind::Path,
                Rule::Peer { .. } => RuleKind::Peer,
            };
            if let Some(tenant) = hit {
                return (tenant.to_owned(), kind);
            }
        }
        ("fallback".to_owned(), RuleKind::Default)
    }

    fn end_user_by_oracle(&self, spec: &Spec) -> Option<&'static str> {
        spec.end_user.iter().find_map(|end_user| match end_user {
            EndUser::Body(key) => self.member(key),
            EndUser::Header(field) => self.only(field).filter(|_| self.peer[0] == 10),
        })
    }
}

/// Replaces each escape by its character, in one pass.
fn unescaped(path: &str) -> String {
    let mut parts = path.split('%');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..2).map(|hex| u8::from_str_radix(hex, 16)) {
            Some(Ok(byte)) => plain.extend([char::from(byte).to_string().as_str(), &part[2..]]),
            _ => plain.extend(["%", part]),
        }
    }
    plain
}

fn name(text: &str) -> Name {
    Name::of(text).unwrap()
}

fn rule() -> impl Strategy<Value = Rule> {
    let owner = Owner { tenant: name("keyed"), principal: Some(name("laptop")) };
    prop_oneof![
        Just(Rule::ApiKeys(ApiKeys::new([(key().api_key(b"sk-1"), owner)]))),
        Just(Rule::Header { field: "x-tenant".into(), tenant: TenantPart::Value, principal: None }),
        Just(Rule::Certificate { name: CertificateName::Dns, tenant: TenantPart::Value }),
        Just(Rule::Body(BodyKey::User)),
        Just(Rule::Body(BodyKey::Metadata("team".into()))),
        Just(Rule::Path { prefix: "/t/a".into(), tenant: name("pathed"), strip: true }),
        Just(Rule::Peer { nets: Nets::read(["10.1.0.0/16"]).unwrap(), tenant: name("near") }),
    ]
}

fn spec() -> impl Strategy<Value = Spec> {
    let end_user = prop_oneof![
        Just(EndUser::Body(BodyKey::User)),
        Just(EndUser::Body(BodyKey::Metadata("team".into()))),
        Just(EndUser::Header("x-user".into())),
    ];
    let lists = (proptest::collection::vec(rule(), 0..6), proptest::collection::vec(end_user, 0..3));
    lists.prop_map(|(rules, end_user)| Spec {
        rules,
        end_user,
        default: Some(name("fallback")),
        trusted: Nets::read(["10.0.0.0/8"]).unwrap(),
        hash: Some(key()),
        plain_end_users: true,
        ..Spec::default()
    })
}

fn request() -> impl Strategy<Value = Request> {
    let text = || prop_oneof![Just(None), Just(Some("")), Just(Some("x")), Just(Some("y"))];
    let field = |name| text().prop_map(move |value| value.map(|value| (name, value)));
    let key = prop_oneof![
        Just(("x-api-key", "sk-1")),
        Just(("x-api-key", "sk-2")),
        Just(("authorization", "Bearer sk-1")),
        Just(("authorization", "Bearer sk-2")),
        Just(("authorization", "Basic sk-1")),
        Just(("authorization", "Basic dXNlcjpzay0x")),
        Just(("authorization", "sk-1")),
        Just(("x-litellm-api-key", "Bearer sk-1")),
        Just(("ocp-apim-subscription-key", "sk-1")),
        Just(("x-other-key", "sk-2")),
    ];
    let keys = proptest::collection::vec(key, 0..4);
    let again = field("x-tenant");
    let peer = prop_oneof![Just([10, 1, 0, 1]), Just([10, 2, 0, 1]), Just([192, 0, 2, 1])];
    let path = prop::sample::select(vec![
        "/v1/x",
        "/t/a",
        "/t/a/v1",
        "/t/ab",
        "/t",
        "/",
        "/t/%61",
        "/%74/a/v1",
        "//t///a//v1",
        "/t%2Fa/v1",
        "/t/a%2fv1",
        "/t%2F/%61%62",
        "/t/%2561",
        "/t/a%",
        "/t/a%2",
        "/t%",
        "/t/a/",
    ]);
    let certificate = prop_oneof![
        Just(None),
        Just(Some(vec![(CertificateName::Uri, "x".to_owned())])),
        Just(Some(vec![(CertificateName::Dns, "x".to_owned()), (CertificateName::Uri, "y".to_owned())])),
        Just(Some(vec![(CertificateName::Dns, "x".to_owned()), (CertificateName::Dns, "y".to_owned())])),
        Just(Some(vec![(CertificateName::Dns, String::new())])),
    ];
    let certificate = certificate.prop_map(|names| names.map(|names| CertificateNames { names }));
    (peer, certificate, path, keys, field("x-tenant"), again, field("x-user"), text(), text()).prop_map(
        |(peer, certificate, path, keys, tenant, again, end_user, user, team)| Request {
            peer,
            certificate,
            path,
            fields: keys.into_iter().chain([tenant, again, end_user].into_iter().flatten()).collect(),
            user,
            team,
        },
    )
}

proptest! {
    #![proptest_config(chance::cases(4096))]

    #[test]
    fn the_rules_agree_with_the_oracle(spec in spec(), request in request()) {
        let rules = Rules::new(spec.clone());
        let who = request.resolve(&rules, true);
        let (tenant, kind) = request.by_oracle(&spec);
        prop_assert_eq!((&*who.tenant, who.rule), (&*tenant, kind));
        prop_assert_eq!(who.consumer.as_deref(), request.end_user_by_oracle(&spec));
        prop_assert_eq!(who.principal.as_deref(), (kind == RuleKind::ApiKey).then_some("laptop"));
    }

    /// An unread body yields the default tenant, unless no body rule comes first.
    #[test]
    fn an_unread_body_yields_the_default(spec in spec(), request in request()) {
        let rules = Rules::new(spec.clone());
        let silent = Request { user: None, team: None, ..request.clone() };
        let (tenant, kind) = silent.by_oracle(&spec);
        let hits = |rule: &Rule| silent.by_oracle(&Spec { rules: vec![rule.clone()], ..spec.clone() }).1 == kind;
        let before = spec.rules.iter().take_while(|rule| kind == RuleKind::Default || !hits(rule));
        let needs_body = { before }.any(|rule| matches!(rule, Rule::Body(_)));
        let who = request.resolve(&rules, false);
        let expected = if needs_body { ("fallback", RuleKind::Default) } else { (&*tenant, kind) };
        prop_assert_eq!((&*who.tenant, who.rule), expected);
    }
}

#[test]
fn without_rules_every_tenant_is_the_default() {
    let rules = Rules::default();
    let request = Request {
        peer: [10, 1, 0, 1],
        certificate: None,
        path: "/",
        fields: Vec::new(),
        user: Some("u"),
        team: None,
    };
    let who = request.resolve(&rules, true);
    assert_eq!((&*who.tenant, who.rule), ("default", RuleKind::Default));
    assert_eq!((who.principal, who.consumer), (None, None));
    assert!(!rules.needs_body());
}

/// A token with these claims, signed by a test key, and the set with that key.
fn signed(claims: &str) -> (String, KeySet) {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
    use ring::signature::{Ed25519KeyPair, KeyPair};
    let key = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
    let message = format!("{}.{}", BASE64.encode(r#"{"alg":"EdDSA"}"#), BASE64.encode(claims));
    let x = BASE64.encode(key.public_key());
    let set = format!(r#"{{"keys":[{{"kty":"OKP","crv":"Ed25519","x":"{x}"}}]}}"#);
    let token = format!("Bearer {message}.{}", BASE64.encode(key.sign(message.as_bytes())));
    (token, KeySet::read(set.as_bytes()).unwrap())
}

#[test]
fn a_cached_token_counts_in_its_time_only() {
    for (tenant, now, who) in [
        ("acme", 1500, "acme"),
        ("acme", 999, "default"),
        ("acme", 1000, "acme"),
        ("acme", 1999, "acme"),
        ("acme", 2000, "default"),
        ("_other", 1500, "default"),
    ] {
        let claims = format!(r#"{{"iss":"i","nbf":1000,"exp":2000,"tenant":"{tenant}","sub":"ann"}}"#);
        let (token, keys) = signed(&claims);
        let jwt = Jwt {
            source: "keys".into(),
            keys,
            algorithms: vec![Algorithm::EdDsa],
            issuers: vec!["i".into()],
            audiences: vec![],
            tenant: Claim(vec!["tenant".into()]),
            principal: Some(Claim(vec!["sub".into()])),
            leeway_s: 0,
            field: None,
        };
        let spec = Spec { rules: vec![Rule::Jwt(jwt)], plain_principals: true, ..Spec::default() };
        assert!(spec.keys("keys").is_some() && spec.keys("other").is_none());
        let rules = Rules::new(spec);
        assert!(!rules.strips_untrusted(), "only if configured");
        // Beside invalid tokens, and sent twice.
        let sent = [&b"Basic YTpi"[..], b"Bearer a.b.c", token.as_bytes(), token.as_bytes()];
        let field = |name: &str, at: usize| sent.get(at).filter(|_| name == "authorization").copied();
        let ask = |now_unix_s| {
            let head = Head {
                peer: IpAddr::from([10, 0, 0, 1]),
                certificate: None,
                path: "/",
                field: &field,
                now_unix_s,
            };
            match rules.head(&head) {
                Resolution::Resolved(who) => who,
                Resolution::NeedsBody(_) => unreachable!("no rule here needs the body"),
            }
        };
        // A valid time first: the cached result must not outlive it.
        ask(1500);
        let resolved = ask(now);
        assert_eq!(&*resolved.tenant, who, "{tenant} at {now}");
        let principal = (who != "default").then_some("ann");
        assert_eq!(resolved.principal.as_deref(), principal, "{tenant} at {now}");
    }
}

#[test]
fn missed_key_is_that_of_its_source_once() {
    let (token, _) = signed(r#"{"iss":"i","exp":2000,"tenant":"acme"}"#);
    let jwt = |source: &str| {
        Rule::Jwt(Jwt {
            source: source.into(),
            keys: KeySet::default(),
            algorithms: if source == "keys" { vec![Algorithm::EdDsa] } else { vec![] },
            issuers: vec!["i".into()],
            audiences: vec![],
            tenant: Claim(vec!["tenant".into()]),
            principal: None,
            leeway_s: 0,
            field: None,
        })
    };
    let rules = Rules::new(Spec { rules: vec![jwt("keys"), jwt("others")], ..Spec::default() });
    assert!(rules.needs_time() && !Rules::default().needs_time());
    assert!(!rules.take_missed("keys"));
    let field = |name: &str, at: usize| (name == "authorization" && at == 0).then_some(token.as_bytes());
    rules.head(&Head {
        peer: IpAddr::from([10, 0, 0, 1]),
        certificate: None,
        path: "/",
        field: &field,
        now_unix_s: 1500,
    });
    assert!(!rules.take_missed("others"), "its rule does not allow the algorithm");
    assert!(!rules.take_missed("absent"));
    assert!(rules.take_missed("keys") && !rules.take_missed("keys"));
}

#[test]
fn a_body_cannot_name_a_reserved_tenant() {
    let rules = Rules::new(Spec { rules: vec![Rule::Body(BodyKey::User)], ..Spec::default() });
    for (user, tenant) in [("_other", "default"), ("other", "other"), ("a\0", "default")] {
        let request = Request {
            peer: [10, 0, 0, 1],
            certificate: None,
            path: "/",
            fields: Vec::new(),
            user: Some(user),
            team: None,
        };
        assert_eq!(&*request.resolve(&rules, true).tenant, tenant);
    }
}

#[test]
fn each_needed_member_is_wanted_once() {
    let rules = Rules::new(Spec {
        rules: vec![Rule::Body(BodyKey::User), Rule::Body(BodyKey::Metadata("team".into()))],
        end_user: vec![EndUser::Body(BodyKey::User), EndUser::Header("x-user".into())],
        ..Spec::default()
    });
    assert_eq!(rules.body_keys(), [BodyKey::User, BodyKey::Metadata("team".into())]);
}

#[test]
fn tenant_is_known_before_the_end_user() {
    let near = Rule::Peer { nets: Nets::read(["10.0.0.1"]).unwrap(), tenant: name("near") };
    let end_user = vec![EndUser::Body(BodyKey::User)];
    for (rules, tenant) in [
        (vec![near.clone(), Rule::Body(BodyKey::User)], Some("near")),
        (vec![Rule::Body(BodyKey::User), near], None),
        (vec![], Some("default")),
    ] {
        let rules =
            Rules::new(Spec { rules, end_user: end_user.clone(), hash: Some(key()), ..Spec::default() });
        let none = |_: &str, _| None;
        let head = Head {
            peer: IpAddr::from([10, 0, 0, 1]),
            certificate: None,
            path: "/",
            field: &none,
            now_unix_s: 0,
        };
        let Resolution::NeedsBody(pending) = rules.head(&head) else { panic!("the end user is in the body") };
        assert_eq!(pending.tenant().map(|tenant| &**tenant), tenant);
    }
}

#[test]
fn persons_are_hashed_unless_configured_as_plain() {
    let trusted = Nets::read(["10.0.0.0/8"]).unwrap();
    let rules = vec![Rule::Header {
        field: "x-tenant".into(),
        tenant: TenantPart::Value,
        principal: Some("x-user".into()),
    }];
    let end_user = vec![EndUser::Header("x-user".into())];
    let request = Request {
        peer: [10, 0, 0, 1],
        certificate: None,
        path: "/",
        fields: vec![("x-tenant", "acme"), ("x-user", "ann@example.com")],
        user: None,
        team: None,
    };
    let spec = Spec { rules, end_user, trusted, ..Spec::default() };
    let names = |spec: Spec| {
        let who = request.resolve(&Rules::new(spec), true);
        (who.principal.map(|it| it.to_string()), who.consumer.map(|it| it.to_string()))
    };
    assert_eq!(names(spec.clone()), (None, None), "without a key file");
    let ann = Some("ann@example.com".to_owned());
    assert_eq!(
        names(Spec { plain_principals: true, plain_end_users: true, ..spec.clone() }),
        (ann.clone(), ann)
    );
    let (Some(principal), Some(consumer)) = names(Spec { hash: Some(key()), ..spec }) else { panic!() };
    assert!(principal.len() == 32 && consumer.len() == 32 && principal != consumer, "{principal} {consumer}");
}

#[test]
fn a_path_is_stripped_by_whole_segments() {
    let path = |prefix: &str, strip| Rule::Path { prefix: prefix.into(), tenant: name("pathed"), strip };
    let near = Rule::Peer { nets: Nets::read(["10.0.0.0/8"]).unwrap(), tenant: name("near") };
    let rules = vec![near, path("/kept", false), path("/t/a", true), path("/é世", true)];
    let rules = Rules::new(Spec { rules, ..Spec::default() });
    for (path, strip) in [
        ("/t/a/v1/chat/completions", 4),
        ("/t/a", 4),
        ("/t/a/", 4),
        ("/t/ab/v1", 0),
        ("/T/a/v1", 0),
        ("/t", 0),
        ("/kept/v1", 0),
        ("/v1/t/a", 0),
        ("/t/%61/v1", 6),
        ("//t//a//v1", 6),
        ("/%74%2Fa/v1", 8),
        ("/t/%u0061/v1", 9),
        ("/t%u002Fa/v1", 9),
        ("/t/%ud800a/v1", 10),
        ("/t/a%u0062/v1", 0),
        ("/t/%u006/v1", 0),
        ("/t/%U0061/v1", 0),
        ("/%u00e9%u4E16/v1", 13),
        ("/%C3%a9世/v1", 10),
        ("/%u00ea%u4E16/v1", 0),
        ("/t/a%2Fv1", 0),
        ("/t/a%62/v1", 0),
        ("/t/%2561/v1", 0),
        ("/t/a%/v1", 0),
        ("", 0),
    ] {
        assert_eq!(rules.strip(path), strip, "{path}");
    }
}

/// Tokens of a request count as rejected only if no rule accepts any of them.
#[test]
fn token_accepted_by_a_rule_is_not_rejected() {
    let rows: Vec<serde_json::Value> =
        serde_json::from_str(include_str!("../tests/tokens/tokens.json")).unwrap();
    let token = |name: &str| {
        let row = rows.iter().find(|row| row["name"] == name).unwrap();
        format!("Bearer {}", row["token"].as_str().unwrap())
    };
    let rule = |issuer: &str| {
        Rule::Jwt(Jwt {
            source: "keys.json".into(),
            keys: KeySet::read(include_bytes!("../tests/tokens/keys.json")).unwrap(),
            algorithms: Algorithm::ALL.to_vec(),
            issuers: vec![issuer.into()],
            audiences: vec!["tokenmeter".into()],
            tenant: Claim(vec!["tenant".into()]),
            principal: None,
            leeway_s: 0,
            field: None,
        })
    };
    let rules = Rules::new(Spec {
        rules: vec![rule("https://other.example"), rule("https://id.example")],
        ..Spec::default()
    });
    for (names, now, why) in [
        (&["RS256"][..], 1_800_000_000, None),
        (&["RS256"], 3_000_000_000, Some(TokenRejection::Expired)),
        (&["RS256"], 1, Some(TokenRejection::Early)),
        (&["alg none", "RS256"], 1_800_000_000, None),
        (&["alg none", "an unknown id"], 1_800_000_000, Some(TokenRejection::UnknownKey)),
        (&["an unknown id", "alg none"], 1_800_000_000, Some(TokenRejection::UnknownKey)),
        (&[], 1_800_000_000, None),
    ] {
        let sent: Vec<String> = names.iter().map(|name| token(name)).collect();
        let field =
            |name: &str, at: usize| sent.get(at).filter(|_| name == "authorization").map(String::as_bytes);
        let head = Head {
            peer: IpAddr::from([10, 0, 0, 1]),
            certificate: None,
            path: "/",
            field: &field,
            now_unix_s: now,
        };
        // The second time from the cache.
        for _ in 0..2 {
            assert_eq!(rules.resolve_head(&head).1, why, "{names:?} {now}");
        }
    }
}

#[test]
fn possible_tenants_are_known_for_fixed_rules() {
    let peer = |tenant: &str| Rule::Peer {
        nets: Nets::read(["10.0.0.0/8"]).unwrap(),
        tenant: Name::of(tenant).unwrap(),
    };
    let spec = |rules, trusted: &[&str]| Spec {
        rules,
        trusted: Nets::read(trusted.iter().copied()).unwrap(),
        ..Spec::default()
    };
    let header = || Rule::Header { field: "x-tenant".into(), tenant: TenantPart::Value, principal: None };
    let names = |spec: &Spec| spec.tenants().map(|all| all.into_iter().collect::<Vec<_>>().join(" "));
    assert_eq!(names(&Spec::default()).as_deref(), Some("default"));
    assert_eq!(names(&spec(vec![peer("b"), peer("a")], &[])).as_deref(), Some("a b default"));
    assert_eq!(
        names(&spec(vec![peer("a"), header()], &[])).as_deref(),
        Some("a default"),
        "no peer is trusted"
    );
    assert_eq!(names(&spec(vec![peer("a"), header()], &["10.0.0.1"])), None);
    assert_eq!(names(&spec(vec![peer("a"), Rule::Body(BodyKey::User)], &[])), None);
}
