//! Answers without token counts are never billed as if they had few tokens. The bytes in `recorded` are those of
//! llama.cpp 0.7.0 (build 11669).

use std::collections::HashMap;
use std::sync::Arc;

use meter::{Ending, Provenance, Record, Tokens};
use relay::{Gate, Refusal, ServerKind, Terms};
use usage::Policy;

use crate::support::{DEADLINE, Proxy, Upstream, upstream_body};
use crate::tenants::{answer, exchange, in_force, keys, post};
use crate::terms::Under;
use crate::usage::record;

const CHAT: &str = "/v1/chat/completions";
const KEY_A: &str = "x-api-key: key-a\r\n";

/// A server that answers each request with `body`.
fn answering(content_type: &'static str, body: &'static str) -> Upstream {
    Upstream::start(move |peer, _| {
        while let Some(head) = peer.head() {
            upstream_body(peer, &head);
            let length = body.len();
            peer.send(format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n{body}"
            ));
        }
    })
}

/// The record of `request` to `path`, answered with `body`.
fn metered(path: &str, request: &str, content_type: &'static str, body: &'static str) -> Record {
    let upstream = answering(content_type, body);
    let proxy = Proxy::new(upstream.address);
    assert_eq!(exchange(&mut proxy.connect(), post(path, "", request)).1, body);
    record(&proxy)
}

const JSON: &str = "application/json; charset=utf-8";

#[test]
fn body_without_its_counts_is_uncounted() {
    for (path, request, body) in [
        (
            "/completion",
            r#"{"n_predict":40,"prompt":"x","response_fields":["content"]}"#,
            include_str!("recorded/completion_fields.json"),
        ),
        (
            "/infill",
            r#"{"n_predict":9,"input_prefix":"x","response_fields":["content","tokens_evaluated"]}"#,
            include_str!("recorded/infill_fields.json"),
        ),
        (
            "/v1/completions",
            r#"{"prompt":["a","b","c","d"],"max_tokens":5}"#,
            include_str!("recorded/completions_prompts.json"),
        ),
        (CHAT, r#"{"messages":[],"n":4,"max_tokens":5}"#, include_str!("recorded/chat_n.json")),
        // The requested number of tokens does not replace the count.
        (CHAT, r#"{"messages":[]}"#, include_str!("recorded/chat_n.json")),
        ("/generate", r#"{"inputs":"x"}"#, r#"{"generated_text":"many words of one answer"}"#),
        ("/", r#"{"inputs":"x"}"#, r#"[{"generated_text":"many words of one answer"}]"#),
        (
            "/v2/models/m/generate",
            r#"{"text_input":"x"}"#,
            r#"{"model_name":"m","model_version":"1","text_output":"many words of one answer"}"#,
        ),
    ] {
        let record = metered(path, request, JSON, body);
        assert!(record.ending.is_success(), "{path} {request}");
        assert_eq!(record.tokens, Tokens::NONE, "{path} {request}");
        assert!(!record.tokens.is_counted(), "{path}: the exchange is unpriced");
    }
}

/// Neither seconds nor text are a token count.
#[test]
fn transcript_is_counted_by_its_tokens_only() {
    let json = r#"{"text":"so it goes","usage":{"type":"tokens","input_tokens":14,"output_tokens":4}}"#;
    for (content_type, body, counts) in [
        (JSON, json, Some((14, 4))),
        (JSON, r#"{"text":"so it goes","usage":{"type":"duration","seconds":4}}"#, None),
        (JSON, r#"{"text":"so it goes"}"#, None),
        ("text/plain; charset=utf-8", "so it goes", None),
    ] {
        let tokens = metered("/v1/audio/transcriptions", "{}", content_type, body).tokens;
        assert_eq!(tokens.is_counted().then(|| (tokens.input(), tokens.output())), counts, "{body}");
    }
}

#[test]
fn several_responses_are_summed() {
    let json = include_str!("recorded/responses_n.json");
    let stream = include_str!("recorded/responses_n.sse");
    for (request, content_type, body) in [
        (r#"{"input":"x","max_output_tokens":5,"n":4}"#, JSON, json),
        (r#"{"input":"x","max_output_tokens":5,"n_cmpl":4,"stream":true}"#, "text/event-stream", stream),
    ] {
        let record = metered("/v1/responses", request, content_type, body);
        // The engine counted 4 × 5; of the prompt it computes 16 tokens or has most in its cache.
        assert_eq!((record.tokens.input(), record.tokens.output()), (16, 20), "{request}");
        assert_eq!(record.tokens.output_provenance, Provenance::Reported, "{request}");
        assert_eq!(record.tokens.input_provenance, Provenance::Reported, "{request}");
        assert_eq!((record.ending, record.choices), (Ending::Complete, 4), "{request}");
    }
}

/// A stream of four answers of which one has ended: its usage does not cover all.
#[test]
fn usage_of_some_responses_is_not_reported() {
    let stream = include_str!("recorded/responses_n.sse");
    let second = stream.match_indices("event: response.completed").nth(1).unwrap().0;
    let record = metered("/v1/responses", r#"{"n":4,"stream":true}"#, "text/event-stream", &stream[..second]);
    assert_ne!(record.tokens.output_provenance, Provenance::Reported);
    assert_eq!((record.tokens.output(), record.ending), (18, Ending::UpstreamCut), "a token a frame");
}

/// The stream of four answers with each answer's own running count in each frame (`timings_per_token`), and after each
/// event the number of tokens that the engine has sent.
fn counted_responses() -> Vec<(String, u64)> {
    let stream = include_str!("recorded/responses_n.sse");
    let mut sent: HashMap<&str, u64> = HashMap::new();
    let mut events = Vec::new();
    for event in stream.split_inclusive("\n\n") {
        let item = event.split_once(r#","item_id":""#).map(|(_, item)| item.split('"').next().unwrap());
        let event = match item.filter(|_| event.contains(".delta")) {
            Some(item) => {
                let count = sent.entry(item).or_default();
                *count += 1;
                let member = format!(r#","timings":{{"cache_n":15,"prompt_n":1,"predicted_n":{count}}}}}"#);
                event.trim_end().strip_suffix('}').unwrap().to_owned() + &member + "\n\n"
            }
            None => event.to_owned(),
        };
        events.push((event, sent.values().sum()));
    }
    events
}

/// The running counts of parallel answers cannot be assigned to answers, so none is added.
#[test]
fn running_counts_of_several_responses_add_nothing() {
    let events = counted_responses();
    let ends = events.iter().filter(|(event, _)| event.contains("response.completed")).count();
    assert_eq!((ends, events.last().unwrap().1), (4, 20));
    for count in 1..=events.len() {
        let (sent, made) = (&events[..count], events[count - 1].1);
        let body: String = sent.iter().map(|(event, _)| &**event).collect();
        let request = r#"{"n":4,"stream":true,"timings_per_token":true}"#;
        let record = metered("/v1/responses", request, "text/event-stream", body.leak());
        let is_whole = count == events.len();
        let seen = (record.tokens.output(), record.tokens.output_provenance == Provenance::Reported);
        assert_eq!(seen, (made, is_whole), "{count} events");
        assert!(record.tokens.input() <= 16, "{count} events");
    }
}

#[test]
fn uncountable_request_is_rejected_where_terms_demand_it() {
    let upstream = Upstream::start(|peer, _| {
        while let Some(head) = peer.head() {
            upstream_body(peer, &head);
            answer(peer, r#"{"model":"m","usage":{"prompt_tokens":7,"completion_tokens":2}}"#);
        }
    });
    let fields = r#"{"prompt":"x","response_fields":["content"]}"#;
    let both = r#"{"prompt":"x","response_fields":["content","tokens_evaluated","tokens_predicted"]}"#;
    let details = r#"{"inputs":"x","parameters":{"details":true}}"#;
    let triton = "/v2/models/m/generate";
    let odd = r#"{"n":2,"stream":1,"stream_options":{"include_usage":true}}"#;
    let octets = r#"{"input":"x","encoding_format":"bytes_only"}"#;
    let usual = |path, body, refused| (path, body, [refused; 3]);
    // Unknown kind, llama.cpp, vLLM.
    for (path, body, refused) in [
        usual("/completion", fields, true),
        usual("/infill", fields, true),
        usual("/completion", r#"{"stream":true,"prompt":"x","response_fields":["content"]}"#, true),
        usual("/completion", both, false),
        usual("/completion", r#"{"prompt":["a","b"],"n":2}"#, false),
        usual("/completion", "no JSON", true),
        usual("/generate", r#"{"inputs":"x"}"#, true),
        usual("/generate_stream", r#"{"inputs":"x"}"#, true),
        usual("/generate", details, false),
        usual(triton, r#"{"text_input":"x"}"#, true),
        (CHAT, r#"{"n":2}"#, [true, true, false]),
        (CHAT, r#"{"n_cmpl":2}"#, [true, true, false]),
        (CHAT, r#"{"n":-4294967292}"#, [true, true, false]),
        (CHAT, odd, [true, true, false]),
        usual(CHAT, r#"{"n":2,"stream":true,"stream_options":{"include_usage":true}}"#, false),
        usual(CHAT, r#"{"n":1}"#, false),
        ("/v1/completions", r#"{"prompt":["a","b"]}"#, [true, true, false]),
        usual("/v1/completions", r#"{"prompt":["a"]}"#, false),
        usual("/v1/completions", r#"{"prompt":["a","b"],"stream":true}"#, false),
        ("/v1/responses", r#"{"n":2,"stream":true}"#, [true, true, false]),
        usual("/v1/responses", r#"{"n":2}"#, false),
        usual("/v1/responses", r#"{"stream":true}"#, false),
        usual("/v1/embeddings", octets, true),
        usual("/pooling", octets, true),
        usual("/classify", octets, true),
        usual("/invocations", octets, true),
        usual("/v1/embeddings", r#"{"input":"x","encoding_format":"bytes"}"#, false),
        usual("/v1/embeddings", r#"{"input":"x"}"#, false),
        usual("/v1/rerank", r#"{"query":"x","documents":["y"]}"#, false),
        usual("/v1/embeddings", "no JSON", true),
        usual("/score", "no JSON", true),
    ] {
        for (kind, refused) in
            [None, Some(ServerKind::LlamaCpp), Some(ServerKind::Vllm)].into_iter().zip(refused)
        {
            for (strict, refused) in [(true, refused), (false, false)] {
                let terms = Terms { refuse_uncountable: strict, ..Terms::default() };
                let proxy = Proxy::with(upstream.address, |plan| {
                    in_force(keys())(plan);
                    (plan.upstreams[0].usage, plan.upstreams[0].kind) = (Policy::Inject, kind);
                    plan.control.gate =
                        Some(Arc::new(Gate::with_models(Box::new(Under { terms, restricts: false }))));
                });
                let (head, answer) = exchange(&mut proxy.connect(), post(path, KEY_A, body));
                let expected = if refused { "403" } else { "200" };
                assert_eq!(&head[9..12], expected, "{path} {body} to {kind:?}, {strict}: {answer}");
                assert_eq!(proxy.seen().refused, vec![Refusal::Uncountable; usize::from(refused)]);
            }
        }
    }
}

/// The client chooses the form of the answer, in any spelling.
#[test]
fn terms_reject_forms_without_usage() {
    let upstream = answering(JSON, r#"{"candidates":[]}"#);
    let gemini = "/v1beta/models/known:generateContent";
    for (query, field, refused) in [
        ("", "", false),
        ("?alt=json&key=k", "Accept: application/json\r\nAccept-Encoding: gzip\r\n", false),
        ("?fields=candidates", "", true),
        ("?key=k&%24f%69elds=candidates", "", true),
        ("?alt=proto", "", true),
        ("?callback=x", "", true),
        ("", "X-Goog-FieldMask: candidates\r\n", true),
        ("", "Accept: application/x-protobuf\r\n", true),
        ("", "Accept-Encoding: compress\r\n", true),
    ] {
        for (strict, refused) in [(true, refused), (false, false)] {
            let terms = Terms { refuse_uncountable: strict, ..Terms::default() };
            let proxy = Proxy::with(upstream.address, |plan| {
                in_force(keys())(plan);
                plan.control.gate =
                    Some(Arc::new(Gate::with_models(Box::new(Under { terms, restricts: false }))));
            });
            let request = post(&format!("{gemini}{query}"), &format!("{KEY_A}{field}"), "{}");
            let (head, _) = exchange(&mut proxy.connect(), request);
            assert_eq!(&head[9..12], if refused { "403" } else { "200" }, "{query} {field}");
        }
    }
}

/// llama.cpp and OpenAI count the tokens of a transcript in JSON, vLLM those of a stream with requested usage.
#[test]
fn terms_reject_transcripts_without_tokens() {
    const FILE: &str =
        "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\nRIFF\r\n";
    let upstream = answering(JSON, r#"{"text":"so"}"#);
    let kinds = [
        None,
        Some(ServerKind::LlamaCpp),
        Some(ServerKind::Openai),
        Some(ServerKind::Vllm),
        Some(ServerKind::Sglang),
    ];
    let plain = [true; 5];
    let json = [true, false, false, true, true];
    let counted = [true, false, false, false, true];
    for (fields, end, refused) in [
        (&[][..], "--B--", json),
        (&[("response_format", "json")], "--B--", json),
        (&[("response_format", "text")], "--B--", plain),
        (&[("response_format", "srt")], "--B--", plain),
        (&[("response_format", "vtt")], "--B--", plain),
        (&[("response_format", "verbose_json")], "--B--", plain),
        (&[("stream", "true")], "--B--", json),
        (&[("stream", "True"), ("stream_include_usage", "1")], "--B--", counted),
        (&[("stream", "false"), ("stream_include_usage", "true")], "--B--", json),
        (&[("stream", "true"), ("stream_include_usage", "false")], "--B--", json),
        (
            &[("stream", "true"), ("stream_include_usage", "true"), ("response_format", "text")],
            "--B--",
            plain,
        ),
        // The body may continue, so its parameters are unknown.
        (&[], "", plain),
    ] {
        let part = |(name, value): &(&str, &str)| {
            format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
        };
        let form = FILE.to_owned() + &fields.iter().map(part).collect::<String>() + end;
        let head = format!("{KEY_A}Content-Type: multipart/form-data; boundary=B\r\n");
        for (kind, refused) in kinds.into_iter().zip(refused) {
            for (strict, refused) in [(true, refused), (false, false)] {
                let terms = Terms { refuse_uncountable: strict, ..Terms::default() };
                let proxy = Proxy::with(upstream.address, |plan| {
                    in_force(keys())(plan);
                    plan.upstreams[0].kind = kind;
                    plan.control.gate =
                        Some(Arc::new(Gate::with_models(Box::new(Under { terms, restricts: false }))));
                });
                let request = post("/v1/audio/transcriptions", &head, &form);
                let (answer, _) = exchange(&mut proxy.connect(), request);
                let expected = if refused { "403" } else { "200" };
                assert_eq!(&answer[9..12], expected, "{fields:?} to {kind:?}, {strict}");
            }
        }
    }
}

/// TGI's response head counts the best of several sequences; its details count all.
#[test]
fn usage_of_best_of_several_is_incomplete() {
    let fields = "application/json\r\nx-prompt-tokens: 5\r\nx-generated-tokens: 20";
    let details = r#"{"generated_text":"a","details":{"finish_reason":"length","generated_tokens":20,"prefill":[],"tokens":[],"best_of_sequences":[{"generated_text":"b","generated_tokens":19},{"generated_text":"c","generated_tokens":20}]}}"#;
    let text = r#"{"generated_text":"a"}"#;
    for (request, body, input, output) in [
        (r#"{"inputs":"x","parameters":{}}"#, text, (Provenance::Reported, 5), (Provenance::Reported, 20)),
        (r#"{"inputs":"x","parameters":{"best_of":3}}"#, text, (Provenance::None, 0), (Provenance::None, 0)),
        (
            r#"{"inputs":"x","parameters":{"best_of":3,"details":true}}"#,
            details,
            (Provenance::Running, 5),
            (Provenance::Reported, 59),
        ),
    ] {
        let tokens = metered("/generate", request, fields, body).tokens;
        assert_eq!((tokens.input_provenance, tokens.input()), input, "{request}");
        assert_eq!((tokens.output_provenance, tokens.output()), output, "{request}");
    }
}

/// A configured tokenizer counts the output that the server does not count.
#[test]
fn text_without_counts_is_kept_for_tokenizer() {
    for (path, request, body, text) in [
        (
            "/completion",
            r#"{"model":"m","prompt":"x","response_fields":["content"]}"#,
            r#"{"content":"abc"}"#,
            "abc",
        ),
        ("/generate", r#"{"model":"m","inputs":"x"}"#, r#"{"generated_text":"abc"}"#, "abc"),
        ("/v2/models/m/generate", r#"{"text_input":"x"}"#, r#"{"text_output":"abc"}"#, "abc"),
    ] {
        let upstream = answering(JSON, body);
        let proxy = Proxy::with(upstream.address, |plan| {
            plan.tokenized = Arc::new(["m".into()].into_iter().collect());
        });
        exchange(&mut proxy.connect(), post(path, "", request));
        let finished = proxy.inbox.recv_timeout(DEADLINE).unwrap().finished().unwrap();
        assert_eq!(finished.record.tokens, Tokens::NONE, "{path}");
        let kept = finished.text.as_ref().map(|kept| kept.as_bytes().to_vec());
        assert_eq!(kept.as_deref(), Some(text.as_bytes()), "{path}");
    }
}
