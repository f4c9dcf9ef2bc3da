//! The shapes against recordings of real servers.

use serde_json::Value;
use simulator::params::{Defaults, Endpoint, GenerationParams};
use simulator::script::Script;
use simulator::shape::{CompleteChoice, Shape as _};
use simulator::speed::Model;

use crate::{Shape, simulate};

fn params(endpoint: Endpoint, body: &str) -> GenerationParams {
    let defaults = Defaults { seed: 1, output_tokens: 32, models: &[] };
    let mut params = GenerationParams::parse(endpoint, body.as_bytes(), &defaults).unwrap();
    simulate::apply(&mut params).unwrap();
    params
}

/// Returns all chunks of a streamed response.
fn stream(shape: Shape, endpoint: Endpoint, body: &str) -> Vec<String> {
    let params = params(endpoint, body);
    let model = Model::default();
    let writer = shape.writer(&params, &model);
    let mut script = Script::new(&params, &model);
    let mut out = Vec::new();
    writer.opening(&params, &mut out);
    loop {
        let step = script.step(&model);
        if step.is_empty() {
            break;
        }
        step.iter().for_each(|piece| writer.piece(&params, piece, &mut out));
    }
    writer.end(&params, script.total(&params), &mut out);
    out
}

fn whole(shape: Shape, endpoint: Endpoint, body: &str) -> String {
    let params = params(endpoint, body);
    let model = Model::default();
    let mut script = Script::new(&params, &model);
    let mut complete_choices: Vec<CompleteChoice> =
        (0..params.choices()).map(|_| CompleteChoice::new(&params)).collect();
    loop {
        let step = script.step(&model);
        if step.is_empty() {
            return shape.writer(&params, &model).whole(&params, &complete_choices);
        }
        step.iter().for_each(|piece| complete_choices[piece.choice as usize].push(piece));
    }
}

/// Parses the JSON objects of a stream; each event must be one, or the end mark.
fn events(chunks: &[String]) -> Vec<Value> {
    chunks
        .iter()
        .flat_map(|chunk| chunk.strip_suffix("\n\n").unwrap().split("\n\n"))
        .map(|event| event.strip_prefix("data: ").unwrap())
        .filter(|data| *data != "[DONE]")
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

const SHAPES: [Shape; 2] = [Shape::Vllm, Shape::LlamaCpp];

#[test]
fn every_output_is_valid_json() {
    for shape in SHAPES {
        for endpoint in [Endpoint::Chat, Endpoint::Completion, Endpoint::Native] {
            if shape == Shape::Vllm && endpoint == Endpoint::Native {
                continue;
            }
            let body = r#"{"messages":[],"prompt":"a \"b\"","model":"m\"x","max_tokens":400,"n_predict":400,
                "n":2,"stream":true,"logprobs":1,"return_token_ids":true,
                "stream_options":{"include_usage":true,"continuous_usage_stats":true},
                "simulate":{"reasoning":40,"tool":30,"text":"split","burst":3,"cached":1}}"#;
            assert!(events(&stream(shape, endpoint, body)).len() > 200);
            let complete_choices = whole(shape, endpoint, body);
            serde_json::from_str::<Value>(&complete_choices).unwrap();
        }
        for message in ["a \"b\"\n", ""] {
            serde_json::from_str::<Value>(&shape.error_body(500, message)).unwrap();
        }
        serde_json::from_str::<Value>(&shape.models(&["a", "b\""])).unwrap();
    }
}

#[test]
fn vllm_frames_match_recordings() {
    let body = r#"{"messages":[],"model":"m","max_tokens":2,"stream":true,"simulate":{"text":"plain"}}"#;
    let chunks = stream(Shape::Vllm, Endpoint::Chat, body);
    let envelope = chunks[0].split(",\"choices\"").next().unwrap();
    assert!(envelope.starts_with("data: {\"id\":\"chatcmpl-"));
    assert!(envelope.ends_with("\"created\":1790000000,\"model\":\"m\""));
    let tails: Vec<&str> = chunks[..3].iter().map(|chunk| chunk.strip_prefix(envelope).unwrap()).collect();
    assert_eq!(
        tails[0],
        ",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,\"finish_reason\":null}],\"prompt_token_ids\":null,\"prompt_text\":null}\n\n"
    );
    assert!(tails[1].ends_with("\"},\"logprobs\":null,\"finish_reason\":null,\"token_ids\":null}]}\n\n"));
    assert!(tails[2].ends_with(
        "\"},\"logprobs\":null,\"finish_reason\":\"length\",\"stop_reason\":null,\"token_ids\":null}],\"system_fingerprint\":\"vllm-0.32.0-simulated\"}\n\n"
    ));
    assert_eq!(chunks[3..], ["data: [DONE]\n\n"]);
}

#[test]
fn llamacpp_frames_match_recordings() {
    let body = r#"{"messages":[],"model":"m","max_tokens":2,"stream":true,"stream_options":{"include_usage":true},"simulate":{"text":"plain"}}"#;
    let chunks = stream(Shape::LlamaCpp, Endpoint::Chat, body);
    assert_eq!(chunks.len(), 4);
    let (role, text) = chunks[0].split_once("\n\n").unwrap();
    assert!(role.starts_with(
        "data: {\"choices\":[{\"finish_reason\":null,\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null}}],\"created\":1790000000,\"id\":\"chatcmpl-"
    ));
    assert!(role.ends_with(
        "\"model\":\"m\",\"system_fingerprint\":\"b11669-simulated\",\"object\":\"chat.completion.chunk\"}"
    ));
    assert!(
        text.starts_with(
            "data: {\"choices\":[{\"finish_reason\":null,\"index\":0,\"delta\":{\"content\":\" "
        )
    );
    let (finish, usage) = chunks[2].split_once("\n\n").unwrap();
    assert!(
        finish.starts_with("data: {\"choices\":[{\"finish_reason\":\"length\",\"index\":0,\"delta\":{}}],")
    );
    assert!(usage.contains("\"usage\":{\"completion_tokens\":2,\"prompt_tokens\":0,\"total_tokens\":2,\"prompt_tokens_details\":{\"cached_tokens\":0}},\"timings\":{\"cache_n\":0,"));
}

#[test]
fn usage_equals_the_tokens_sent() {
    for shape in SHAPES {
        let body = r#"{"messages":[{"content":"a b"}],"max_tokens":300,"n":3,"stream":true,
            "stream_options":{"include_usage":true},"logprobs":true,"simulate":{"text":"plain"}}"#;
        let events = events(&stream(shape, Endpoint::Chat, body));
        let sent: usize = events
            .iter()
            .filter_map(|event| event["choices"][0]["logprobs"]["content"].as_array())
            .map(Vec::len)
            .sum();
        assert_eq!(sent, 900);
        let usage: Vec<&Value> = events.iter().map(|e| &e["usage"]).filter(|u| u.is_object()).collect();
        let output: u64 = usage.iter().filter_map(|u| u["completion_tokens"].as_u64()).sum();
        assert_eq!(output, 900);
        assert!(usage.iter().all(|u| u["prompt_tokens"] == 6));
        assert_eq!(usage.len(), if shape == Shape::Vllm { 1 } else { 3 });
    }
}

#[test]
fn llamacpp_sends_first_usage_in_mid_stream() {
    let body =
        r#"{"messages":[],"max_tokens":3,"n":2,"stream":true,"stream_options":{"include_usage":true}}"#;
    let events = events(&stream(Shape::LlamaCpp, Endpoint::Chat, body));
    let first = events.iter().position(|e| e["usage"].is_object()).unwrap();
    assert_eq!(events[first + 1]["choices"][0]["index"], 1);
    assert!(events[first + 1]["choices"][0]["delta"]["content"].is_string());
}

#[test]
fn llamacpp_unstreamed_usage_covers_only_the_first_choice() {
    let body = r#"{"messages":[],"max_tokens":5,"n":2}"#;
    let complete_choices: Value =
        serde_json::from_str(&whole(Shape::LlamaCpp, Endpoint::Chat, body)).unwrap();
    assert_eq!(complete_choices["choices"].as_array().unwrap().len(), 2);
    assert_eq!(complete_choices["usage"]["completion_tokens"], 5);
    let complete_choices: Value = serde_json::from_str(&whole(Shape::Vllm, Endpoint::Chat, body)).unwrap();
    assert_eq!(complete_choices["usage"]["completion_tokens"], 10);
}

#[test]
fn running_usage_is_per_choice() {
    let body = r#"{"messages":[],"max_tokens":40,"n":2,"stream":true,
        "stream_options":{"include_usage":true,"continuous_usage_stats":true},
        "simulate":{"text":"split","burst":2}}"#;
    let events = events(&stream(Shape::Vllm, Endpoint::Chat, body));
    for choice in 0..2 {
        let counts: Vec<u64> = events
            .iter()
            .filter(|event| event["choices"][0]["index"] == choice)
            .filter_map(|event| event["usage"]["completion_tokens"].as_u64())
            .collect();
        assert!(counts.is_sorted());
        assert_eq!((counts[0], counts.last()), (0, Some(&40)));
    }
    assert_eq!(events.last().unwrap()["usage"]["completion_tokens"], 80);
}

#[test]
fn withheld_text_gives_fewer_frames_than_tokens() {
    let body = r#"{"messages":[],"prompt":"a","max_tokens":200,"n_predict":200,"stream":true,"simulate":{"text":"split"}}"#;
    for shape in SHAPES {
        assert!(events(&stream(shape, Endpoint::Chat, body)).len() < 190);
    }
    let events = events(&stream(Shape::LlamaCpp, Endpoint::Native, body));
    let last = events.last().unwrap();
    assert_eq!((&last["stop"], &last["tokens_predicted"]), (&true.into(), &200.into()));
    assert_eq!(last["generation_settings"]["stop"], Value::Array(Vec::new()));
}

#[test]
fn token_ids_account_for_each_token() {
    let body = r#"{"messages":[],"prompt":"a b c","max_tokens":100,"stream":true,"return_token_ids":true,"simulate":{"text":"split","burst":3}}"#;
    for endpoint in [Endpoint::Chat, Endpoint::Completion] {
        let events = events(&stream(Shape::Vllm, endpoint, body));
        let ids: usize =
            events.iter().filter_map(|event| event["choices"][0]["token_ids"].as_array()).map(Vec::len).sum();
        assert_eq!(ids, 100);
    }
}

#[test]
fn natural_end_is_a_token_without_text() {
    let body = r#"{"messages":[],"stream":true,"simulate":{"tokens":4,"tool":2,"text":"plain"}}"#;
    let vllm = events(&stream(Shape::Vllm, Endpoint::Chat, body));
    let last = vllm.last().unwrap();
    assert_eq!(last["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(last["choices"][0]["delta"], Value::Object(Default::default()));
    let arguments: String = vllm
        .iter()
        .filter_map(|e| e["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"].as_str())
        .collect();
    assert_eq!(arguments, r#"{"query":""}"#);
}
