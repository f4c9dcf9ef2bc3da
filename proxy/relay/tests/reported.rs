//! Facts other than tokens and times that a record takes from its request and its answer.

use crate::support::Proxy;
use crate::tenants::{answer, exchange, post};
use crate::usage::{Server, record};

/// The ids of a continued response are read from requests of the Responses dialect only.
#[test]
fn ids_of_a_continued_response_are_recorded() {
    let server = crate::tenants::server();
    let proxy = Proxy::new(server.upstream.address);
    let mut client = proxy.connect();
    let body = r#"{"model":"m","previous_response_id":"resp_1","conversation":{"id":"conv_1"}}"#;
    for (path, expected) in
        [("/v1/responses", (Some("resp_1"), Some("conv_1"))), ("/v1/chat/completions", (None, None))]
    {
        exchange(&mut client, post(path, "", body));
        let identity = record(&proxy).identity;
        let ids = (identity.previous_response_id.as_deref(), identity.conversation_id.as_deref());
        assert_eq!(ids, expected, "{path}");
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
        let server = record(&proxy).timing.server;
        assert_eq!((server.draft_tokens, server.accepted_draft_tokens), drafts, "{choices}");
    }
}
