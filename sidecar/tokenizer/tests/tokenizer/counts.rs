//! Counts against recorded server counts, and against the library's one-shot call.

use std::sync::{Arc, mpsc};

use harness::Transcript;
use serde_json::Value;
use tokenizer::limits::TEXT_MAX_BYTES;
use tokenizer::{Counting, Text, Tokenizers};

use crate::{TempFile, load, tiny};

fn tokenizers() -> Tokenizers {
    load(&[("tiny", &tiny())]).expect("it is a good one")
}

/// Returns the prompts of a completions request: plain text without a template.
fn prompts(transcript: &Transcript) -> Option<Vec<String>> {
    let request: Value = serde_json::from_slice(&transcript.request).ok()?;
    match &request["prompt"] {
        Value::String(prompt) => Some(vec![prompt.clone()]),
        Value::Array(prompts) => prompts.iter().map(|prompt| prompt.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

/// Returns the joined text of each choice of a chat stream.
fn said(transcript: &Transcript) -> Vec<String> {
    let body = String::from_utf8_lossy(&transcript.body);
    let mut said = Vec::new();
    for frame in body.lines().filter_map(|line| line.strip_prefix("data: {")) {
        // Error frames and incomplete ones have no text.
        let frame: Value = serde_json::from_str(&format!("{{{frame}")).unwrap_or_default();
        for choice in frame["choices"].as_array().into_iter().flatten() {
            let index = choice["index"].as_u64().expect("an index") as usize;
            said.resize(said.len().max(index + 1), String::new());
            for name in ["reasoning", "reasoning_content", "content"] {
                said[index].push_str(choice["delta"][name].as_str().unwrap_or_default());
            }
        }
    }
    said
}

#[test]
fn prompt_counts_equal_the_servers_counts() {
    let tokenizers = tokenizers();
    let mut compared = 0;
    for transcript in Transcript::all() {
        let reported = transcript.truth.reported.as_ref().and_then(|reported| reported.prompt_tokens);
        // LiteLLM reports 0 for unknown.
        let (Some(prompts), Some(reported @ 1..)) = (prompts(&transcript), reported) else { continue };
        // llama.cpp reports several prompts one by one, and the recorded truth is the last of them.
        if prompts.len() > 1 && transcript.name.starts_with("llamacpp") {
            continue;
        }
        let counted: u64 =
            prompts.iter().map(|prompt| tokenizers.count("tiny", prompt).expect("a count")).sum();
        assert_eq!(counted, reported, "{}", transcript.name);
        compared += 1;
    }
    assert!(compared >= 15, "only {compared} recordings had a prompt to compare");
}

#[test]
fn response_counts_are_near_the_servers_counts() {
    // A hard case, because the model's text is noise: real text is mostly sampled as it is tokenized.
    let table = [
        ("llamacpp-0.7.0/chat-stream-plain", 24),
        ("llamacpp-0.7.0/chat-stream-stop-string", 92),
        ("llamacpp-0.7.0/chat-stream-thinking", 124),
        ("llamacpp-0.7.0/spec-chat-stream", 214),
        ("vllm-0.32.0/chat-stream-plain", 24),
        ("vllm-0.32.0/chat-stream-n3", 75),
        ("vllm-0.32.0/chat-stream-scripts", 56),
        ("vllm-0.32.0/chat-stream-long", 2068),
    ];
    let tokenizers = tokenizers();
    for (name, local) in table {
        let transcript = Transcript::named(name);
        let counted: u64 =
            said(&transcript).iter().map(|text| tokenizers.count("tiny", text).expect("a count")).sum();
        assert_eq!(counted, local, "{name}");
        let truth = transcript.truth.true_completion_tokens.expect("a truth") as f64;
        assert!((local as f64 / truth - 1.0).abs() < 0.12, "{name}: {local} of {truth}");
    }
}

/// Returns texts that are hard to split, of about `length` bytes each.
fn hard(length: usize) -> Vec<String> {
    let parts = [
        "a",
        " ",
        "\n",
        " \n",
        "1",
        "!",
        "'",
        "😀",
        "e\u{301}",
        "<think>",
        "\u{0}",
        "العربية",
        "don't ",
        "x   ",
    ];
    parts.iter().map(|part| part.repeat(length / part.len())).collect()
}

#[test]
fn counts_equal_the_one_shot_call() {
    let twin = tokenizers::Tokenizer::from_file(tiny()).expect("it is a good one");
    let tokenizers = tokenizers();
    let recorded = Transcript::all().into_iter().flat_map(|transcript| said_or_nothing(&transcript));
    let texts: Vec<String> =
        recorded.chain(hard(4096)).chain(["".to_owned(), "the people of".to_owned()]).collect();
    assert!(texts.len() > 60);
    // Twice, and in both orders: earlier texts must not matter.
    for text in texts.iter().chain(texts.iter().rev()) {
        let expected = twin.encode(text.as_str(), false).expect("it counts").get_ids().len() as u64;
        assert_eq!(tokenizers.count("tiny", text), Some(expected), "{} bytes", text.len());
    }
    assert_eq!(tokenizers.count("tiny", ""), Some(0));
}

fn said_or_nothing(transcript: &Transcript) -> Vec<String> {
    match prompts(transcript) {
        None if transcript.path.ends_with("/chat/completions") && transcript.status == 200 => {
            said(transcript)
        }
        _ => Vec::new(),
    }
}

#[test]
fn only_texts_within_the_limit_are_counted() {
    let tokenizers = tokenizers();
    let longest = "a".repeat(TEXT_MAX_BYTES);
    assert_eq!(tokenizers.count("tiny", &longest), Some(TEXT_MAX_BYTES as u64));
    assert_eq!(tokenizers.count("tiny", &(longest + "a")), None);
}

#[test]
fn unknown_models_have_no_count() {
    let tokenizers = tokenizers();
    assert!(tokenizers.has("tiny") && !tokenizers.has("Tiny") && !tokenizers.has(""));
    assert_eq!(tokenizers.count("other", "text"), None);
}

#[test]
fn truncation_and_padding_of_a_file_are_ignored() {
    // Like a file made for training: truncated to two tokens, padded to sixteen, framed by [B] and [E].
    let file = TempFile::new(
        "training.json",
        r#"{"version":"1.0",
            "truncation":{"direction":"Right","max_length":2,"strategy":"LongestFirst","stride":0},
            "padding":{"strategy":{"Fixed":16},"direction":"Right","pad_to_multiple_of":null,"pad_id":0,
                       "pad_type_id":0,"pad_token":"[PAD]"},
            "added_tokens":[],"pre_tokenizer":{"type":"Whitespace"},
            "post_processor":{"type":"TemplateProcessing",
                "single":[{"SpecialToken":{"id":"[B]","type_id":0}},{"Sequence":{"id":"A","type_id":0}},
                          {"SpecialToken":{"id":"[E]","type_id":0}}],
                "pair":[{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B","type_id":0}}],
                "special_tokens":{"[B]":{"id":"[B]","ids":[1],"tokens":["[B]"]},
                                  "[E]":{"id":"[E]","ids":[2],"tokens":["[E]"]}}},
            "model":{"type":"WordLevel","vocab":{"[PAD]":0,"[B]":1,"[E]":2,"[U]":3,"one":4},"unk_token":"[U]"}}"#,
    );
    let tokenizers = load(&[("m", &file.0)]).expect("it is a good one");
    for (text, tokens) in [("", 0), ("one", 1), ("one two three four five", 5)] {
        assert_eq!(tokenizers.count("m", text), Some(tokens), "{text}");
    }
}

#[test]
fn text_outside_the_vocabulary_has_no_count() {
    let file = TempFile::new(
        "no-unknown.json",
        r#"{"version":"1.0","added_tokens":[],"pre_tokenizer":{"type":"Whitespace"},
            "model":{"type":"WordLevel","vocab":{"one":0},"unk_token":"[U]"}}"#,
    );
    let tokenizers = load(&[("m", &file.0)]).expect("it reads");
    assert_eq!(tokenizers.count("m", "one one"), Some(2));
    assert_eq!(tokenizers.count("m", "one two"), None);
}

#[test]
fn queued_jobs_are_counted_before_the_end() {
    let (tell, done) = mpsc::channel();
    let counting = Counting::start(Arc::new(tokenizers()), move |job, tokens| {
        tell.send((job, tokens)).expect("the test listens");
    })
    .expect("a thread");
    let text = |text: &str| Text::new(text.to_owned()).expect("short");
    assert_eq!(counting.submit("a", "tiny".into(), text("the people of")), Ok(()));
    assert_eq!(counting.submit("b", "other".into(), text("the people of")), Err("b"));
    assert_eq!(counting.submit("c", "tiny".into(), text("")), Ok(()));
    assert_eq!(counting.panics(), 0);
    drop(counting);
    assert_eq!(done.iter().collect::<Vec<_>>(), [("a", Some(3)), ("c", Some(0))]);
}

#[test]
fn no_text_is_retained() {
    let tokenizers = tokenizers();
    let count = |seed: u32| {
        // Words that no other seed produces.
        let words: Vec<String> =
            (0..500_u32).map(|n| format!("{:x}", (n * 7919 + seed).wrapping_mul(0x9e37_79b1))).collect();
        tokenizers.count("tiny", &words.join(" ")).expect("a count")
    };
    // The tables of the regular expressions grow at first.
    assert!((0..10).all(|seed| count(seed * 1_000_000) > 500));
    let kept = allocation_counter::measure(|| {
        assert!((10..30).all(|seed| count(seed * 1_000_000) > 500));
    });
    assert!(kept.count_total > 1000, "it measures");
    assert!(kept.bytes_current < 10_000, "{} bytes are kept of {} words", kept.bytes_current, 20 * 500);
}
