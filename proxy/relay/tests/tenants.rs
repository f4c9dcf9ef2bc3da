//! The tenant of a request: the facts that the rules get, the head that the upstream gets, and the record.

use std::sync::{Arc, mpsc};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use relay::{Dropped, Passthrough, RuleKind, TokenRejection};
use tenant::{
    Algorithm, ApiKeys, BodyKey, Claim, EndUser, HashKey, Head, Jwt, KeySet, Live, Name, Nets, Owner,
    Resolution, Rule, Rules, Spec, TenantPart,
};
use usage::Policy;

use crate::support::http2::{connect, run};
use crate::support::{Peer, Proxy, TestPlan, Upstream, eventually, upstream_body};
use crate::usage::{Server, record};

const ANSWER: &str = r#"{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":2},"service_tier":"priority"}"#;

/// A server that gives the same answer to every request.
pub(crate) fn server() -> Server {
    Server::start(|peer, _| answer(peer, ANSWER))
}

pub(crate) fn answer(peer: &mut Peer, body: &str) {
    let length = body.len();
    peer.send(format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    ));
}

pub(crate) fn name(text: &str) -> Name {
    Name::of(text).unwrap()
}

pub(crate) fn rules(rules: Vec<Rule>) -> Spec {
    Spec { rules, ..Spec::default() }
}

/// The keys `key-a` and `key-b`, of tenants `a` and `b`.
pub(crate) fn keys() -> Spec {
    let hash = HashKey::of(b"a secret of more than 32 characters").unwrap();
    let owner = |tenant| Owner { tenant: name(tenant), principal: Some(name("its-key")) };
    let keys = [(hash.api_key(b"key-a"), owner("a")), (hash.api_key(b"key-b"), owner("b"))];
    Spec { hash: Some(hash), ..rules(vec![Rule::ApiKeys(ApiKeys::new(keys))]) }
}

pub(crate) fn in_force(spec: Spec) -> impl FnOnce(&mut TestPlan) {
    move |plan| plan.control.tenants = Arc::new(Live::new(Rules::new(spec)))
}

fn proxy(server: &Server, spec: Spec) -> Proxy {
    Proxy::with(server.upstream.address, in_force(spec))
}

pub(crate) fn post(path: &str, fields: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nHost: h\r\n{fields}Content-Length: {length}\r\n\r\n{body}")
}

/// Sends a request and reads its whole answer.
pub(crate) fn exchange(client: &mut Peer, request: impl AsRef<[u8]>) -> (String, String) {
    client.send(request);
    let head = client.head().unwrap();
    let body = upstream_body(client, &head);
    (head, String::from_utf8(body).unwrap())
}

const CHAT: &str = "/v1/chat/completions";

#[test]
fn without_rules_the_tenant_is_default() {
    let server = server();
    let proxy = Proxy::new(server.upstream.address);
    exchange(&mut proxy.connect(), post(CHAT, "Authorization: Bearer key-a\r\n", r#"{"user":"u"}"#));
    let identity = record(&proxy).identity;
    assert_eq!((&*identity.tenant, identity.principal, identity.consumer), ("default", None, None));
    assert_eq!(proxy.seen().rules, [RuleKind::Default]);
}

/// Without rules, a request allocates nothing for its tenant.
#[test]
fn absent_rules_allocate_nothing() {
    let live = Live::default();
    let peer = std::net::Ipv4Addr::LOCALHOST.into();
    let paid = allocation_counter::measure(|| {
        let rules = live.load();
        assert_eq!((rules.untrusted(peer).count(), rules.strip(CHAT)), (0, 0));
        let said =
            rules.head(&Head { peer, certificate: None, path: CHAT, field: &|_, _| None, now_unix_s: 0 });
        assert!(matches!(said, Resolution::Resolved(_)));
    });
    assert_eq!(paid.count_total, 0);
}

#[test]
fn each_request_of_a_connection_has_its_tenant() {
    let server = server();
    let proxy = proxy(&server, keys());
    let mut client = proxy.connect();
    for (key, tenant, principal, rule) in [
        ("Authorization: Bearer key-a\r\n", "a", Some("its-key"), RuleKind::ApiKey),
        ("x-api-key: key-b\r\n", "b", Some("its-key"), RuleKind::ApiKey),
        ("Authorization: Bearer key-c\r\n", "default", None, RuleKind::Default),
        ("", "default", None, RuleKind::Default),
        ("api-key: key-a\r\n", "a", Some("its-key"), RuleKind::ApiKey),
        // Two fields go upstream as two, and may be valid there.
        (
            "Authorization: Bearer key-a\r\nAuthorization: Bearer key-a\r\n",
            "a",
            Some("its-key"),
            RuleKind::ApiKey,
        ),
        ("x-api-key: key-c\r\nx-api-key: key-b\r\n", "b", Some("its-key"), RuleKind::ApiKey),
    ] {
        exchange(&mut client, post(CHAT, key, "{}"));
        let identity = record(&proxy).identity;
        assert_eq!((&*identity.tenant, identity.principal.as_deref()), (tenant, principal), "{key}");
        assert_eq!(proxy.seen().rules.pop(), Some(rule), "{key}");
    }
    assert_eq!(server.upstream.connections(), 1);
    // Keys are forwarded: the server checks them.
    assert!(server.heads.lock().unwrap()[0].contains("Bearer key-a"));
}

#[test]
fn rules_change_between_two_requests_of_a_connection() {
    let server = server();
    let live = Arc::new(Live::default());
    let given = Arc::clone(&live);
    let proxy = Proxy::with(server.upstream.address, |plan| plan.control.tenants = given);
    let mut client = proxy.connect();
    let user = rules(vec![Rule::Body(BodyKey::User)]);
    let other = rules(vec![Rule::Body(BodyKey::Metadata("team".into()))]);
    for (spec, tenant) in
        [(None, "default"), (Some(user), "u"), (Some(other), "t"), (Some(keys()), "default")]
    {
        if let Some(spec) = spec {
            live.store(Rules::new(spec));
        }
        exchange(&mut client, post(CHAT, "", r#"{"user":"u","metadata":{"team":"t"}}"#));
        assert_eq!(&*record(&proxy).identity.tenant, tenant);
    }
}

/// A header field counts from trusted peers only, and only if it is present once.
#[test]
fn headers_are_trusted_from_trusted_peers_only() {
    let header = || Rule::Header {
        field: "x-tenant".into(),
        tenant: TenantPart::Value,
        principal: Some("x-who".into()),
    };
    let local = || Nets::read(["127.0.0.0/8"]).unwrap();
    let fields = "A: 1\r\nX-Tenant: t\r\nB: 2\r\nX-Who: w\r\nC: 3\r\n";
    for (trusted, strip, fields, tenant, untrusted, upstream) in [
        (local(), true, fields, "t", 0, "A: 1\r\nX-Tenant: t\r\nB: 2\r\nX-Who: w\r\nC: 3\r\n"),
        (local(), true, "X-Tenant: t\r\nX-Tenant: u\r\n", "default", 0, "X-Tenant: t\r\nX-Tenant: u\r\n"),
        (Nets::default(), false, fields, "default", 2, "A: 1\r\nX-Tenant: t\r\nB: 2\r\nX-Who: w\r\nC: 3\r\n"),
        (Nets::default(), true, fields, "default", 2, "A: 1\r\nB: 2\r\nC: 3\r\n"),
        (Nets::default(), true, "X-Tenant: t\r\nX-Tenant: u\r\nA: 1\r\n", "default", 1, "A: 1\r\n"),
        (Nets::default(), true, "A: 1\r\n", "default", 0, "A: 1\r\n"),
    ] {
        let server = server();
        let spec = Spec { trusted, strip_untrusted: strip, plain_principals: true, ..rules(vec![header()]) };
        let proxy = proxy(&server, spec);
        let mut client = proxy.connect();
        exchange(&mut client, post(CHAT, fields, "{}"));
        let identity = record(&proxy).identity;
        assert_eq!(&*identity.tenant, tenant, "{fields}");
        assert_eq!(identity.principal.as_deref(), (tenant == "t").then_some("w"), "{fields}");
        assert_eq!(proxy.seen().untrusted, untrusted, "{fields}");
        // Unmetered requests are treated alike, and their tenant is not resolved.
        exchange(&mut client, format!("GET /v1/models HTTP/1.1\r\nHost: h\r\n{fields}\r\n"));
        assert_eq!(proxy.seen().passed, [Passthrough::Path]);
        assert_eq!(proxy.seen().untrusted, 2 * untrusted);
        assert_eq!(proxy.seen().rules.len(), 1);
        let heads = server.heads.lock().unwrap();
        assert_eq!(
            heads[0],
            format!("POST {CHAT} HTTP/1.1\r\nHost: h\r\n{upstream}Content-Length: 2\r\n\r\n")
        );
        assert_eq!(heads[1], format!("GET /v1/models HTTP/1.1\r\nHost: h\r\n{upstream}\r\n"));
    }
}

/// A trailer is treated like a header field: a server may merge the two.
#[test]
fn trailers_are_trusted_like_headers() {
    let rule =
        Rule::Header { field: "x-tenant".into(), tenant: TenantPart::Value, principal: Some("x-who".into()) };
    let upstream = Upstream::start(|peer, _| {
        while let Some(head) = peer.head() {
            let mut said = peer.until("0\r\n");
            while !said.ends_with("\r\n\r\n") {
                said += &peer.until("\r\n");
            }
            answer(peer, &said.replace("\r\n", "|"));
            assert!(head.contains("Trailer"), "{head}");
        }
    });
    for (trusted, strip, trailers, untrusted, onward) in [
        ("127.0.0.0/8", true, "X-Tenant: t\r\nA: 1\r\n", 0, "x-tenant: t|a: 1||"),
        ("10.0.0.0/8", false, "X-Tenant: t\r\nA: 1\r\n", 1, "x-tenant: t|a: 1||"),
        ("10.0.0.0/8", true, "X-Tenant: t\r\nA: 1\r\nX-Who: w\r\n", 2, "a: 1||"),
        ("10.0.0.0/8", true, "X-Tenant: t\r\n", 1, "|"),
        ("10.0.0.0/8", true, "A: 1\r\n", 0, "a: 1||"),
    ] {
        let trusted = Nets::read([trusted]).unwrap();
        let spec = Spec { trusted, strip_untrusted: strip, ..rules(vec![rule.clone()]) };
        for path in [CHAT, "/tokenize"] {
            let proxy = Proxy::with(upstream.address, in_force(spec.clone()));
            let request = format!(
                "POST {path} HTTP/1.1\r\nHost: h\r\nTrailer: X-Tenant, X-Who, A\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n{trailers}\r\n"
            );
            let (_, said) = exchange(&mut proxy.connect(), request);
            assert_eq!(said, format!("2|{{}}|0|{onward}"), "{path} {trailers}");
            assert_eq!(proxy.seen().untrusted, untrusted, "{path} {trailers}");
        }
    }
    let trailers = "A: 1\r\nX-Forwarded-For: 203.0.113.9\r\nForwarded: for=203.0.113.9\r\n";
    let kept = "a: 1|x-forwarded-for: 203.0.113.9|forwarded: for=203.0.113.9||";
    for (trusted, forwards, onward) in
        [("127.0.0.0/8", true, kept), ("10.0.0.0/8", false, kept), ("10.0.0.0/8", true, "a: 1||")]
    {
        let spec = Spec { trusted: Nets::read([trusted]).unwrap(), ..Spec::default() };
        let proxy = Proxy::with(upstream.address, |plan| {
            in_force(spec)(plan);
            plan.forwards = forwards;
        });
        let request = format!(
            "POST {CHAT} HTTP/1.1\r\nHost: h\r\nTrailer: A, X-Forwarded-For, Forwarded\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n{trailers}\r\n"
        );
        let (_, said) = exchange(&mut proxy.connect(), request);
        assert_eq!(said, format!("2|{{}}|0|{onward}"), "{trusted} {forwards}");
    }
}

#[test]
fn body_names_the_tenant() {
    let server = server();
    let spec = Spec {
        end_user: vec![EndUser::Body(BodyKey::SafetyIdentifier)],
        plain_end_users: true,
        ..rules(vec![Rule::Body(BodyKey::Metadata("user_id".into())), Rule::Body(BodyKey::User)])
    };
    let proxy = proxy(&server, spec);
    let mut client = proxy.connect();
    for (body, tenant, consumer, rule) in [
        (
            r#"{"user":"u","safety_identifier":"s","metadata":{"user_id":"m"}}"#,
            "m",
            Some("s"),
            RuleKind::Body,
        ),
        (r#"{"safety_identifier":"s","user":"u"}"#, "u", Some("s"), RuleKind::Body),
        (r#"{"messages":[{"user":"u"}]}"#, "default", None, RuleKind::Default),
        (r#"{"user":7}"#, "default", None, RuleKind::Default),
        // A body that is not complete JSON names no tenant.
        (r#"{"user":"u""#, "default", None, RuleKind::Default),
        ("\u{1f}\u{8b}", "default", None, RuleKind::Default),
        ("", "default", None, RuleKind::Default),
    ] {
        exchange(&mut client, post(CHAT, "", body));
        let identity = record(&proxy).identity;
        assert_eq!((&*identity.tenant, identity.consumer.as_deref()), (tenant, consumer), "{body}");
        assert_eq!(proxy.seen().rules.pop(), Some(rule), "{body}");
    }
    assert!(proxy.seen().rules.is_empty(), "each was reported once");
}

/// A rule about the body delays nothing: the server has the first half before the second is sent.
#[test]
fn no_request_waits_for_its_tenant() {
    let (heard, said) = mpsc::channel();
    let upstream = Upstream::start(move |peer, _| {
        peer.head();
        heard.send(peer.exactly(11)).unwrap();
        peer.exactly(2);
        answer(peer, ANSWER);
        peer.head();
    });
    let proxy = Proxy::with(upstream.address, in_force(rules(vec![Rule::Body(BodyKey::User)])));
    let mut client = proxy.connect();
    let whole = post(CHAT, "", r#"{"user":"ab"}"#);
    let (first, second) = whole.split_at(whole.len() - 2);
    client.send(first);
    assert_eq!(said.recv().unwrap(), br#"{"user":"ab"#);
    exchange(&mut client, second);
    assert_eq!(&*record(&proxy).identity.tenant, "ab");
}

#[test]
fn tenant_prefix_is_stripped_from_the_path() {
    let server = server();
    let path =
        |prefix: &str, tenant, strip| Rule::Path { prefix: prefix.into(), tenant: name(tenant), strip };
    let spec = rules(vec![path("/team-a", "a", true), path("/team-b", "b", false)]);
    let proxy = proxy(&server, spec);
    let mut client = proxy.connect();
    for (sent, seen, tenant) in [
        ("/team-a/v1/chat/completions?x=/team-a", "/v1/chat/completions?x=/team-a", Some("a")),
        ("/team-b/v1/chat/completions", "/team-b/v1/chat/completions", Some("b")),
        ("/team-ab/v1/chat/completions", "/team-ab/v1/chat/completions", Some("default")),
        // In other spellings: metered, for any tenant, and forwarded unchanged.
        ("/te%61m-b/v1/chat/completions", "/te%61m-b/v1/chat/completions", Some("b")),
        ("//team-a//v1/chat/complet%69ons/", "//v1/chat/complet%69ons/", Some("a")),
        ("/te%61m-a/v1%2Fchat/completions", "/v1%2Fchat/completions", Some("a")),
        ("/team-a%2Fv1/chat/completions", "/team-a%2Fv1/chat/completions", Some("a")),
        ("/team-a/team-a/v1/completions", "/team-a/v1/completions", Some("a")),
        ("/team-a/v1/models", "/v1/models", None),
        ("/team-a", "/", None),
        ("/team-a?q", "/?q", None),
    ] {
        let method = if tenant.is_some() { "POST" } else { "GET" };
        let request = post(sent, "", "{}").replacen("POST", method, 1);
        exchange(&mut client, request);
        let head = server.heads.lock().unwrap().pop().unwrap();
        assert_eq!(head.lines().next(), Some(&*format!("{method} {seen} HTTP/1.1")), "{sent}");
        if let Some(tenant) = tenant {
            assert_eq!(&*record(&proxy).identity.tenant, tenant, "{sent}");
        }
    }
    // In absolute form, and with a prefix of the upstream's own.
    let proxy = Proxy::with(server.upstream.address, |plan| {
        in_force(rules(vec![path("/team-a", "a", true)]))(plan);
        plan.upstreams[0].prefix = "/mounted".into();
    });
    exchange(&mut proxy.connect(), post("http://h/team-a/v1/chat/completions", "", "{}"));
    let head = server.heads.lock().unwrap().pop().unwrap();
    assert!(head.starts_with("POST /mounted/v1/chat/completions HTTP/1.1\r\n"), "{head}");
    assert_eq!(&*record(&proxy).identity.tenant, "a");
}

#[test]
fn peer_network_may_decide() {
    let server = server();
    let peer = |net, tenant| Rule::Peer { nets: Nets::read([net]).unwrap(), tenant: name(tenant) };
    let proxy = proxy(&server, rules(vec![peer("10.0.0.0/8", "far"), peer("127.0.0.1", "near")]));
    exchange(&mut proxy.connect(), post(CHAT, "X-Forwarded-For: 10.1.1.1\r\n", "{}"));
    assert_eq!(&*record(&proxy).identity.tenant, "near");
    assert_eq!(proxy.seen().rules, [RuleKind::Peer]);
}

#[test]
fn untrusted_token_is_forwarded_and_counted() {
    let server = server();
    let jwt = Jwt {
        source: "keys.json".into(),
        keys: KeySet::default(),
        algorithms: Algorithm::ALL.to_vec(),
        issuers: vec!["https://id.example".into()],
        audiences: vec![],
        tenant: Claim(vec!["tenant".into()]),
        principal: None,
        leeway_s: 0,
        field: None,
    };
    let proxy = proxy(&server, rules(vec![Rule::Jwt(jwt)]));
    let mut client = proxy.connect();
    // {"alg":"RS256"} and {"alg":"none"}, with an empty payload.
    for token in ["eyJhbGciOiJSUzI1NiJ9.e30.AAAA", "eyJhbGciOiJub25lIn0.e30.", "sk-no-token"] {
        exchange(&mut client, post(CHAT, &format!("Authorization: Bearer {token}\r\n"), "{}"));
        let head = server.heads.lock().unwrap().pop().unwrap();
        assert!(head.contains(token), "{head}");
        assert_eq!(&*record(&proxy).identity.tenant, "default");
    }
    assert_eq!(proxy.seen().distrusted, [TokenRejection::UnknownKey, TokenRejection::Algorithm]);
}

/// Law 3: a failure in the rules costs a name, not an exchange.
#[test]
fn panic_in_the_rules_costs_the_tenant_only() {
    for (spec, fields) in [(keys(), "x-api-key: key-a\r\n"), (rules(vec![Rule::Body(BodyKey::User)]), "")] {
        let server = server();
        let proxy = proxy(&server, spec);
        let mut client = proxy.connect();
        for (panics, is_default) in [(true, true), (false, false)] {
            proxy.seen().rule_panics = panics;
            let (head, body) = exchange(&mut client, post(CHAT, fields, r#"{"user":"u"}"#));
            assert!(head.starts_with("HTTP/1.1 200"), "{head}");
            assert_eq!(body, ANSWER);
            let record = record(&proxy);
            assert_eq!(&*record.identity.tenant == "default", is_default, "{}", record.identity.tenant);
            assert_eq!(record.tokens.output(), 2);
        }
        assert_eq!(proxy.seen().lost, [Dropped::Panic]);
        eventually("the in-flight gauge is zero", || proxy.seen().seated == 0);
    }
}

#[test]
fn http2_streams_have_their_own_tenants() {
    let server = server();
    let proxy = proxy(&server, keys());
    let address = proxy.address();
    run(async move {
        let client = connect(address).await;
        let asked: Vec<_> = (0..20)
            .map(|n| {
                let mut client = client.clone();
                tokio::spawn(async move {
                    let key = if n % 2 == 0 { "key-a" } else { "key-b" };
                    let request = Request::post(format!("http://{address}{CHAT}"))
                        .header("x-api-key", key)
                        .body(Full::new(Bytes::from(format!(r#"{{"model":"{key}"}}"#))))
                        .unwrap();
                    let response = client.send_request(request).await.unwrap();
                    response.into_body().collect().await.unwrap().to_bytes()
                })
            })
            .collect();
        for answer in asked {
            assert_eq!(answer.await.unwrap(), ANSWER);
        }
    });
    for _ in 0..20 {
        let identity = record(&proxy).identity;
        assert_eq!(format!("key-{}", identity.tenant), &*identity.model);
    }
}

#[test]
fn answers_tier_precedes_the_requests_tier() {
    for (answered, tier, said) in
        [(ANSWER, Some("priority"), true), (r#"{"choices":[],"service_tier":null}"#, Some("flex"), false)]
    {
        let server = Server::start(move |peer, _| answer(peer, answered));
        let proxy = server.proxy(Policy::Observe);
        exchange(&mut proxy.connect(), post(CHAT, "", r#"{"service_tier":"flex"}"#));
        let identity = record(&proxy).identity;
        assert_eq!((identity.service_tier.as_deref(), identity.is_tier_reported), (tier, said));
    }
    let server = Server::start(|peer, _| answer(peer, r#"{"choices":[]}"#));
    let proxy = server.proxy(Policy::Observe);
    exchange(&mut proxy.connect(), post(CHAT, "", "{}"));
    assert_eq!(record(&proxy).identity.service_tier, None);
}
