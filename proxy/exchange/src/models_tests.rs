//! Requests that name a model in several places: every name is in the record, and an answer to several is counted in full.

use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use meter::{Record, ServerKind, Tick};
use usage::Cuts;

use crate::tests::{CLEAN, end};
use crate::{Exchange, Setup, TenantResolution, route};

/// A header field or a body that names `dear`, and the record of a request to this target.
fn record(
    kind: Option<ServerKind>,
    target: &str,
    field: Option<(&str, &str)>,
    body: &str,
    answer: &str,
) -> Record {
    let mut headers = HeaderMap::new();
    if let Some((name, value)) = field {
        headers
            .insert(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap());
    }
    let target: Uri = target.parse().unwrap();
    let route = route(kind, &Method::POST, target.path()).unwrap();
    let setup = Setup { kind, ..Setup::default() };
    let mut exchange = Exchange::begin(route, &headers, TenantResolution::default(), setup, Tick(0));
    exchange.asked_at(target.path(), target.query(), &headers);
    exchange.request_body(body.as_bytes());
    exchange.request_complete(Tick(1));
    exchange.sent();
    exchange.response_head(200, &HeaderMap::new(), kind, Tick(2)).unwrap();
    exchange.response_body(answer.as_bytes(), Tick(3), &mut Cuts::default()).unwrap();
    (*end(&mut exchange, CLEAN).unwrap().record).clone()
}

const ANSWER: &str =
    r#"{"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#;

#[test]
fn every_place_that_names_a_model_is_in_the_record() {
    let chat = "/v1/chat/completions";
    let cheap = r#"{"model":"cheap"}"#;
    for (target, field, body, first, others) in [
        (chat, None, cheap, "cheap", ""),
        (chat, None, r#"{"model":"cheap,dear"}"#, "cheap,dear", "cheap dear"),
        (chat, None, r#"{"model":"cheap","fallbacks":["dear"]}"#, "cheap", "dear"),
        (chat, None, r#"{"model":["cheap","dear"]}"#, "cheap", "dear"),
        ("/v1/chat/completions?model=dear", None, cheap, "cheap", "dear"),
        ("/v1/chat/completions?model=dear", None, "{}", "dear", ""),
        (chat, Some(("x-gateway-model-name", "dear")), cheap, "cheap", "dear"),
        ("/engines/dear/chat/completions", None, cheap, "dear", "cheap"),
        ("/openai/deployments/a/dear/chat/completions", None, cheap, "a/dear", "cheap"),
        ("/openai/deployments/a%2Fdear/embeddings", None, cheap, "a/dear", "cheap"),
        ("/deployments/x%2F..%2Fdear/completions", None, cheap, "x/../dear", "dear cheap"),
        ("/v1beta/models/dear:generateContent", None, cheap, "dear", "cheap"),
        ("/v1beta/models/dear:embedContent", None, r#"{"model":"models/dear"}"#, "dear", ""),
        ("/openai/deployments/dear/images/generations", None, cheap, "dear", "cheap"),
    ] {
        let identity = record(None, target, field, body, ANSWER).identity;
        assert_eq!((&*identity.model, &*identity.other_models.join(" ")), (first, others), "{target} {body}");
    }
}

/// Azure takes the model from the path, whatever else names one.
#[test]
fn path_of_a_known_server_names_the_model_alone() {
    for (kind, target) in [
        (ServerKind::AzureOpenai, "/openai/deployments/dear/chat/completions?model=x"),
        (ServerKind::Gemini, "/v1beta/models/dear:generateContent"),
    ] {
        let identity =
            record(Some(kind), target, Some(("x-model", "y")), r#"{"model":"cheap"}"#, ANSWER).identity;
        assert_eq!((&*identity.model, identity.other_models.len()), ("dear", 0), "{target}");
    }
}

/// LiteLLM answers a list of models with a list of answers, of which each cost its tokens.
#[test]
fn each_answer_of_a_list_counts() {
    let answers = r#"[{"id":"c1","model":"cheap","choices":[{"index":0,"message":{"content":"a"}}],
        "usage":{"prompt_tokens":3,"completion_tokens":7,"total_tokens":10}},
        {"id":"c2","model":"dear","choices":[{"index":0,"message":{"content":"b"}}],
        "usage":{"prompt_tokens":4,"completion_tokens":2,"completion_tokens_details":{"reasoning_tokens":1}}}]"#;
    for path in ["/v1/chat/completions", "/v1/completions"] {
        let record = record(None, path, None, r#"{"model":"cheap,dear"}"#, answers);
        assert_eq!((record.tokens.input(), record.tokens.output()), (7, 9), "{path}");
        assert_eq!(record.disagreement, None, "{path}");
    }
    let alone = record(None, "/v1/chat/completions", None, "{}", &format!("[{ANSWER}]"));
    assert_eq!((alone.tokens.input(), alone.tokens.output()), (3, 1));
}
