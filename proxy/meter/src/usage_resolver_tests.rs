//! The parts of a count, for every scope of a usage: disjoint, a subset of their whole, and complete for
//! every way in which a usage may cover an answer.

use proptest::prelude::*;
use scan::{Counts, Request, Scope, Usage};

use crate::exchange::TOKENS_MAX;
use crate::usage_resolver::UsageResolver;
use crate::{Provenance, TokenType, Tokens};

fn one() -> Request {
    Request { answers: 1, prompts: 1, whole: true, ..Request::default() }
}

fn tokens_of(scope: Scope, counts: Counts) -> Tokens {
    let mut resolver = UsageResolver::new(1 << 40);
    resolver.usage(&Usage { scope, counts });
    resolver.tokens(1, &one(), true, 0)
}

/// An answer in every modality to a prompt in every modality. Part of the prompt was cached and part
/// written to the cache.
const EVERY_PART: Counts = Counts {
    input: Some(100),
    input_cached: Some(40),
    input_cache_write: Some(10),
    input_cache_write_1h: Some(4),
    input_audio: Some(20),
    input_image: Some(7),
    input_video: Some(3),
    output: Some(50),
    output_reasoning: Some(5),
    output_audio: Some(20),
    output_image: Some(4),
    output_video: Some(1),
    rejected: 0,
};

#[test]
fn every_scope_keeps_every_part() {
    for scope in [Scope::Whole, Scope::Choice(Some(0)), Scope::Choice(None)] {
        let tokens = tokens_of(scope, EVERY_PART);
        assert_eq!(tokens.by_type, [20, 40, 6, 4, 20, 7, 3, 20, 5, 20, 4, 1], "{scope:?}");
        assert_eq!(tokens.input_provenance, Provenance::Reported, "{scope:?}");
    }
    // The client leaves after Anthropic's first frame: the whole prompt is known.
    let counts = Counts { output: None, output_reasoning: None, output_audio: None, ..EVERY_PART };
    let tokens = tokens_of(Scope::Running(0), counts);
    assert_eq!(tokens.by_type, [20, 40, 6, 4, 20, 7, 3, 0, 0, 0, 0, 0]);
    assert_eq!(tokens.input_provenance, Provenance::Running);
}

#[test]
fn cached_tokens_reduce_the_audio_tokens() {
    // OpenAI counts cached audio in both details; at most ten tokens of audio are uncached here.
    let tokens = tokens_of(Scope::Whole, Counts { input_cached: Some(80), ..EVERY_PART });
    assert_eq!(tokens.by_type[..7], [0, 80, 6, 4, 10, 0, 0]);
}

/// The lifetimes are disjoint, and their sum is the total, whichever counts a server states.
#[test]
fn cache_writes_are_split_by_lifetime() {
    for (written, hour, expected) in [
        (Some(10), None, [10, 0]),
        (Some(10), Some(0), [10, 0]),
        (Some(10), Some(4), [6, 4]),
        (Some(10), Some(10), [0, 10]),
        (None, Some(4), [0, 4]),
        // The total limits its part. A part above the limit of a count is dropped, and the total stays.
        (Some(3), Some(4), [0, 3]),
        (Some(10), Some(1 << 40), [0, 10]),
        (Some(10), Some((1 << 40) + 1), [10, 0]),
        // At most the prompt, and the more expensive lifetime first.
        (Some(90), Some(50), [10, 50]),
        (Some(90), Some(80), [0, 60]),
    ] {
        let counts = Counts { input_cache_write: written, input_cache_write_1h: hour, ..EVERY_PART };
        for scope in [Scope::Whole, Scope::Choice(Some(0)), Scope::Running(0)] {
            let tokens = tokens_of(scope, counts);
            let split =
                [TokenType::InputCacheWrite, TokenType::InputCacheWrite1h].map(|kind| tokens.of(kind));
            assert_eq!((split, tokens.input()), (expected, 100), "{written:?} {hour:?} {scope:?}");
        }
    }
}

/// Gemini and vLLM split a prompt by modality; the parts and the text are disjoint.
#[test]
fn images_and_videos_are_separate_parts() {
    let counts = Counts {
        input: Some(1200),
        input_image: Some(1000),
        input_video: Some(150),
        output: Some(40),
        output_image: Some(30),
        ..Counts::default()
    };
    let tokens = tokens_of(Scope::Whole, counts);
    let of = |kinds: [TokenType; 5]| kinds.map(|kind| tokens.of(kind));
    let kinds = [
        TokenType::Input,
        TokenType::InputImage,
        TokenType::InputVideo,
        TokenType::Output,
        TokenType::OutputImage,
    ];
    assert_eq!(of(kinds), [50, 1000, 150, 10, 30]);
    assert_eq!((tokens.input(), tokens.output()), (1200, 40));
}

/// Embeddings on a path of chats: the prompt is reported, the answer is unknown.
#[test]
fn usage_without_output_counts_the_prompt() {
    let tokens = tokens_of(Scope::Whole, Counts { input: Some(8), ..Counts::default() });
    assert_eq!((tokens.input(), tokens.input_provenance), (8, Provenance::Reported));
    assert_eq!((tokens.output(), tokens.output_provenance), (0, Provenance::None));
}

/// A chat on a path of embeddings.
#[test]
fn output_counts_in_a_dialect_without_answers() {
    let mut resolver = UsageResolver::new(1000);
    let counts = Counts { input: Some(9), output: Some(3), ..Counts::default() };
    resolver.usage(&Usage { scope: Scope::Whole, counts });
    let tokens = resolver.prompt();
    assert_eq!((tokens.input(), tokens.output()), (9, 3));
    assert_eq!(tokens.output_provenance, Provenance::Reported);
}

#[test]
fn implausible_audio_count_is_rejected() {
    let mut resolver = UsageResolver::new(1000);
    let counts = Counts { input_audio: Some(1001), ..EVERY_PART };
    resolver.usage(&Usage { scope: Scope::Whole, counts });
    assert_eq!(resolver.rejected, 1);
    assert_eq!(resolver.tokens(1, &one(), true, 0).of(TokenType::InputAudio), 0);
}

/// An `n` of answers that never arrive must not shorten a prompt.
#[test]
fn requested_answers_alone_divide_no_prompt() {
    let lists = |prompts, answers, seen: u32| {
        let request = Request { answers, prompts, whole: true, ..Request::default() };
        let mut resolver = UsageResolver::new(1 << 40);
        for choice in 0..seen {
            let counts = Counts { input: Some(900), output: Some(7), ..Counts::default() };
            resolver.usage(&Usage { scope: Scope::Choice(Some(choice)), counts });
        }
        resolver.tokens(seen, &request, true, 0).input()
    };
    for (prompts, answers, seen, input) in [
        (2, 2_000_000, 1, 900),
        (2, 2_000_000, 2, 1800),
        (3, u32::MAX, 3, 2700),
        // Each prompt is reported twice, once for each of its answers.
        (2, 4, 4, 1800),
        (1, 2, 2, 900),
        (1, 1_000_000, 1, 900),
    ] {
        assert_eq!(lists(prompts, answers, seen), input, "{prompts} prompts, {answers} answers, {seen} seen");
    }
}

proptest! {
    #![proptest_config(chance::cases(512))]

    /// The parts add up to the total, for any counts of a server.
    #[test]
    fn parts_add_up_to_the_total(
        parts in proptest::array::uniform12(proptest::option::of(0_u64..200)),
        scope in prop_oneof![Just(Scope::Whole), Just(Scope::Choice(Some(0))), Just(Scope::Running(0))],
    ) {
        let [input, input_cached, input_cache_write, input_cache_write_1h, ..] = parts;
        let [.., input_audio, input_image, input_video, _, _, _, _, _] = parts;
        let [.., output, output_reasoning, output_audio, output_image, output_video] = parts;
        let counts = Counts {
            input, input_cached, input_cache_write, input_cache_write_1h, input_audio, input_image, input_video,
            output, output_reasoning, output_audio, output_image, output_video,
            rejected: 0,
        };
        let tokens = tokens_of(scope, counts);
        if tokens.input_provenance != Provenance::None {
            prop_assert_eq!(tokens.input(), input.unwrap_or(0));
        }
        if tokens.output_provenance != Provenance::None {
            prop_assert_eq!(tokens.output(), output.unwrap_or(0));
        }
        prop_assert_eq!(tokens.input() + tokens.output(), tokens.by_type.iter().sum::<u64>());
        for (kind, max) in [
            (TokenType::InputCached, input_cached),
            (TokenType::InputCacheWrite, input_cache_write),
            (TokenType::InputCacheWrite1h, input_cache_write_1h),
            (TokenType::InputAudio, input_audio),
            (TokenType::InputImage, input_image),
            (TokenType::InputVideo, input_video),
            (TokenType::OutputReasoning, output_reasoning),
            (TokenType::OutputAudio, output_audio),
            (TokenType::OutputImage, output_image),
            (TokenType::OutputVideo, output_video),
        ] {
            prop_assert!(tokens.of(kind) <= max.unwrap_or(0));
        }
    }
}

/// Without the sum, an abandoned list of prompts would be charged as its last one.
#[test]
fn prompts_of_an_unfinished_list_are_added_up() {
    let counts = |input: u64, cached: u64| Counts {
        input: Some(input),
        input_cached: Some(cached),
        output: Some(1),
        ..Counts::default()
    };
    let running = |choice| Scope::Running(choice);
    let input = |usages: &[(Scope, Counts)], (answers, prompts): (u32, u32)| {
        let mut resolver = UsageResolver::new(TOKENS_MAX);
        for (scope, counts) in usages {
            resolver.usage(&Usage { scope: *scope, counts: *counts });
        }
        let request = Request { answers, prompts, ..one() };
        let tokens = resolver.tokens(answers, &request, false, 3);
        (tokens.input_provenance, tokens.input(), tokens.of(TokenType::InputCached))
    };
    let three = [(running(0), counts(100, 0)), (running(1), counts(7, 3)), (running(0), counts(100, 0))];
    assert_eq!(input(&three, (3, 3)), (Provenance::Running, 107, 3));
    assert_eq!(input(&three, (2, 1)), (Provenance::Running, 100, 0), "two answers share their prompt");
    let pairs: Vec<_> =
        (0..4).map(|choice| (running(choice), counts(10 + u64::from(choice / 2), 0))).collect();
    assert_eq!(input(&pairs, (4, 2)), (Provenance::Running, 21, 0));
    let ended =
        [(running(0), counts(5, 0)), (running(1), counts(6, 0)), (Scope::Choice(Some(0)), counts(5, 0))];
    assert_eq!(input(&ended, (2, 2)), (Provenance::Running, 11, 0), "one has ended, the other has not");
    assert_eq!(input(&[(running(500), counts(5, 0))], (600, 600)).1, 5, "a choice beyond the kept ones");
}
