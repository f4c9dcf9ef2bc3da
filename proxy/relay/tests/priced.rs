//! A tenant that may use only models with a price is rejected before anything goes upstream; a model that is not known
//! in time passes.

use std::sync::Arc;

use relay::{Gap, Gate, Models, Refusal, RequestedModel, Terms};
use tenant::{BodyKey, Rule};

use crate::support::{CANCEL, DEADLINE, Proxy};
use crate::tenants::{answer, exchange, in_force, keys, post, rules, server};
use crate::usage::Server;

const CHAT: &str = "/v1/chat/completions";
const KEY_A: &str = "x-api-key: key-a\r\n";
const KEY_B: &str = "x-api-key: key-b\r\n";

/// Tenant `a` may use `known` only.
#[derive(Debug)]
struct Known;

impl Models for Known {
    fn restricts(&self, tenant: &str) -> bool {
        assert_ne!(tenant, "panics");
        tenant == "a"
    }

    fn refused(&self, _: &str, requested: &RequestedModel<'_>) -> Option<Box<str>> {
        assert_eq!((requested.provider, requested.upstream), ("openai", "under-test"));
        (requested.model != "known").then(|| "It has no price.".into())
    }

    fn terms(&self, _: &str) -> Terms {
        Terms::default()
    }

    fn message(&self, _: &str, gap: Gap) -> Box<str> {
        gap.name().into()
    }
}

fn proxy(server: &Server, spec: tenant::Spec) -> Proxy {
    Proxy::with(server.upstream.address, |plan| {
        in_force(spec)(plan);
        plan.control.gate = Some(Arc::new(Gate::with_models(Box::new(Known))));
    })
}

#[test]
fn unpriced_model_is_rejected_where_terms_demand_it() {
    let server = server();
    let proxy = proxy(&server, keys());
    let large = format!(r#"{{"pad":"{}","model":"other"}}"#, "x".repeat(9 << 20));
    for (path, fields, body, status) in [
        (CHAT, KEY_A, r#"{"model":"known"}"#, "200"),
        (CHAT, KEY_A, r#"{"messages":[],"model":"other"}"#, "403"),
        ("/v1/embeddings", KEY_A, r#"{"model":"other"}"#, "403"),
        // The path names the model.
        ("/v1beta/models/other:generateContent", KEY_A, "{}", "403"),
        (CHAT, KEY_B, r#"{"model":"other"}"#, "200"),
        // Only the answer names the model.
        (CHAT, KEY_A, "{}", "200"),
        (CHAT, KEY_A, "no JSON", "200"),
        (CHAT, KEY_A, &large, "200"),
    ] {
        let (head, answer) = exchange(&mut proxy.connect(), post(path, fields, body));
        assert_eq!(&head[9..12], status, "{path} {fields} {}", &body[..body.len().min(40)]);
        assert_eq!(answer.contains("It has no price."), status == "403", "{answer}");
        assert!(!head.to_ascii_lowercase().contains("retry-after"), "{head}");
    }
    let seen = proxy.seen();
    assert_eq!(seen.refused, [Refusal::Unpriced; 3]);
    assert_eq!(seen.rejected, vec![("a".to_owned(), Refusal::Unpriced); 3]);
    drop(seen);
    for _ in 0..5 {
        let record = proxy.inbox.recv_timeout(DEADLINE).unwrap().finished().unwrap().record;
        assert_eq!(record.status, 200);
    }
    assert!(proxy.inbox.recv_timeout(CANCEL).is_err(), "there is nothing to bill");
}

#[test]
fn buffered_body_is_forwarded_whole() {
    let server = Server::start(|peer, asked| {
        assert_eq!(asked, r#"{"model":"known","n":1}"#);
        answer(peer, "{}");
    });
    let proxy = proxy(&server, keys());
    let (head, _) = exchange(&mut proxy.connect(), post(CHAT, KEY_A, r#"{"model":"known","n":1}"#));
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
}

/// The body names both, and is buffered once.
#[test]
fn tenant_and_model_come_from_one_body() {
    let server = server();
    let proxy = proxy(&server, rules(vec![Rule::Body(BodyKey::User)]));
    for (body, status) in [
        (r#"{"model":"other","user":"a"}"#, "403"),
        (r#"{"model":"other","user":"b"}"#, "200"),
        (r#"{"model":"known","user":"a"}"#, "200"),
        // A failure costs the meter, never the request.
        (r#"{"model":"known","user":"panics"}"#, "200"),
    ] {
        let (head, _) = exchange(&mut proxy.connect(), post(CHAT, "", body));
        assert_eq!(&head[9..12], status, "{body}");
    }
}
