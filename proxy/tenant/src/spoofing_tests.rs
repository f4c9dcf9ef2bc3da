//! Spoofing: 24 cases of order, peer, header and key, and the fields of an untrusted
//! peer.

use std::net::IpAddr;

use crate::{
    ApiKeys, BodyFacts, EndUser, HashKey, Head, Name, Nets, Owner, Resolution, Rule, RuleKind, Rules, Spec,
    TenantIdentity, TenantPart,
};

fn key() -> HashKey {
    HashKey::of(b"thirty-two bytes for the tests..").unwrap()
}

fn name(text: &str) -> Name {
    Name::of(text).unwrap()
}

/// Rules with a key and a header, in this order or the other.
fn rules(key_first: bool) -> Rules {
    let owner = Owner { tenant: name("keyed"), principal: None };
    let mut rules = vec![
        Rule::ApiKeys(ApiKeys::new([(key().api_key(b"sk-1"), owner)])),
        Rule::Header {
            field: "x-tenant".into(),
            tenant: TenantPart::Value,
            principal: Some("x-principal".into()),
        },
    ];
    if !key_first {
        rules.reverse();
    }
    Rules::new(Spec {
        rules,
        trusted: Nets::read(["10.0.0.0/8", "fd00::/8"]).unwrap(),
        end_user: vec![EndUser::Header("x-user".into())],
        hash: Some(key()),
        strip_untrusted: true,
        ..Spec::default()
    })
}

/// Resolves a request with these fields; a name may occur several times.
fn resolve(rules: &Rules, peer: &str, fields: &[(&str, &str)]) -> TenantIdentity {
    let field = |name: &str, at| {
        let mut values = fields.iter().filter(|(known, _)| *known == name).map(|(_, value)| value.as_bytes());
        values.nth(at)
    };
    let peer: IpAddr = peer.parse().unwrap();
    let head = Head {
        peer,
        certificate: None,
        path: "/v1/chat/completions",
        field: &field,
        now_unix_s: 1_800_000_000,
    };
    match rules.head(&head) {
        Resolution::Resolved(who) => who,
        Resolution::NeedsBody(pending) => rules.body(pending, &BodyFacts::default()),
    }
}

#[test]
fn a_header_counts_from_trusted_peers_only() {
    use RuleKind::{ApiKey, Default, Header};
    const ONE: &[(&str, &str)] = &[("x-tenant", "claimed")];
    const TWO: &[(&str, &str)] = &[("x-tenant", "claimed"), ("x-tenant", "other")];
    const BEARER: (&str, &str) = ("authorization", "Bearer sk-1");
    let (keyed, claimed, fallback) = (("keyed", ApiKey), ("claimed", Header), ("default", Default));
    let mut cases = 0;
    for (peer, header, with_key, key_first, header_first) in [
        ("10.0.0.1", ONE, true, keyed, claimed),
        ("10.0.0.1", ONE, false, claimed, claimed),
        ("10.0.0.1", TWO, true, keyed, keyed),
        ("10.0.0.1", TWO, false, fallback, fallback),
        ("::ffff:10.0.0.1", ONE, true, keyed, claimed),
        ("::ffff:10.0.0.1", ONE, false, claimed, claimed),
        ("::ffff:10.0.0.1", TWO, true, keyed, keyed),
        ("::ffff:10.0.0.1", TWO, false, fallback, fallback),
        ("192.0.2.1", ONE, true, keyed, keyed),
        ("192.0.2.1", ONE, false, fallback, fallback),
        ("192.0.2.1", TWO, true, keyed, keyed),
        ("192.0.2.1", TWO, false, fallback, fallback),
    ] {
        for (first, (tenant, rule)) in [(true, key_first), (false, header_first)] {
            let fields: Vec<_> = header.iter().copied().chain(with_key.then_some(BEARER)).collect();
            let who = resolve(&rules(first), peer, &fields);
            let case = format!("{peer} {fields:?}, key first: {first}");
            assert_eq!((&*who.tenant, who.rule), (tenant, rule), "{case}");
            cases += 1;
        }
    }
    assert_eq!(cases, 24);
}

#[test]
fn no_field_changes_the_peer() {
    for field in ["x-forwarded-for", "forwarded", "x-real-ip", "via"] {
        let who = resolve(&rules(false), "192.0.2.1", &[(field, "10.0.0.1"), ("x-tenant", "claimed")]);
        assert_eq!(&*who.tenant, "default", "{field}");
    }
}

#[test]
fn a_key_counts_in_its_fields_only() {
    for (fields, tenant) in [
        (&[("authorization", "Bearer sk-1")][..], "keyed"),
        (&[("authorization", "bearer  sk-1 ")], "keyed"),
        (&[("x-api-key", "sk-1")], "keyed"),
        (&[("api-key", "sk-1")], "keyed"),
        (&[("x-goog-api-key", " sk-1")], "keyed"),
        (&[("authorization", "Bearer other"), ("x-api-key", "sk-1")], "keyed"),
        (&[("authorization", "Basic sk-1")], "keyed"),
        (&[("authorization", "Digest sk-1")], "keyed"),
        (&[("authorization", "sk-1")], "keyed"),
        (&[("authorization", "Bearer sk-10")], "default"),
        (&[("authorization", "Bearer SK-1")], "default"),
        (&[("authorization", "Bearer ")], "default"),
        (&[("x-api-key", "sk-1"), ("x-api-key", "sk-1")], "keyed"),
        (&[("authorization", "Bearer sk-1"), ("authorization", "Bearer sk-1")], "keyed"),
        (&[("authorization", "Bearer other"), ("authorization", "Bearer sk-1")], "keyed"),
        (&[("authorization", "Basic sk-1"), ("authorization", "bearer sk-1")], "keyed"),
        (&[("api-key", "other"), ("api-key", ""), ("api-key", "sk-1")], "keyed"),
        (&[("api-key", "other"), ("api-key", "sk-1x")], "default"),
        (&[("cookie", "sk-1")], "default"),
    ] {
        assert_eq!(&*resolve(&rules(true), "192.0.2.1", fields).tenant, tenant, "{fields:?}");
    }
}

#[test]
fn a_hash_is_no_key() {
    let hash = key().api_key(b"sk-1").to_string();
    assert_eq!(&*resolve(&rules(true), "192.0.2.1", &[("x-api-key", &hash)]).tenant, "default");
}

#[test]
fn fields_of_an_untrusted_peer_are_ignored() {
    let rules = rules(true);
    let untrusted = |peer: &str| rules.untrusted(peer.parse().unwrap()).collect::<Vec<_>>();
    assert_eq!(untrusted("192.0.2.1"), ["x-principal", "x-tenant", "x-user"]);
    assert_eq!(untrusted("fe80::1"), ["x-principal", "x-tenant", "x-user"]);
    assert_eq!(untrusted("10.9.9.9"), [""; 0]);
    assert_eq!(untrusted("fd00::1"), [""; 0]);
    assert!(rules.strips_untrusted());
    let who = resolve(&rules, "192.0.2.1", &[("x-user", "ann"), ("x-principal", "ann")]);
    assert_eq!((who.principal, who.consumer), (None, None), "the fields are ignored");
    assert!(resolve(&rules, "10.0.0.1", &[("x-user", "ann")]).consumer.is_some());
}

#[test]
fn reserved_names_are_no_tenants() {
    for (claimed, tenant) in [
        ("_other", "default"),
        (" _unknown", "default"),
        ("a_b", "a_b"),
        ("", "default"),
        (" \t", "default"),
        ("a\u{7f}b", "default"),
        ("münchen", "münchen"),
    ] {
        assert_eq!(
            &*resolve(&rules(true), "10.0.0.1", &[("x-tenant", claimed)]).tenant,
            tenant,
            "{claimed:?}"
        );
    }
}

#[test]
fn every_form_of_a_key_is_recognised() {
    let rules = rules(true);
    for field in [
        ("authorization", "Bearer sk-1"),
        ("authorization", "bearer sk-1"),
        ("authorization", "Basic sk-1"),
        ("authorization", "Basic c2stMTo="),
        ("authorization", "Basic dXNlcjpzay0x"),
        ("authorization", "sk-1"),
        ("x-api-key", "sk-1"),
        ("api-key", "sk-1"),
        ("x-goog-api-key", "sk-1"),
        ("x-litellm-api-key", "sk-1"),
        ("x-litellm-api-key", "Bearer sk-1"),
        ("ocp-apim-subscription-key", "sk-1"),
    ] {
        let who = resolve(&rules, "192.0.2.1", &[field]);
        assert_eq!((&*who.tenant, who.rule), ("keyed", RuleKind::ApiKey), "{field:?}");
    }
    for field in [("x-other", "sk-1"), ("authorization", "Basic c2stMjo="), ("cookie", "sk-1")] {
        assert_eq!(resolve(&rules, "192.0.2.1", &[field]).rule, RuleKind::Default, "{field:?}");
    }
}

#[test]
fn a_rule_may_set_its_fields() {
    let owner = Owner { tenant: name("keyed"), principal: None };
    let keys = ApiKeys::new([(key().api_key(b"sk-1"), owner)]).in_fields(["x-other".into()]);
    let rules = Rules::new(Spec { rules: vec![Rule::ApiKeys(keys)], hash: Some(key()), ..Spec::default() });
    assert_eq!(resolve(&rules, "192.0.2.1", &[("x-other", "sk-1")]).rule, RuleKind::ApiKey);
    assert_eq!(resolve(&rules, "192.0.2.1", &[("authorization", "Bearer sk-1")]).rule, RuleKind::Default);
}
