//! Exchanges with Amazon Bedrock: the path names the model, and streams are AWS event streams.

use meter::{Close, Ending, Provenance, Record, TokenType};
use scan::Dialect;

use crate::tests::{self, CLEAN};

const STREAM: &str = "application/vnd.amazon.eventstream";

/// A message with one header, and checksums of zero.
fn message(header: &str, payload: &str) -> Vec<u8> {
    let name = u8::try_from(header.len()).unwrap();
    let headers = [&[name][..], header.as_bytes(), &[7, 0, 1, b'x']].concat();
    let length = |bytes: usize| u32::try_from(bytes).unwrap().to_be_bytes();
    let prelude = [length(16 + headers.len() + payload.len()), length(headers.len()), [0; 4]].concat();
    [&prelude, &headers, payload.as_bytes(), &[0; 4]].concat()
}

fn events(payloads: &[&str]) -> Vec<u8> {
    payloads.iter().flat_map(|payload| message(":event-type", payload)).collect()
}

/// Sends a request to this path, and reads an answer with these header fields; `None` if it makes no record.
fn exchanged(
    path: &str,
    fields: &[(&'static str, &'static str)],
    body: &[u8],
    close: Close,
) -> Option<Record> {
    let request = r#"{"messages":[{"role":"user","content":[{"text":"hi"}]}]}"#;
    tests::exchanged((path, request), fields, body.chunks(7), close)
}

const MODEL: &str = "us.anthropic.c-5-v1:0";
const TYPE: &str = "content-type";

/// The dialect, the model, the tokens and the end of a record.
fn facts(record: &Record) -> (Dialect, &str, u64, u64, Ending) {
    let identity = &record.identity;
    (identity.dialect, &*identity.model, record.tokens.input(), record.tokens.output(), record.ending)
}

#[test]
fn converse_is_metered() {
    let path = "/model/us.anthropic.c-5-v1%3A0/converse";
    let body = br#"{"output":{"message":{"role":"assistant","content":[{"text":"hello"}]}},"stopReason":"max_tokens",
        "usage":{"inputTokens":20,"outputTokens":31,"totalTokens":57,"cacheReadInputTokens":4,"cacheWriteInputTokens":2,
        "cacheReadInputTokenCount":4,"cacheWriteInputTokenCount":2}}"#;
    let record = exchanged(path, &[(TYPE, "application/json")], body, CLEAN).unwrap();
    assert_eq!(facts(&record), (Dialect::BedrockConverse, MODEL, 26, 31, Ending::Length));
    assert!(!record.streamed && record.tokens.output_provenance == Provenance::Reported);
    let cached = [TokenType::InputCached, TokenType::InputCacheWrite].map(|kind| record.tokens.of(kind));
    assert_eq!(cached, [4, 2]);
}

#[test]
fn writes_for_an_hour_are_counted_apart() {
    let details = r#""cacheDetails":[{"inputTokens":3,"ttl":"5m"},{"ttl":"1h","inputTokens":4}]"#;
    let counts = r#""inputTokens":20,"outputTokens":31,"totalTokens":58,"cacheWriteInputTokens":7"#;
    for usage in [format!("{counts},{details}"), format!("{details},{counts}")] {
        let events = [EVENTS[1], EVENTS[4], &format!(r#"{{"usage":{{{usage}}}}}"#)];
        let record = exchanged(CONVERSE_STREAM, &[(TYPE, STREAM)], &self::events(&events), CLEAN).unwrap();
        assert_eq!(facts(&record), (Dialect::BedrockConverse, MODEL, 27, 31, Ending::Complete), "{usage}");
        let written =
            [TokenType::InputCacheWrite, TokenType::InputCacheWrite1h].map(|kind| record.tokens.of(kind));
        assert_eq!(written, [3, 4], "{usage}");
        assert!(record.unknown_counts.is_empty(), "{usage}");
    }
}

const CONVERSE_STREAM: &str = "/model/us.anthropic.c-5-v1%3A0/converse-stream";
const EVENTS: [&str; 6] = [
    r#"{"role":"assistant"}"#,
    r#"{"contentBlockIndex":0,"delta":{"text":"hel"}}"#,
    r#"{"contentBlockIndex":0,"delta":{"text":"lo"}}"#,
    r#"{"contentBlockIndex":0}"#,
    r#"{"stopReason":"end_turn"}"#,
    r#"{"usage":{"inputTokens":26,"outputTokens":31,"totalTokens":57},"metrics":{"latencyMs":5}}"#,
];

#[test]
fn converse_stream_is_metered() {
    let record = exchanged(CONVERSE_STREAM, &[(TYPE, STREAM)], &events(&EVENTS), CLEAN).unwrap();
    assert_eq!(facts(&record), (Dialect::BedrockConverse, MODEL, 26, 31, Ending::Complete));
    assert!(record.streamed && record.tokens.output_provenance == Provenance::Reported);
}

#[test]
fn unfinished_converse_stream_is_counted_by_frames() {
    let ends = [
        (Close::ClientGone { whole: false }, Ending::ClientAbort),
        (Close::Cut, Ending::UpstreamCut),
        (CLEAN, Ending::UpstreamCut),
    ];
    for (close, ending) in ends {
        let record = exchanged(CONVERSE_STREAM, &[(TYPE, STREAM)], &events(&EVENTS[..4]), close).unwrap();
        let output = (record.tokens.output(), record.tokens.output_provenance);
        assert_eq!((output, record.ending), ((2, Provenance::Frames), ending));
    }
}

#[test]
fn exception_in_a_stream_is_an_error() {
    let exception = message(":exception-type", r#"{"message":"Too many tokens"}"#);
    for path in [CONVERSE_STREAM, "/model/anthropic.c-5/invoke-with-response-stream"] {
        let body = [events(&EVENTS[..1]), exception.clone()].concat();
        let record = exchanged(path, &[(TYPE, STREAM)], &body, CLEAN).unwrap();
        assert_eq!(record.ending, Ending::ErrorInBand, "{path}");
    }
}

/// Of a model of Anthropic the payloads are its own frames in base64.
#[test]
fn invoke_with_response_stream_is_metered() {
    let chunk = |base64: &str| message(":event-type", &format!(r#"{{"bytes":"{base64}","p":"abc"}}"#));
    let body = [
        // {"type":"message_start","message":{"id":"a","model":"m","usage":{"input_tokens":26,"output_tokens":1}}}
        chunk("eyJ0eXBlIjoibWVzc2FnZV9zdGFydCIsIm1lc3NhZ2UiOnsiaWQiOiJhIiwibW9kZWwiOiJtIiwidXNhZ2UiOnsiaW5wdXRfdG9rZW5zIjoyNiwib3V0cHV0X3Rva2VucyI6MX19fQ=="),
        // {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}
        chunk("eyJ0eXBlIjoiY29udGVudF9ibG9ja19kZWx0YSIsImluZGV4IjowLCJkZWx0YSI6eyJ0eXBlIjoidGV4dF9kZWx0YSIsInRleHQiOiJoaSJ9fQ=="),
        // {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":31}}
        chunk("eyJ0eXBlIjoibWVzc2FnZV9kZWx0YSIsImRlbHRhIjp7InN0b3BfcmVhc29uIjoiZW5kX3R1cm4ifSwidXNhZ2UiOnsib3V0cHV0X3Rva2VucyI6MzF9fQ=="),
        // {"type":"message_stop"}
        chunk("eyJ0eXBlIjoibWVzc2FnZV9zdG9wIn0="),
    ]
    .concat();
    let path = "/model/us.anthropic.c-5-v1:0/invoke-with-response-stream";
    let record = exchanged(path, &[(TYPE, STREAM)], &body, CLEAN).unwrap();
    assert_eq!(facts(&record), (Dialect::Anthropic, MODEL, 26, 31, Ending::Complete));

    // Another model's frames are unknown; the last one has the counts.
    // {"generation":"hi","stop_reason":"stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":26,"outputTokenCount":31}}
    let last = chunk(
        "eyJnZW5lcmF0aW9uIjoiaGkiLCJzdG9wX3JlYXNvbiI6InN0b3AiLCJhbWF6b24tYmVkcm9jay1pbnZvY2F0aW9uTWV0cmljcyI6eyJpbnB1dFRva2VuQ291bnQiOjI2LCJvdXRwdXRUb2tlbkNvdW50IjozMX19",
    );
    let record =
        exchanged("/model/meta.l-4/invoke-with-response-stream", &[(TYPE, STREAM)], &last, CLEAN).unwrap();
    assert_eq!(
        (&*record.identity.model, record.tokens.input(), record.tokens.output()),
        ("meta.l-4", 26, 31)
    );
}

#[test]
fn invoke_is_metered_by_its_head() {
    let body = br#"{"generation":"hi","stop_reason":"stop"}"#;
    let counts = [("x-amzn-bedrock-input-token-count", "26"), ("x-amzn-bedrock-output-token-count", "31")];
    let fields = [&[(TYPE, "application/json")][..], &counts].concat();
    let record = exchanged("/model/meta.l-4/invoke", &fields, body, CLEAN).unwrap();
    assert_eq!(
        (&*record.identity.model, record.tokens.input(), record.tokens.output()),
        ("meta.l-4", 26, 31)
    );
    // The answer of a model of Anthropic has its own counts, in which cached tokens have their place.
    let body = br#"{"type":"message","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn",
        "usage":{"input_tokens":20,"cache_read_input_tokens":6,"output_tokens":31}}"#;
    let record = exchanged("/model/anthropic.c-5/invoke", &fields, body, CLEAN).unwrap();
    assert_eq!(facts(&record), (Dialect::Anthropic, "anthropic.c-5", 26, 31, Ending::Complete));
    // An embedding: a prompt alone.
    let fields = [(TYPE, "application/json"), ("x-amzn-bedrock-input-token-count", "8")];
    let record =
        exchanged("/model/amazon.titan-embed-text-v2:0/invoke", &fields, br#"{"embedding":[0.5]}"#, CLEAN);
    assert_eq!(record.map(|record| record.tokens.input()), Some(8));
}
