//! Reports of rejections: to the observer if the tenant is known, and to the control plane if it keeps an access log.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use chance::Side;
use relay::{Gate, Known, Notice, Refusal, Rejection};
use scan::Dialect;
use tenant::{BodyKey, Rule, Spec};

use crate::gate::refusing;
use crate::support::{CANCEL, DEADLINE, Proxy, eventually};
use crate::tenants::{exchange, in_force, keys, post, rules, server};

const CHAT: &str = "/v1/chat/completions";
const KEY_A: &str = "x-api-key: key-a\r\n";

/// A proxy before `upstream` with a gate that rejects tenant `a`.
fn proxy(upstream: SocketAddr, spec: Spec, tell: bool) -> Proxy {
    let gate = Arc::new(Gate::default());
    gate.refuse(refusing(&["a"]));
    Proxy::with(upstream, |plan| {
        in_force(spec)(plan);
        plan.control.gate = Some(gate);
        plan.report_rejections = tell;
    })
}

/// The next report of a rejection.
fn turned(proxy: &Proxy) -> Rejection {
    match proxy.inbox.recv_timeout(DEADLINE).unwrap() {
        Notice::Rejection(report) => report.rejection,
        Notice::Finished(finished) => panic!("a record: {:?}", finished.record),
    }
}

#[test]
fn rejected_tenant_is_reported_without_a_record() {
    let server = server();
    let rejection = |principal: Option<&str>, model: Option<&str>| Rejection {
        upstream: "under-test".into(),
        reason: Refusal::Budget,
        status: 429,
        known: Some(Known {
            tenant: "a".into(),
            principal: principal.map(Into::into),
            dialect: Dialect::OpenaiChat,
            model: model.map(Into::into),
        }),
    };
    let user = rules(vec![Rule::Body(BodyKey::User)]);
    // By its key, before the body is read; and by its body.
    for (spec, fields, body, expected) in [
        (keys(), KEY_A, r#"{"model":"m"}"#, rejection(Some("its-key"), None)),
        (user, "", r#"{"model":"m","user":"a"}"#, rejection(None, Some("m"))),
    ] {
        let proxy = proxy(server.upstream.address, spec, true);
        let (head, _) = exchange(&mut proxy.connect(), post(CHAT, fields, body));
        assert!(head.starts_with("HTTP/1.1 429 "), "{head}");
        assert_eq!(turned(&proxy), expected);
        assert!(proxy.inbox.recv_timeout(CANCEL).is_err(), "one report, and nothing to bill");
        assert_eq!(proxy.seen().rejected, [("a".to_owned(), Refusal::Budget)]);
        assert_eq!(proxy.seen().refused, [Refusal::Budget]);
    }
}

#[test]
fn early_rejection_has_no_tenant() {
    let server = server();
    let proxy = proxy(server.upstream.address, keys(), true);
    for (fields, reason) in [
        ("Host: a b\r\nContent-Length: 0", Refusal::Host),
        ("Host: a\r\nContent-Length: x", Refusal::Framing),
        ("Host: a\r\nnot a field", Refusal::Framing),
    ] {
        let request = format!("POST {CHAT} HTTP/1.1\r\n{KEY_A}{fields}\r\n\r\n");
        let (head, _) = exchange(&mut proxy.connect(), request);
        assert!(head.starts_with("HTTP/1.1 400 "), "{head}");
        let expected = Rejection { upstream: "under-test".into(), reason, status: 400, known: None };
        assert_eq!(turned(&proxy), expected);
    }
    assert!(proxy.seen().rejected.is_empty());
}

/// It was admitted, so it has a record, and no second report.
#[test]
fn unreachable_upstream_makes_a_record() {
    if Side::Upstreams.excludes("the server in front accepts connections to a server that is down") {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let proxy = proxy(address, keys(), true);
    let (head, _) = exchange(&mut proxy.connect(), post(CHAT, "x-api-key: key-b\r\n", "{}"));
    assert!(head.starts_with("HTTP/1.1 502 "), "{head}");
    let record = proxy.inbox.recv_timeout(DEADLINE).unwrap().finished().unwrap().record;
    assert_eq!((&*record.identity.tenant, record.status), ("b", 502));
    assert!(proxy.inbox.recv_timeout(CANCEL).is_err());
    assert_eq!(proxy.seen().rejected, [("b".to_owned(), Refusal::UpstreamUnreachable)]);
}

#[test]
fn without_an_access_log_nothing_is_reported() {
    let server = server();
    let proxy = proxy(server.upstream.address, keys(), false);
    exchange(&mut proxy.connect(), post(CHAT, KEY_A, "{}"));
    exchange(&mut proxy.connect(), "GET /x HTTP/1.1\r\nHost: a b\r\n\r\n");
    eventually("both are counted", || proxy.seen().refused.len() == 2);
    assert!(proxy.inbox.recv_timeout(CANCEL).is_err());
    assert_eq!(proxy.seen().rejected.len(), 1);
}
