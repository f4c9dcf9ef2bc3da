//! Tokens signed and forged by another implementation (tests/tokens/make.py), accepted and rejected.

use std::net::IpAddr;

use proptest::prelude::*;
use serde_json::Value;

use super::{Claim, Jwt, TOKEN_MAX_BYTES};
use crate::jwk::{Algorithm, KeySet};
use crate::request::Head;
use meter::TokenRejection;

const KEYS: &str = include_str!("../tests/tokens/keys.json");
const TOKENS: &str = include_str!("../tests/tokens/tokens.json");

/// Between the usual `nbf` and the usual `exp`.
const NOW: u64 = 1_800_000_000;

fn rule() -> Jwt {
    Jwt {
        source: "keys.json".into(),
        keys: KeySet::read(KEYS.as_bytes()).unwrap(),
        algorithms: Algorithm::ALL.to_vec(),
        issuers: vec!["https://id.example".into()],
        audiences: vec!["tokenmeter".into()],
        tenant: claim(&["tenant"]),
        principal: Some(claim(&["sub"])),
        leeway_s: 60,
        field: None,
    }
}

fn claim(names: &[&str]) -> Claim {
    Claim(names.iter().map(|name| (*name).into()).collect())
}

fn tokens() -> Vec<(String, bool, String)> {
    let rows: Vec<Value> = serde_json::from_str(TOKENS).unwrap();
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    rows.iter().map(|row| (text(row, "name"), row["good"] == true, text(row, "token"))).collect()
}

fn token(name: &str) -> String {
    tokens().into_iter().find(|(known, ..)| known == name).unwrap().2
}

/// The tenant of a token at a time.
fn tenant(rule: &Jwt, token: &str, now: u64) -> Option<String> {
    let claims = rule.claims(token.as_bytes()).ok()?;
    (claims.from..claims.until).contains(&now).then(|| claims.tenant.to_string())
}

#[test]
fn only_valid_tokens_are_accepted() {
    let rule = rule();
    assert_eq!(rule.keys.len(), 4, "of seven: those for encryption, secrets and unknown curves are skipped");
    for (name, good, token) in tokens() {
        assert_eq!(tenant(&rule, &token, NOW), good.then(|| "acme".to_owned()), "{name}");
    }
}

#[test]
fn rejected_tokens_have_a_reason() {
    let why = |name: &str| rule().claims(token(name).as_bytes()).err();
    for (name, expected) in [
        ("RS256", None),
        ("no payload", Some(TokenRejection::Signature)),
        ("a fourth part", Some(TokenRejection::Malformed)),
        ("critical header", Some(TokenRejection::Malformed)),
        ("an id that is no text", Some(TokenRejection::Malformed)),
        ("alg none", Some(TokenRejection::Algorithm)),
        ("HS256 with the modulus", Some(TokenRejection::Algorithm)),
        ("an unknown id", Some(TokenRejection::UnknownKey)),
        ("another key under our id", Some(TokenRejection::Signature)),
        ("another key and no id", Some(TokenRejection::Signature)),
        ("other claims", Some(TokenRejection::Signature)),
        ("another issuer", Some(TokenRejection::Issuer)),
        ("no issuer", Some(TokenRejection::Issuer)),
        ("another audience", Some(TokenRejection::Audience)),
        ("no exp", Some(TokenRejection::Times)),
        ("no tenant", Some(TokenRejection::Tenant)),
    ] {
        assert_eq!(why(name), expected, "{name}");
    }
    let keyless = Jwt { keys: KeySet::default(), ..rule() };
    for name in ["RS256", "no kid"] {
        assert_eq!(keyless.claims(token(name).as_bytes()), Err(TokenRejection::UnknownKey), "{name}");
    }
}

#[test]
fn a_disallowed_algorithm_is_rejected() {
    for allowed in Algorithm::ALL {
        let rule = Jwt { algorithms: vec![allowed], ..rule() };
        for other in Algorithm::ALL {
            let taken = tenant(&rule, &token(other.name()), NOW).is_some();
            assert_eq!(taken, allowed == other, "{} where only {} may be", other.name(), allowed.name());
        }
    }
}

#[test]
fn a_key_with_alg_verifies_only_that_algorithm() {
    let only = KEYS.replace("\"kid\": \"rsa\"", "\"kid\": \"rsa\", \"alg\": \"PS384\"");
    let rule = Jwt { keys: KeySet::read(only.as_bytes()).unwrap(), ..rule() };
    for name in ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"] {
        assert_eq!(tenant(&rule, &token(name), NOW).is_some(), name == "PS384", "{name}");
    }
}

#[test]
fn times_are_checked_with_leeway() {
    let rule = rule();
    let token = token("EdDSA");
    for (now, taken) in [
        (1_699_999_939, false),
        (1_699_999_940, true),
        (2_000_000_059, true),
        (2_000_000_060, false),
        (u64::MAX, false),
        (0, false),
    ] {
        assert_eq!(tenant(&rule, &token, now).is_some(), taken, "{now}");
    }
    let strict = Jwt { leeway_s: 0, ..rule };
    assert!(tenant(&strict, &token, 1_999_999_999).is_some());
    assert!(tenant(&strict, &token, 2_000_000_000).is_none());
    let fraction = self::token("exp with a fraction");
    assert!(tenant(&strict, &fraction, 1_999_999_999).is_some());
    assert!(tenant(&strict, &fraction, 2_000_000_000).is_none());
    assert!(tenant(&strict, &self::token("no nbf"), 0).is_some());
}

#[test]
fn a_claim_is_found_by_its_path() {
    let token = token("EdDSA");
    for (path, tenant) in [
        (&["realm", "tenant", "id"][..], Some("deep")),
        (&["realm", "number"], Some("42")),
        (&["https://example.com/tenant"], Some("spaced")),
        (&["realm"], None),
        (&["realm", "tenant"], None),
        (&["realm.number"], None),
        (&["exp", "x"], None),
        (&["aud"], Some("tokenmeter")),
        (&[], None),
    ] {
        let rule = Jwt { tenant: claim(path), ..rule() };
        let found = rule.claims(token.as_bytes()).ok().map(|claims| claims.tenant);
        assert_eq!(found.as_deref(), tenant, "{path:?}");
    }
    let rule = Jwt { principal: Some(claim(&["missing"])), ..rule() };
    assert_eq!(rule.claims(token.as_bytes()).unwrap().principal, None, "a principal may be missing");
}

#[test]
fn without_audience_any_token_of_the_issuer_counts() {
    let open = Jwt { audiences: vec![], ..rule() };
    for (name, taken) in
        [("another audience", true), ("no audience", true), ("another issuer", false), ("RS256", true)]
    {
        assert_eq!(tenant(&open, &token(name), NOW).is_some(), taken, "{name}");
    }
}

#[test]
fn a_missing_key_is_reported_once() {
    let rule = rule();
    let reported = |name: &str| {
        let _ = rule.claims(token(name).as_bytes());
        rule.keys.take_missed()
    };
    assert!(!reported("RS256"));
    assert!(!reported("another key under our id"), "fetching the same key again would not help");
    assert!(reported("an unknown id"));
    assert!(!rule.keys.take_missed());
    assert!(!reported("alg none") && !reported("HS256 with the modulus"), "no key would help");
}

#[test]
fn a_token_is_read_from_its_field_only() {
    let rs256 = token("RS256");
    let bearer = |scheme: &str| format!("{scheme}{rs256}").into_bytes();
    let long = [&b"Bearer a.b."[..], &b"c".repeat(TOKEN_MAX_BYTES)].concat();
    let cases: [(Option<&str>, &str, Vec<u8>, bool); 8] = [
        (None, "authorization", bearer("Bearer "), true),
        (None, "authorization", bearer("bearer  "), true),
        (None, "authorization", bearer("Basic "), false),
        (None, "x-token", bearer(""), false),
        (Some("x-token"), "x-token", bearer(""), true),
        (Some("x-token"), "x-token", bearer("Bearer "), true),
        (Some("x-token"), "authorization", bearer("Bearer "), false),
        (None, "authorization", long, false),
    ];
    for (field, sent_in, value, found) in cases {
        let rule = Jwt { field: field.map(Into::into), ..rule() };
        let sent = |name: &str, at| (name == sent_in && at == 0).then_some(&value[..]);
        let head = Head {
            peer: IpAddr::from([10, 0, 0, 1]),
            certificate: None,
            path: "/",
            field: &sent,
            now_unix_s: NOW,
        };
        let tokens: Vec<_> = rule.tokens(&head).collect();
        assert_eq!(tokens, found.then_some(rs256.as_bytes()).as_slice(), "{field:?} {sent_in}");
    }
}

proptest! {
    #![proptest_config(chance::cases(512))]

    /// No change of a valid token yields another tenant.
    #[test]
    fn a_changed_token_yields_no_other_tenant(which in 0..14_usize, at in any::<usize>(), byte in any::<u8>()) {
        let mut token = tokens().swap_remove(which).2.into_bytes();
        let at = at % token.len();
        token[at] = byte;
        let claims = rule().claims(&token);
        prop_assert!(claims.ok().is_none_or(|claims| &*claims.tenant == "acme"));
    }

    /// Random bytes neither panic nor count as a token.
    #[test]
    fn random_bytes_are_no_token(noise in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(rule().claims(&noise).is_err());
    }
}
