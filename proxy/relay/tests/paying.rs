//! What a client may write so as to pay less: each is read as its server reads it.

use usage::Policy;

use crate::tenants::{answer, exchange, post};
use crate::usage::{Server, record};

const CHAT: &str = "/v1/chat/completions";

/// A server that says which model answered. Who names none, or none that is one, gets its own.
#[test]
fn the_model_is_the_one_that_the_server_takes() {
    let server = Server::start(|peer, _| {
        answer(peer, r#"{"model":"dear","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}"#);
    });
    let proxy = server.proxy(Policy::Inject);
    let mut client = proxy.connect();
    let gemini = "/v1beta/models/dear:generateContent";
    for (path, body, model) in [
        (CHAT, r#"{"model":"cheap"}"#, "cheap"),
        (CHAT, r#"{"model":"cheap","model":"dear"}"#, "dear"),
        (CHAT, r#"{"model":"cheap","model":null}"#, "dear"),
        (CHAT, r#"{"model":"cheap","model":["x"]}"#, "dear"),
        (CHAT, r#"{"messages":[]}"#, "dear"),
        // The path names it.
        (gemini, r#"{"model":"cheap"}"#, "dear"),
    ] {
        exchange(&mut client, post(path, "", body));
        assert_eq!(&*record(&proxy).identity.model, model, "{path} {body}");
    }
}
