//! The facts of a request.

use crate::{Casing, Dialect, Request, RequestScanner};

/// Reads a request whole and cut in two at every byte. All results must agree.
fn read(body: &str) -> Request {
    let facts = |r: &Request| (r.model().to_owned(), Request { model: None, ..r.clone() });
    let read = |slices: [&[u8]; 2]| {
        let mut scanner = RequestScanner::new();
        slices.iter().for_each(|slice| scanner.feed(slice));
        scanner.end()
    };
    let expected = read([body.as_bytes(), b""]);
    for cut in 0..body.len() {
        let (head, tail) = body.as_bytes().split_at(cut);
        assert_eq!(
            format!("{:?}", facts(&read([head, tail]))),
            format!("{:?}", facts(&expected)),
            "{body} at {cut}"
        );
    }
    expected
}

#[test]
fn absent_members_have_their_defaults() {
    let request = read("{}");
    assert_eq!((request.answers, request.prompts, request.prompt_ids), (1, 1, None));
    assert!(!request.beam_search && !request.background && request.whole);
    assert_eq!(request.shape, crate::Shape::default());
}

#[test]
fn every_name_of_an_answer_count_is_read() {
    for (body, answers) in [
        (r#"{"n":3}"#, 3),
        (r#"{"text":"a","sampling_params":{"n":2}}"#, 2),
        (r#"{"text":["a","b"],"sampling_params":{"n":2}}"#, 4),
        (r#"{"contents":[],"generationConfig":{"candidateCount":4}}"#, 4),
        (r#"{"inputs":"a","parameters":{"best_of":5}}"#, 1),
        (r#"{"prompt":"a","best_of":5}"#, 1),
        (r#"{"prompt":"a","num_return_sequences":5}"#, 1),
        (r#"{"prompt":["a","b"],"n":2}"#, 4),
        (r#"{"input_ids":[[1,2],[3]]}"#, 2),
        (r#"{"metadata":{"n":5}}"#, 1),
    ] {
        assert_eq!(read(body).answers, answers, "{body}");
    }
}

/// llama.cpp takes the larger of its two members, the integer part of `3.7`, and the low 32 bits of an integer.
#[test]
fn llama_cpp_reads_both_answer_counts() {
    for (body, answers) in [
        ("{}", 1),
        (r#"{"n":2}"#, 2),
        (r#"{"n":1,"n_cmpl":3}"#, 3),
        (r#"{"n":3,"n_cmpl":1}"#, 3),
        (r#"{"n":3.7}"#, 3),
        (r#"{"n":0.5}"#, 1),
        (r#"{"n":-2}"#, 1),
        (r#"{"n":-4294967292}"#, 4),
        (r#"{"n":1,"n_cmpl":-4294967294}"#, 2),
        (r#"{"n":-4294967296}"#, 1),
        (r#"{"n":-18446744073709551613}"#, 1),
        (r#"{"n":"4"}"#, 1),
    ] {
        assert_eq!(read(body).named_answers(), answers, "{body}");
        assert_eq!(read(body).of(Dialect::OpenaiChat).answers, answers, "{body}");
        assert_eq!(read(body).of(Dialect::OpenaiResponses).answers, 1, "{body}");
    }
}

#[test]
fn response_fields_may_hide_the_counts() {
    for (body, hidden) in [
        (r#"{"response_fields":["content"]}"#, true),
        (r#"{"response_fields":["content","tokens_predicted"]}"#, true),
        (r#"{"response_fields":["tokens_evaluated"]}"#, true),
        (r#"{"response_fields":["tokens_evaluated","content","tokens_predicted"]}"#, false),
        (r#"{"response_fields":["timings/predicted_n","Tokens_predicted"]}"#, true),
        // The answer has all members.
        (r#"{"response_fields":[]}"#, false),
        (r#"{"response_fields":"content"}"#, false),
        (r#"{"response_fields":null}"#, false),
        ("{}", false),
        // The last of two counts.
        (r#"{"response_fields":["content"],"response_fields":[]}"#, false),
        (r#"{"response_fields":[],"response_fields":["content"]}"#, true),
        (
            r#"{"response_fields":["tokens_evaluated","tokens_predicted"],"response_fields":["content"]}"#,
            true,
        ),
    ] {
        assert_eq!(read(body).hides_counts, hidden, "{body}");
    }
}

#[test]
fn usage_that_a_gateway_drops_is_recognised() {
    for (body, dropped) in [
        (r#"{"additional_drop_params":["a","stream_options"]}"#, true),
        (r#"{"additional_drop_params":["stream_options.include_usage"]}"#, true),
        (r#"{"extra_body":{"a":1,"stream_options":{"include_usage":false}}}"#, true),
        (r#"{"additional_drop_params":["temperature"],"extra_body":{"stream_options":null}}"#, false),
        (r#"{"stream_options":{"include_usage":true},"extra_body":{"a":"stream_options"}}"#, false),
    ] {
        assert_eq!(read(body).drops_usage, dropped, "{body}");
    }
}

#[test]
fn formats_without_counts_are_recognised() {
    for (body, octets, plain) in [
        (r#"{"encoding_format":"bytes_only"}"#, true, false),
        (r#"{"encoding_format":"bytes"}"#, false, false),
        (r#"{"encoding_format":"float"}"#, false, false),
        (r#"{"encoding_format":"Bytes_Only"}"#, false, false),
        (r#"{"encoding_format":["bytes_only"]}"#, false, false),
        (r#"{"encoding_format":"bytes_only","encoding_format":null}"#, false, false),
        (r#"{"encoding_format":null,"encoding_format":"bytes_only"}"#, true, false),
        (r#"{"response_format":"text"}"#, false, true),
        (r#"{"response_format":"a form to come"}"#, false, true),
        (r#"{"response_format":"verbose_json"}"#, false, true),
        (r#"{"response_format":"json"}"#, false, false),
        (r#"{"response_format":"diarized_json"}"#, false, false),
        (r#"{"response_format":{"type":"text"}}"#, false, false),
        (r#"{"response_format":"vtt","response_format":"json"}"#, false, false),
        ("{}", false, false),
    ] {
        let request = read(body);
        assert_eq!((request.is_embedding_bytes_only, request.plain_transcript), (octets, plain), "{body}");
    }
    assert!(read(r#"{"encoding_format":"float"}"#).sampling.encoding_formats[0]);
}

#[test]
fn details_and_best_of_are_read() {
    for (body, details) in [
        (r#"{"parameters":{"details":true}}"#, true),
        (r#"{"parameters":{"details":false}}"#, false),
        (r#"{"parameters":{"details":"true"}}"#, false),
        (r#"{"details":true}"#, false),
        (r#"{"parameters":{"details":true},"parameters":{}}"#, false),
        ("{}", false),
    ] {
        assert_eq!(read(body).details, details, "{body}");
    }
    for (body, best_of) in [
        (r#"{"parameters":{"best_of":4}}"#, true),
        (r#"{"parameters":{"best_of":1}}"#, false),
        (r#"{"parameters":{"best_of":null}}"#, false),
        (r#"{"best_of":4}"#, false),
        (r#"{"parameters":{"best_of":4},"parameters":{}}"#, false),
    ] {
        assert_eq!(read(body).best_of, best_of, "{body}");
    }
}

#[test]
fn prompt_ids_are_counted() {
    for (body, prompts, ids) in [
        (r#"{"input_ids":[1,2,3]}"#, 1, Some(3)),
        (r#"{"prompt":[1,2,3]}"#, 1, Some(3)),
        (r#"{"input_ids":[[1,2],[3]]}"#, 2, None),
        (r#"{"text":["a","b","c"]}"#, 3, None),
        (r#"{"text":"a"}"#, 1, None),
        (r#"{"text":{"format":{"type":"text"}}}"#, 1, None),
    ] {
        let request = read(body);
        assert_eq!((request.prompts, request.prompt_ids), (prompts, ids), "{body}");
    }
}

/// A member that the server ignores has no effect on its work.
#[test]
fn only_a_dialects_own_members_count() {
    use Dialect::{
        Anthropic, Gemini, Lmdeploy, OllamaChat, OpenaiChat as Chat, OpenaiCompletions, Sglang, VllmGenerate,
    };
    let junk = r#"{"messages":[],"text":["a","b"],"sampling_params":{"n":1000000}}"#;
    let two = r#"{"prompt":["a","b"],"n":2,"input_ids":[1],"generationConfig":{"candidateCount":9}}"#;
    for (dialect, body, answers, prompts, ids) in [
        (Chat, junk, 1, 1, None),
        (Sglang, junk, 2_000_000, 2, None),
        (VllmGenerate, junk, 1_000_000, 1, None),
        (Anthropic, junk, 1, 1, None),
        (Chat, two, 2, 1, None),
        (OpenaiCompletions, two, 4, 2, None),
        (OllamaChat, two, 1, 1, None),
        (Gemini, two, 9, 1, None),
        (Sglang, r#"{"input_ids":[1,2]}"#, 1, 1, Some(2)),
        (Lmdeploy, r#"{"input_ids":[1,2],"n":2}"#, 1, 1, Some(2)),
        (OpenaiCompletions, r#"{"prompt":[1,2]}"#, 1, 1, Some(2)),
        (Chat, r#"{"prompt":[1],"n":3}"#, 3, 1, None),
        // The last of two counts.
        (OpenaiCompletions, r#"{"prompt":[1],"prompt":["a","b"]}"#, 2, 2, None),
        (OpenaiCompletions, r#"{"prompt":["a","b"],"prompt":"c"}"#, 1, 1, None),
        (Sglang, r#"{"sampling_params":{"n":3},"sampling_params":{}}"#, 1, 1, None),
    ] {
        let request = read(body).of(dialect);
        assert_eq!(
            (request.answers, request.prompts, request.prompt_ids),
            (answers, prompts, ids),
            "{dialect:?}: {body}"
        );
    }
}

#[test]
fn flags_are_read_as_booleans() {
    let request = read(r#"{"use_beam_search":true,"background":true,"x":{"echo":true}}"#);
    assert!(request.beam_search && request.background && !request.echo);
    let request = read(r#"{"use_beam_search":"true","background":null}"#);
    assert!(!request.beam_search && !request.background);
}

#[test]
fn lenient_stream_flags_are_recognised() {
    for (value, flag) in [
        ("true", Some(true)),
        ("1", Some(true)),
        ("1.0", Some(true)),
        (r#""true""#, Some(true)),
        (r#""YES""#, Some(true)),
        (r#""\u006fn""#, Some(true)),
        ("false", Some(false)),
        ("0", Some(false)),
        (r#""off""#, Some(false)),
        ("null", None),
        ("2", None),
        (r#""please""#, None),
        ("[true]", None),
        (r#"{"stream":true}"#, None),
    ] {
        for first in ["", r#""stream":true,"#, r#""stream":false,"#] {
            let body = format!(r#"{{{first}"stream":{value}}}"#);
            // Python's truth of a value applies where it is no flag.
            let stream = flag.or((value != "null").then_some(true));
            assert_eq!(read(&body).stream, stream, "{body}");
            let body = format!(r#"{{"stream_options":{{"include_usage":{value}}}}}"#);
            assert_eq!(read(&body).include_usage, flag, "{body}");
        }
    }
    for (value, stream) in
        [(r#""""#, false), ("-1", true), ("[1]", true), ("{}", true), ("NaN", true), ("0e5", false)]
    {
        assert_eq!(read(&format!(r#"{{"stream":{value}}}"#)).stream, Some(stream), "{value}");
    }
    let twice =
        r#"{"stream_options":{"include_usage":true,"continuous_usage_stats":true},"stream_options":{}}"#;
    let request = read(twice);
    assert_eq!((request.include_usage, request.continuous_usage), (None, false));
}

/// A server takes the last model, or its default if that is no name, so a cheap model named first must
/// not count.
#[test]
fn the_last_of_two_models_counts() {
    let deep = format!(r#"{{"model":"a","x":{}{},"model":"b"}}"#, "[".repeat(129), "]".repeat(129));
    for (body, model) in [
        (r#"{"model":"a","model":"b"}"#, "b"),
        (r#"{"model":"a","model":null}"#, ""),
        (r#"{"model":"a","model":""}"#, ""),
        (r#"{"model":"a","model":7}"#, ""),
        (r#"{"model":"a","model":false}"#, ""),
        (r#"{"model":"a","model":{"model":"c"}}"#, ""),
        (r#"{"model":"a","model":["c"]}"#, ""),
        (r#"{"model":null,"model":"b"}"#, "b"),
        (r#"{"model":"a","x":{"model":null}}"#, "a"),
        // Deeper than the scanner tracks.
        (&deep, "b"),
        // Invalid JSON: the rest is unknown.
        (r#"{"model":"a","x":True}"#, ""),
        // The client left: the part that arrived counts.
        (r#"{"model":"a","x":"#, "a"),
    ] {
        assert_eq!(read(body).model(), model, "{body}");
    }
}

#[test]
fn members_determine_the_dialect_of_a_shared_path() {
    let cases = [
        (r#"{"inputs":"a","parameters":{}}"#, Some(Dialect::Tgi), Some(Dialect::Tgi)),
        (r#"{"text":"a","sampling_params":{}}"#, Some(Dialect::Sglang), None),
        (r#"{"input_ids":[1],"sampling_params":{}}"#, Some(Dialect::Sglang), None),
        (r#"{"input_ids":[1],"temperature":0}"#, Some(Dialect::Lmdeploy), None),
        (r#"{"prompt":"a"}"#, Some(Dialect::Lmdeploy), Some(Dialect::OpenaiCompletions)),
        (r#"{"prompt":null,"text":"a"}"#, Some(Dialect::Sglang), None),
        (r#"{"messages":[{"text":"a","prompt":"b"}],"input":null}"#, None, Some(Dialect::OpenaiChat)),
        (r#"{"input":["a","b"]}"#, None, Some(Dialect::Embeddings)),
        (r#"{"contents":[{"parts":[{"text":"a"}]}]}"#, None, None),
        (r#"{"query":"a","documents":["b"]}"#, None, Some(Dialect::Rerank)),
        (r#"{"text_1":"a","text_2":["b"]}"#, None, Some(Dialect::Rerank)),
        (r#"{"data_1":"a","data_2":"b"}"#, None, Some(Dialect::Rerank)),
        (r#"{"queries":["a"],"items":["b"]}"#, None, Some(Dialect::Rerank)),
        (r#"{"query":"a","input":"b"}"#, None, Some(Dialect::Embeddings)),
        ("{}", None, None),
    ];
    for (body, generate, invocations) in cases {
        let request = read(body);
        assert_eq!(request.dialect_at_generate(), generate, "{body}");
        assert_eq!(request.dialect_at_invocations(), invocations, "{body}");
    }
    let shape = read(r#"{"contents":[],"parameters":{},"sampling_params":{}}"#).shape;
    assert!(shape.has_contents() && shape.has_parameters() && shape.has_sampling_params());
    assert!(!shape.has_messages() && !shape.has_prompt() && !shape.has_input() && !shape.has_input_ids());
}

#[test]
fn only_known_format_words_are_kept() {
    let float = [true, false, false, false, false, false];
    let several = [true, false, true, false, false, false];
    for (body, level, output, dimensions, formats) in [
        (r#"{"reasoning_effort":"high"}"#, Some("high"), None, None, [false; 6]),
        (r#"{"reasoning":{"effort":"xhigh","summary":"auto"}}"#, Some("xhigh"), None, None, [false; 6]),
        (r#"{"output_config":{"effort":"max"}}"#, Some("max"), None, None, [false; 6]),
        (r#"{"think":"low"}"#, Some("low"), None, None, [false; 6]),
        (r#"{"think":true,"reasoning_effort":"my secret"}"#, None, None, None, [false; 6]),
        (r#"{"reasoning_effort":"high","reasoning_effort":null}"#, None, None, None, [false; 6]),
        (
            r#"{"response_format":{"type":"json_schema","json_schema":{"type":"text"}}}"#,
            None,
            Some("json"),
            None,
            [false; 6],
        ),
        (r#"{"text":{"format":{"type":"text"}}}"#, None, Some("text"), None, [false; 6]),
        (r#"{"format":"json"}"#, None, Some("json"), None, [false; 6]),
        (r#"{"format":{"type":"object"}}"#, None, None, None, [false; 6]),
        (
            r#"{"generationConfig":{"responseMimeType":"application/json"}}"#,
            None,
            Some("json"),
            None,
            [false; 6],
        ),
        (r#"{"modalities":["text","audio"]}"#, None, Some("speech"), None, [false; 6]),
        (r#"{"modalities":["text"]}"#, None, None, None, [false; 6]),
        (r#"{"dimensions":256,"encoding_format":"float"}"#, None, None, Some(256), float),
        (r#"{"output_dimension":-1,"encoding_format":"prose"}"#, None, None, None, [false; 6]),
        (r#"{"embedding_types":["float","int8","int8"]}"#, None, None, None, several),
        (
            r#"{"messages":[{"reasoning_effort":"high","format":"json","dimensions":3}]}"#,
            None,
            None,
            None,
            [false; 6],
        ),
    ] {
        let sampling = read(body).sampling;
        let level_name = sampling.reasoning_level.map(crate::ReasoningLevel::name);
        let output_name = sampling.output_type.map(crate::OutputType::name);
        let facts = (level_name, output_name, sampling.dimensions, sampling.encoding_formats);
        assert_eq!(facts, (level, output, dimensions, formats), "{body}");
    }
}

#[test]
fn sampling_parameters_are_read() {
    let sampling = read(
        r#"{"max_tokens":256,"temperature":0.7,"top_p":9.5e-1,"top_k":-1,"seed":4294967295,"frequency_penalty":-0.25,"presence_penalty":2}"#,
    )
    .sampling;
    let expected = crate::Sampling {
        max_tokens: Some(256),
        temperature: Some(0.7),
        top_p: Some(0.95),
        top_k: Some(-1.0),
        seed: Some(4_294_967_295),
        frequency_penalty: Some(-0.25),
        presence_penalty: Some(2.0),
        ..Default::default()
    };
    assert_eq!(sampling, expected);
    for (body, limit) in [
        (r#"{"max_completion_tokens":8,"max_tokens":9}"#, Some(8)),
        (r#"{"max_tokens":9,"max_completion_tokens":null}"#, Some(9)),
        (r#"{"max_output_tokens":9}"#, Some(9)),
        (r#"{"n_predict":-1}"#, None),
        (r#"{"max_tokens":9,"max_tokens":null}"#, None),
        (r#"{"options":{"num_predict":9}}"#, Some(9)),
        (r#"{"parameters":{"max_new_tokens":9}}"#, Some(9)),
        (r#"{"sampling_params":{"max_new_tokens":9}}"#, Some(9)),
        (r#"{"generationConfig":{"maxOutputTokens":9}}"#, Some(9)),
        (r#"{"generation_config":{"max_output_tokens":9}}"#, Some(9)),
        (r#"{"metadata":{"max_tokens":9}}"#, None),
    ] {
        assert_eq!(
            read(body).sampling,
            crate::Sampling { max_tokens: limit, ..Default::default() },
            "{body}"
        );
    }
}

/// A server in Go accepts `MODEL` for `model`, and the last of both; others ignore it.
#[test]
fn go_and_other_servers_read_different_models() {
    let read = |body: &str, casing: Casing, step: usize| {
        let mut scanner = RequestScanner::new();
        scanner.set_casing(casing);
        body.as_bytes().chunks(step).for_each(|slice| scanner.feed(slice));
        let request = scanner.end();
        let others = request.other_models.as_ref().map(|others| others.names().join(" "));
        [request.model().to_owned(), others.unwrap_or_default()]
    };
    for (body, exact, any, either) in [
        (r#"{"model":"a","MODEL":"b"}"#, "a", "b", ["a", "b"]),
        (r#"{"model":"a","Mod\u0065l":"b"}"#, "a", "b", ["a", "b"]),
        (r#"{"MODEL":"b","model":"a"}"#, "a", "a", ["a", "a"]),
        (r#"{"MODEL":"b"}"#, "", "b", ["b", "b"]),
        (r#"{"model":"a","x":{"MODEL":"b"},"MODES":"b","MODE":"b"}"#, "a", "a", ["a", ""]),
        // Most parsers take the last of two members, some the first.
        (r#"{"model":"a","model":"b"}"#, "b", "b", ["b", "a"]),
        (r#"{"model":"a","MODEL":"b","MODEL":"a"}"#, "a", "a", ["a", "a"]),
    ] {
        for step in [1, 5, usize::MAX] {
            assert_eq!(read(body, Casing::Exact, step)[0], exact, "{body}");
            assert_eq!(read(body, Casing::Any, step)[0], any, "{body}");
            assert_eq!(read(body, Casing::Either, step), either, "{body}");
        }
    }
}

/// A gateway may use the name of any of these places.
#[test]
fn every_member_that_names_a_model_is_read() {
    let others = |body: &str, step: usize| {
        let mut scanner = RequestScanner::new();
        body.as_bytes().chunks(step).for_each(|slice| scanner.feed(slice));
        let request = scanner.end();
        let others = request.other_models.unwrap_or_default();
        (request.model.unwrap_or_default().to_string(), others.names().join(" "), others.is_complete())
    };
    for (body, model, names) in [
        (r#"{"model":"a"}"#, "a", ""),
        (r#"{"model":"a,b, c"}"#, "a,b, c", "a b c"),
        (r#"{"model":["a","b"]}"#, "", "a b"),
        (r#"{"models":["b","c"],"model":"a"}"#, "a", "b c"),
        (r#"{"model":"a","MODELS":["b","c"]}"#, "a", "a b c"),
        (r#"{"model":"a","models":"b,c"}"#, "a", "b,c b c"),
        (
            r#"{"model":"a","fallbacks":["b",{"model":"c","messages":[]},{"a":["d","e"]},{"a":"f"}]}"#,
            "a",
            "b c d e f",
        ),
        (r#"{"model":"a","context_window_fallbacks":[{"a":["b"]}]}"#, "a", "b"),
        (r#"{"model":"a","extra_body":{"model":"b","models":["c"]}}"#, "a", "b c"),
        (r#"{"model_id":"ibm/g"}"#, "", "ibm/g"),
        (r#"{"model":"a","messages":[{"model":"b"}],"metadata":{"model":"c"}}"#, "a", ""),
    ] {
        for step in [1, 5, usize::MAX] {
            let (read, others, is_complete) = others(body, step);
            assert_eq!((&*read, &*others, is_complete), (model, names, true), "{body}");
        }
    }
    let many: Vec<_> = (0..17).map(|number| format!("\"m{number}\"")).collect();
    assert!(!others(&format!("{{\"models\":[{}]}}", many.join(",")), usize::MAX).2);
    assert!(!others(&format!(r#"{{"model":"{},b"}}"#, "a".repeat(300)), usize::MAX).2);
}

#[test]
fn cased_members_count_where_go_may_read() {
    let read = |body: &str, casing: Casing| {
        let mut scanner = RequestScanner::new();
        scanner.set_casing(casing);
        scanner.feed(body.as_bytes());
        let request = scanner.end();
        (request.stream, request.include_usage, request.answers)
    };
    for (body, exact, any, either) in [
        (r#"{"STREAM":true}"#, (None, None, 1), (Some(true), None, 1), (Some(true), None, 1)),
        // Go folds the long s and the Kelvin sign, too.
        ("{\"\u{17f}tream\":true}", (None, None, 1), (Some(true), None, 1), (Some(true), None, 1)),
        (
            r#"{"stream":true,"STREAM":false}"#,
            (Some(true), None, 1),
            (Some(false), None, 1),
            (Some(true), None, 1),
        ),
        (
            r#"{"stream":true,"Stream_Options":{"Include_Usage":true}}"#,
            (Some(true), None, 1),
            (Some(true), Some(true), 1),
            (Some(true), None, 1),
        ),
        (
            r#"{"stream_options":{"INCLUDE_USAGE":true},"PROMPT":["a","b"]}"#,
            (None, None, 1),
            (None, Some(true), 2),
            (None, None, 1),
        ),
    ] {
        assert_eq!(read(body, Casing::Exact), exact, "{body}");
        assert_eq!(read(body, Casing::Any), any, "{body}");
        assert_eq!(read(body, Casing::Either), either, "{body}");
    }
}

#[test]
fn a_model_of_another_type_is_odd() {
    for (body, is_odd) in [
        (r#"{"model":5}"#, true),
        (r#"{"model":["a"]}"#, true),
        (r#"{"model":{"a":"b"}}"#, true),
        (r#"{"model":true}"#, true),
        (r#"{"model":"a","model":5}"#, true),
        (r#"{"model":5,"model":"a"}"#, false),
        (r#"{"model":"a","MODEL":5}"#, true),
        (r#"{"model":null}"#, false),
        (r#"{"model":""}"#, false),
        ("{}", false),
    ] {
        assert_eq!(read(body).is_model_invalid, is_odd, "{body}");
    }
}

/// Python's `json.loads` accepts a byte order mark, and UTF-16 and UTF-32 of either byte order.
#[test]
fn every_encoding_is_read() {
    let body = r#"{"messages":[{"content":"\ud800 é 😀"}],"model":"m-é","stream":true,"n":2}"#;
    let utf16 = |order: fn(u16) -> [u8; 2]| body.encode_utf16().flat_map(order).collect::<Vec<u8>>();
    let utf32 = |order: fn(u32) -> [u8; 4]| body.chars().map(u32::from).flat_map(order).collect::<Vec<u8>>();
    for body in [
        body.as_bytes().to_vec(),
        [b"\xEF\xBB\xBF", body.as_bytes()].concat(),
        utf16(u16::to_be_bytes),
        utf16(u16::to_le_bytes),
        [b"\xFE\xFF", &utf16(u16::to_be_bytes)[..]].concat(),
        [b"\xFF\xFE", &utf16(u16::to_le_bytes)[..]].concat(),
        utf32(u32::to_be_bytes),
        utf32(u32::to_le_bytes),
        [b"\x00\x00\xFE\xFF", &utf32(u32::to_be_bytes)[..]].concat(),
        [b"\xFF\xFE\x00\x00", &utf32(u32::to_le_bytes)[..]].concat(),
    ] {
        for step in [1, 2, 3, 7, usize::MAX] {
            let mut scanner = RequestScanner::new();
            body.chunks(step).for_each(|slice| scanner.feed(slice));
            let request = scanner.end();
            assert_eq!(request.model(), "m-é", "{:?} in steps of {step}", &body[..8]);
            assert_eq!((request.stream, request.answers, request.whole), (Some(true), 2, true));
            assert!(request.shape.has_messages());
        }
    }
    let mut scanner = RequestScanner::new();
    scanner.feed(&utf16(u16::to_be_bytes));
    scanner.feed(b"\x00");
    assert!(!scanner.end().whole, "half a character");
}
