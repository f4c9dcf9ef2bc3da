//! The same usage costs the same in every dialect: cached prompt tokens and reasoning are parts of a total in one
//! dialect and separate in another, and no token is charged twice.

use harness::Transcript;
use harness::replay::{Pieces, replay};
use meter::{Body, Close, Identity, LoadSpan, Meter, Provenance, Tick, Tokens};
use price::{Book, Charge, Usage};
use scan::{Dialect, Framing, Request, Scanner};

/// Pico-units for a token; all differ, and none is a sum of others.
const INPUT: i64 = 2_000_003;
const CACHED: i64 = 300_007;
const WRITE: i64 = 5_000_011;
const WRITE_1H: i64 = 6_000_023;
const INPUT_AUDIO: i64 = 7_000_003;
const INPUT_IMAGE: i64 = 8_000_009;
const INPUT_VIDEO: i64 = 9_000_011;
const OUTPUT: i64 = 11_000_027;
const REASONING: i64 = 13_000_027;
const OUTPUT_AUDIO: i64 = 17_000_023;
const OUTPUT_IMAGE: i64 = 19_000_013;

fn every_price_apart() -> Book {
    book(&format!(
        "input: {}, cached_input: {}, cache_write: {}, cache_write_1h: {}, input_audio: {}, input_image: {}, \
         input_video: {}, output: {}, reasoning: {}, output_audio: {}, output_image: {}",
        text::per_million(INPUT.into()),
        text::per_million(CACHED.into()),
        text::per_million(WRITE.into()),
        text::per_million(WRITE_1H.into()),
        text::per_million(INPUT_AUDIO.into()),
        text::per_million(INPUT_IMAGE.into()),
        text::per_million(INPUT_VIDEO.into()),
        text::per_million(OUTPUT.into()),
        text::per_million(REASONING.into()),
        text::per_million(OUTPUT_AUDIO.into()),
        text::per_million(OUTPUT_IMAGE.into()),
    ))
}

fn book(prices: &str) -> Book {
    let text = format!("version: v\ncurrency: EUR\nmodels:\n  - {{pattern: '*', {prices}}}\n");
    Book::read(&text).unwrap_or_else(|problems| panic!("{problems:?}")).0
}

fn cost(book: &Book, tokens: &Tokens) -> Option<i64> {
    let charge = book.charge(&Usage {
        tenant: "t",
        model: "m",
        response_model: None,
        provider: "p",
        upstream: "u",
        tier: None,
        requested_tier: None,
        at_us: 0,
        tokens: &tokens.by_type,
        success: true,
        processed: true,
        counted: tokens.is_counted(),
    });
    match charge {
        Charge::Priced { cost, .. } => Some(cost),
        Charge::Unpriced(_) => None,
    }
}

fn counted(dialect: Dialect, body: &str) -> Tokens {
    let mut meter = Meter::new(dialect, Tick(0), 1_000_000_000);
    meter.requested(Request::default(), Tick(0));
    meter.answered(200, Body::Whole);
    let mut scanner = Scanner::new(dialect, Framing::Json);
    scanner.feed(body.as_bytes(), &mut meter.read(Tick(1)));
    let tail = scanner.end(&mut meter.tail(Tick(2)));
    let identity = Identity::new("u", "p", dialect, "m");
    meter.end(identity, Close::Clean { whole: tail.whole }, LoadSpan::single(), Tick(3)).tokens
}

#[test]
fn each_dialects_counts_are_charged_once() {
    let book = every_price_apart();
    for (dialect, body, expected) in [
        (
            // Cached and audio tokens are part of the prompt, reasoning and audio of the completion.
            Dialect::OpenaiChat,
            r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],
            "usage":{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150,
            "prompt_tokens_details":{"cached_tokens":40,"audio_tokens":10},
            "completion_tokens_details":{"reasoning_tokens":20,"audio_tokens":5}}}"#,
            50 * INPUT + 40 * CACHED + 10 * INPUT_AUDIO + 25 * OUTPUT + 20 * REASONING + 5 * OUTPUT_AUDIO,
        ),
        (
            Dialect::OpenaiResponses,
            r#"{"id":"r","object":"response","status":"completed","output":[{"type":"message","role":"assistant",
            "content":[{"type":"output_text","text":"x"}]}],"usage":{"input_tokens":100,"output_tokens":50,
            "input_tokens_details":{"cached_tokens":40},"output_tokens_details":{"reasoning_tokens":20}}}"#,
            60 * INPUT + 40 * CACHED + 30 * OUTPUT + 20 * REASONING,
        ),
        (
            // Read and written tokens are separate from the prompt.
            Dialect::Anthropic,
            r#"{"type":"message","role":"assistant","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn",
            "usage":{"input_tokens":60,"cache_read_input_tokens":40,"cache_creation_input_tokens":30,"output_tokens":50}}"#,
            60 * INPUT + 40 * CACHED + 30 * WRITE + 50 * OUTPUT,
        ),
        (
            // The lifetimes are parts of the written tokens.
            Dialect::Anthropic,
            r#"{"type":"message","role":"assistant","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn",
            "usage":{"input_tokens":60,"cache_read_input_tokens":40,"cache_creation_input_tokens":30,"output_tokens":50,
            "cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20}}}"#,
            60 * INPUT + 40 * CACHED + 10 * WRITE + 20 * WRITE_1H + 50 * OUTPUT,
        ),
        (
            // LiteLLM counts them within the prompt.
            Dialect::OpenaiChat,
            r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],
            "usage":{"prompt_tokens":130,"completion_tokens":50,"prompt_tokens_details":{"cached_tokens":40,
            "cache_write_tokens":30,"cache_creation_tokens":30,
            "cache_creation_token_details":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20}},
            "cache_creation_input_tokens":30,"cache_read_input_tokens":40}}"#,
            60 * INPUT + 40 * CACHED + 10 * WRITE + 20 * WRITE_1H + 50 * OUTPUT,
        ),
        (
            // Thoughts are separate from the candidates, cached tokens are part of the prompt.
            Dialect::Gemini,
            r#"{"candidates":[{"content":{"parts":[{"text":"x"}],"role":"model"},"finishReason":"STOP","index":0}],
            "usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":40,"candidatesTokenCount":30,
            "thoughtsTokenCount":20,"totalTokenCount":150}}"#,
            60 * INPUT + 40 * CACHED + 30 * OUTPUT + 20 * REASONING,
        ),
        (
            Dialect::GeminiInteractions,
            r#"{"status":"completed","steps":[{"type":"model_output","content":[{"type":"text","text":"x"}]}],
            "usage":{"total_input_tokens":100,"total_cached_tokens":40,"total_output_tokens":30,
            "total_thought_tokens":20,"total_tokens":150}}"#,
            60 * INPUT + 40 * CACHED + 30 * OUTPUT + 20 * REASONING,
        ),
        (
            // The modalities are part of the prompt and the candidates.
            Dialect::Gemini,
            r#"{"candidates":[{"content":{"parts":[{"text":"x"}],"role":"model"},"finishReason":"STOP","index":0}],
            "usageMetadata":{"promptTokenCount":300,"candidatesTokenCount":1300,"totalTokenCount":1600,
            "promptTokensDetails":[{"modality":"TEXT","tokenCount":10},{"modality":"IMAGE","tokenCount":258},
            {"modality":"VIDEO","tokenCount":32}],
            "candidatesTokensDetails":[{"modality":"IMAGE","tokenCount":1290},{"modality":"TEXT","tokenCount":10}]}}"#,
            10 * INPUT + 258 * INPUT_IMAGE + 32 * INPUT_VIDEO + 10 * OUTPUT + 1290 * OUTPUT_IMAGE,
        ),
        (
            // vLLM's breakdown of the prompt.
            Dialect::OpenaiChat,
            r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],
            "usage":{"prompt_tokens":1200,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":16,
            "multimodal_tokens":{"image":1000,"video":100,"audio":20}}}}"#,
            64 * INPUT + 16 * CACHED + 20 * INPUT_AUDIO + 1000 * INPUT_IMAGE + 100 * INPUT_VIDEO + 3 * OUTPUT,
        ),
        (
            Dialect::OllamaChat,
            r#"{"model":"m","message":{"role":"assistant","content":"x"},"done":true,"done_reason":"stop",
            "prompt_eval_count":100,"eval_count":50}"#,
            100 * INPUT + 50 * OUTPUT,
        ),
        (
            Dialect::Sglang,
            r#"{"text":"x","meta_info":{"id":"a","finish_reason":{"type":"stop"},"prompt_tokens":100,
            "completion_tokens":50,"cached_tokens":40}}"#,
            60 * INPUT + 40 * CACHED + 50 * OUTPUT,
        ),
        (
            Dialect::OpenaiChat,
            r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],
            "usage":{"prompt_tokens":100,"completion_tokens":50}}"#,
            100 * INPUT + 50 * OUTPUT,
        ),
    ] {
        let tokens = counted(dialect, body);
        assert_eq!(cost(&book, &tokens), Some(expected), "{dialect:?}: {tokens:?}");
    }
}

/// The cost of the recordings by the server's totals: if a cached token costs as much as a computed one and a reasoning
/// one as much as a visible one, the parts have no effect.
#[test]
fn recorded_bill_is_totals_times_two_prices() {
    let book = book(&format!(
        "input: {}, output: {}",
        text::per_million(INPUT.into()),
        text::per_million(OUTPUT.into())
    ));
    let mut known = 0;
    for transcript in Transcript::all() {
        let (name, truth) = (&transcript.name, &transcript.truth);
        let tokens = replay(&transcript, Pieces::Reads).tokens;
        let usage = truth.reported.as_ref();
        let (Some(prompt), Some(output)) =
            (usage.and_then(|usage| usage.prompt_tokens), truth.true_completion_tokens)
        else {
            continue;
        };
        let whole = tokens.output_provenance == Provenance::Reported
            && tokens.input_provenance == Provenance::Reported;
        if whole && !name.contains("two-prompts") {
            known += 1;
            let count = |tokens: u64| i64::try_from(tokens).expect("a small number");
            let expected = count(prompt) * INPUT + count(output) * OUTPUT;
            assert_eq!(cost(&book, &tokens), Some(expected), "{name}: {tokens:?}");
        }
    }
    assert!(known > 80, "{known}");
}
