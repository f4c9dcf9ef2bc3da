//! Facts other than tokens and times that a record takes from its request and its answer.

use scan::Name;

use crate::support::Proxy;
use crate::tenants::{answer, exchange, post};
use crate::usage::{Server, record};

/// The ids of a continued response are read from requests of the Responses dialect only.
#[test]
fn ids_of_a_continued_response_are_recorded() {
    let server = crate::tenants::server();
    let proxy = Proxy::new(server.upstream.address);
    let mut client = proxy.connect();
    let body = r#"{"model":"m","previous_response_id":"resp_1","conversation":{"id":"conv_1"},"prompt":{"id":"pmpt_1"}}"#;
    for (path, expected) in
        [("/v1/responses", Some(["resp_1", "conv_1", "pmpt_1"])), ("/v1/chat/completions", None)]
    {
        exchange(&mut client, post(path, "", body));
        let links = record(&proxy).identity.links;
        let ids =
            links.as_deref().map(|links| [&links.previous_response, &links.conversation, &links.prompt]);
        assert_eq!(ids.map(|ids| ids.map(Name::as_str)), expected, "{path}");
    }
}

/// The requested service tier stays beside the one that the server states.
#[test]
fn requested_and_served_tier_are_recorded() {
    let body = r#"{"choices":[{"index":0,"message":{}}],"service_tier":"default"}"#;
    let server = Server::start(move |peer, _| answer(peer, body));
    let proxy = Proxy::new(server.upstream.address);
    exchange(&mut proxy.connect(), post("/v1/chat/completions", "", r#"{"service_tier":"flex"}"#));
    let identity = record(&proxy).identity;
    let tiers = (identity.requested_tier.as_deref(), identity.service_tier.as_deref());
    assert_eq!((tiers, identity.is_tier_reported), ((Some("flex"), Some("default")), true));
}

/// A compaction of the conversation, by OpenAI's item, on OpenAI's own path, and by Anthropic's pass.
#[test]
fn compaction_is_recorded() {
    let usage = r#""usage":{"input_tokens":9,"output_tokens":2}"#;
    let whole = |kind: &str| format!(r#"{{"object":"response","output":[{{"type":"{kind}"}}],{usage}}}"#);
    let passes = |kind: &str| {
        format!(
            r#"{{"type":"message","content":[],"usage":{{"input_tokens":9,"output_tokens":2,"iterations":[{{"type":"{kind}","input_tokens":9,"output_tokens":2}}]}}}}"#
        )
    };
    for (path, body, expected) in [
        ("/v1/responses", whole("message"), false),
        ("/v1/responses", whole("compaction"), true),
        ("/v1/responses/compact", format!(r#"{{"object":"response.compaction",{usage}}}"#), true),
        ("/v1/messages", passes("message"), false),
        ("/v1/messages", passes("compaction"), true),
    ] {
        let (server, at) = (body.clone(), body);
        let server = Server::start(move |peer, _| answer(peer, &server));
        let proxy = Proxy::new(server.upstream.address);
        exchange(&mut proxy.connect(), post(path, "", r#"{"model":"m"}"#));
        assert_eq!(record(&proxy).is_compacted, expected, "{path} {at}");
    }
}

/// The drafts of speculative decoding, of which each answer has its own.
#[test]
fn drafts_of_one_answer_are_recorded() {
    let answers = [r#"{"index":0,"message":{}}"#, r#"{"index":0,"message":{}},{"index":1,"message":{}}"#];
    for (choices, drafts) in [(answers[0], (Some(129), Some(10))), (answers[1], (None, None))] {
        let body = format!(
            r#"{{"choices":[{choices}],"usage":{{"prompt_tokens":7,"completion_tokens":2}},"metrics":{{"speculative_decoding":{{"num_accepted_draft_tokens":10,"num_draft_tokens":129}}}}}}"#
        );
        let server = Server::start(move |peer, _| answer(peer, &body));
        let proxy = Proxy::new(server.upstream.address);
        exchange(&mut proxy.connect(), post("/v1/chat/completions", "", "{}"));
        let server = record(&proxy).timing.server();
        assert_eq!((server.draft_tokens, server.accepted_draft_tokens), drafts, "{choices}");
    }
}
