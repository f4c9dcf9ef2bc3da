//! The facts of a request: recorded and constructed requests in any slices, compared with the oracle.

use harness::{Transcript, naive};
use proptest::prelude::*;
use scan::{Dialect, Request, RequestScanner, Sampling};

fn read(body: &[u8], step: usize) -> Request {
    let mut scanner = RequestScanner::new();
    for slice in body.chunks(step) {
        scanner.feed(slice);
    }
    scanner.end()
}

fn check(name: &str, body: &[u8]) -> Option<()> {
    let whole = read(body, usize::MAX);
    for step in [1, 7, 64] {
        assert_eq!(format!("{:?}", read(body, step)), format!("{whole:?}"), "{name} in steps of {step}");
    }
    let asked = naive::read_request(body)?;
    assert!(whole.whole, "{name}");
    let expected = naive::RequestFacts {
        model: whole.model().to_owned(),
        stream: whole.stream,
        answers: whole.answers,
        prompt_ids: whole.prompt_ids,
        include_usage: whole.include_usage,
        continuous_usage: whole.continuous_usage,
        echo: whole.echo,
        sampling: whole.sampling,
        kv_transfer: whole.kv_transfer,
        is_one_token: [Dialect::OpenaiChat, Dialect::OpenaiCompletions, Dialect::OpenaiResponses]
            .map(|dialect| whole.output_limits.is_one_token(dialect)),
    };
    assert_eq!(expected, asked, "{name}: {}", String::from_utf8_lossy(&body[..body.len().min(300)]));
    Some(())
}

#[test]
fn recorded_requests_agree_with_the_oracle() {
    for transcript in Transcript::all() {
        let known = check(&transcript.name, &transcript.request);
        assert!(known.is_some() || transcript.name.ends_with("error-bad-json"), "{}", transcript.name);
    }
}

/// The body in the encodings that Python's `json.loads` detects, other than plain UTF-8.
fn encodings(text: &str) -> Vec<Vec<u8>> {
    let utf16 = |order: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(order).collect::<Vec<u8>>();
    let utf32 = |order: fn(u32) -> [u8; 4]| text.chars().map(u32::from).flat_map(order).collect::<Vec<u8>>();
    vec![
        [b"\xEF\xBB\xBF", text.as_bytes()].concat(),
        utf16(u16::to_be_bytes),
        utf16(u16::to_le_bytes),
        [b"\xFE\xFF", &utf16(u16::to_be_bytes)[..]].concat(),
        [b"\xFF\xFE", &utf16(u16::to_le_bytes)[..]].concat(),
        utf32(u32::to_be_bytes),
        utf32(u32::to_le_bytes),
        [b"\x00\x00\xFE\xFF", &utf32(u32::to_be_bytes)[..]].concat(),
        [b"\xFF\xFE\x00\x00", &utf32(u32::to_le_bytes)[..]].concat(),
    ]
}

#[test]
fn recorded_requests_give_the_same_in_every_encoding() {
    for transcript in Transcript::all() {
        let Ok(text) = str::from_utf8(&transcript.request) else { continue };
        // A body this short may be read as another encoding.
        if text.len() < 4 {
            continue;
        }
        let plain = format!("{:?}", read(text.as_bytes(), usize::MAX));
        for (encoding, body) in encodings(text).iter().enumerate() {
            for step in [1, 3, 64, usize::MAX] {
                let name = &transcript.name;
                assert_eq!(
                    format!("{:?}", read(body, step)),
                    plain,
                    "{name} in {encoding} in steps of {step}"
                );
            }
        }
    }
}

#[test]
fn constructed_requests_agree_with_the_oracle() {
    for body in [
        r#"{"model":"m","stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}"#,
        r#"{"stream_options":{"include_usage":false},"stream":false}"#,
        r#"{"stream":null,"stream_options":null,"n":null}"#,
        r#"{"n":3,"prompt":["a","b"]}"#,
        r#"{"max_tokens":1,"kv_transfer_params":{"do_remote_decode":true,"do_remote_prefill":false,"remote_host":null}}"#,
        r#"{"max_completion_tokens":1,"kv_transfer_params":{"do_remote_prefill":true,"remote_block_ids":[1,2]}}"#,
        r#"{"max_tokens":2,"kv_transfer_params":{"do_remote_decode":"true"}}"#,
        r#"{"max_tokens":1,"kv_transfer_params":[{"do_remote_decode":true}]}"#,
        r#"{"max_output_tokens":1,"kv_transfer_params":null}"#,
        r#"{"n":0,"prompt":[]}"#,
        r#"{"n_cmpl":4,"prompt":"x"}"#,
        r#"{"prompt":[1,2,3]}"#,
        r#"{"prompt":[[1,2],[3]],"n":2}"#,
        r#"{"prompt":["a",12,"b"]}"#,
        r#"{"prompt":[12,"a",13,"b"],"n":2}"#,
        r#"{"echo":true,"model":"a\u0062c"}"#,
        r#"{"messages":[{"content":"\"stream\":true","model":"no","n":9}],"model":"yes"}"#,
        r#"{"metadata":{"model":"no","stream":true},"prompt":"\\"}"#,
        r#"{"n":99999999999}"#,
        r#"{"n":-1}"#,
        r#"{"n":-4294967292}"#,
        r#"{"n":3.7}"#,
        r#"[{"model":"no"}]"#,
        r#"{"max_tokens":16,"temperature":0.7,"top_p":1,"top_k":-1,"seed":4294967295}"#,
        r#"{"max_tokens":16,"max_completion_tokens":32,"presence_penalty":-1.5,"frequency_penalty":2e0}"#,
        r#"{"max_tokens":16,"max_completion_tokens":null,"seed":1.0,"temperature":"0.7"}"#,
        r#"{"n_predict":-1,"temperature":[0.1],"top_p":{"p":1},"top_k":true,"seed":18446744073709551615}"#,
        r#"{"inputs":"a","parameters":{"max_new_tokens":20,"temperature":0.1,"seed":-9223372036854775808}}"#,
        r#"{"text":"a","sampling_params":{"max_new_tokens":12.0,"top_p":0.30000000000000004,"sampling_seed":3}}"#,
        r#"{"prompt":"a","options":{"num_predict":5,"top_k":40,"top_p":0.9,"seed":7}}"#,
        r#"{"contents":[],"generationConfig":{"maxOutputTokens":9,"topP":0.1,"topK":2,"presencePenalty":1}}"#,
        r#"{"k":3,"p":0.75,"max_tokens":9007199254740993}"#,
        r#"{"messages":[{"temperature":1}],"tools":[{"seed":2,"parameters":{"top_p":1}}]}"#,
        r#"{"reasoning_effort":"low","response_format":{"type":"json_object"},"modalities":["text"]}"#,
        r#"{"reasoning":{"effort":"a word of mine"},"text":{"format":{"type":"json_schema"}}}"#,
        r#"{"modalities":["text","audio"],"think":true}"#,
        r#"{"input":"a","encoding_format":"base64","dimensions":512}"#,
        r#"{"texts":["a"],"embedding_types":["int8","ubinary","int4"],"output_dimension":1.5}"#,
    ] {
        check(body, body.as_bytes()).unwrap_or_else(|| panic!("the oracle has no result for {body}"));
    }
}

#[test]
fn invalid_request_is_not_whole() {
    for body in ["", " ", "{", "{\"model\":\"m\"", "x", "{}}", "{\"model\":\"m\"}x"] {
        assert!(!read(body.as_bytes(), usize::MAX).whole, "{body}");
    }
}

/// A number is read exactly or not.
#[test]
fn numbers_keep_their_value() {
    let long = format!("0.{}1", "0".repeat(300));
    let almost = format!("0.{}1", "0".repeat(200));
    for (number, temperature) in [
        ("0.1", Some(0.1)),
        ("1e-7", Some(1e-7)),
        ("123456789.123456789", Some(123_456_789.123_456_79)),
        ("1e308", Some(1e308)),
        ("1e309", None),
        ("-1e309", None),
        ("NaN", None),
        ("Infinity", None),
        ("-Infinity", None),
        ("\"1\"", None),
        (&almost, Some(1e-201)),
        // The scanner keeps only a part of it.
        (&long, None),
    ] {
        let body = format!("{{\"temperature\":{number},\"seed\":7}}");
        for step in [1, 3, usize::MAX] {
            let sampling = read(body.as_bytes(), step).sampling;
            let expected = Sampling { temperature, seed: Some(7), ..Sampling::default() };
            assert_eq!(sampling, expected, "{number} in steps of {step}");
        }
    }
}

#[test]
fn generated_requests_agree_with_the_oracle() {
    let names = [
        "model",
        "stream",
        "n",
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "n_predict",
        "max_new_tokens",
        "num_predict",
        "maxOutputTokens",
        "temperature",
        "top_p",
        "topP",
        "p",
        "top_k",
        "topK",
        "k",
        "seed",
        "sampling_seed",
        "frequency_penalty",
        "presencePenalty",
        "presence_penalty",
    ];
    let values = [
        "null",
        "true",
        "0",
        "-0",
        "1",
        "-1",
        "12.0",
        "0.1",
        "1e3",
        "2.5e-3",
        "9007199254740993",
        "\"m\"",
        "18446744073709551615",
        "0.30000000000000004",
        "5e-324",
        "1.7976931348623157e308",
        "[1]",
        "{}",
        "\"yes\"",
        "\"Off\"",
    ];
    let nests = ["", "", "parameters", "sampling_params", "options", "generationConfig", "metadata"];
    let members = proptest::collection::vec((0..names.len(), 0..values.len(), 0..nests.len()), 0..6);
    let opinions = std::cell::Cell::new(0_u32);
    proptest!(chance::cases(3000), |(members in members)| {
        let mut body = Vec::new();
        for name in &nests[1..] {
            let inside: Vec<String> = members
                .iter()
                .filter(|member| nests[member.2] == *name)
                .map(|&(key, value, _)| format!("\"{}\":{}", names[key], values[value]))
                .collect();
            match (name.is_empty(), inside.is_empty()) {
                (_, true) => {}
                (true, false) => body.extend(inside),
                (false, false) => body.push(format!("\"{name}\": {{{}}}", inside.join(","))),
            }
        }
        let body = format!("{{{}}}", body.join(" , "));
        opinions.set(opinions.get() + u32::from(check(&body, body.as_bytes()).is_some()));
    });
    assert!(opinions.get() > 1500, "the oracle has too few results: {}", opinions.get());
}
