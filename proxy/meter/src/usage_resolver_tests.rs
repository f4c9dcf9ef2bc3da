//! The parts of a count, for every scope of a usage: disjoint, a subset of their whole, and complete for
//! every way in which a usage may cover an answer.

use proptest::prelude::*;
use scan::{Count, Counts, Request, Scope, Usage};

use crate::exchange::TOKENS_MAX;
use crate::usage_reading::Reading;
use crate::usage_resolver::UsageResolver;
use crate::{Provenance, TokenType, Tokens};

fn one() -> Request {
    Request { answers: 1, prompts: 1, whole: true, ..Request::default() }
}

/// Returns the trusted counts of a resolver.
pub(crate) fn tokens(
    resolver: &UsageResolver,
    choices: u32,
    request: &Request,
    is_finished: bool,
    running: u64,
) -> Tokens {
    let reported = resolver.reported(choices, request, is_finished);
    resolver.tokens(reported.as_ref(), choices, request, running)
}

fn tokens_of(scope: Scope, counts: Counts) -> Tokens {
    let mut resolver = UsageResolver::new(1 << 40);
    resolver.usage(&Usage { scope, counts });
    tokens(&resolver, 1, &one(), true, 0)
}

/// An answer in every modality to a prompt in every modality. Part of the prompt was cached and part
/// written to the cache.
fn every_part() -> Counts {
    let prompt = Counts::of([
        (Count::Input, 100),
        (Count::InputCached, 40),
        (Count::InputCacheWrite, 10),
        (Count::InputCacheWrite1h, 4),
        (Count::InputAudio, 20),
        (Count::InputImage, 7),
        (Count::InputVideo, 3),
        (Count::InputCachedAudio, 8),
        (Count::InputCachedImage, 2),
    ]);
    let answer = [(Count::Output, 50), (Count::OutputReasoning, 5), (Count::OutputAudio, 20)];
    let answer = answer.into_iter().chain([(Count::OutputImage, 4), (Count::OutputVideo, 1)]);
    answer.fold(prompt, |counts, (count, tokens)| counts.with(count, tokens))
}

#[test]
fn every_scope_keeps_every_part() {
    for scope in [Scope::Whole, Scope::Choice(Some(0)), Scope::Choice(None)] {
        let tokens = tokens_of(scope, every_part());
        assert_eq!(tokens.by_type, [30, 30, 6, 4, 12, 5, 3, 8, 2, 20, 5, 20, 4, 1], "{scope:?}");
        assert_eq!(tokens.input_provenance, Provenance::Reported, "{scope:?}");
    }
    // The client leaves after Anthropic's first frame: the whole prompt is known.
    let counts = every_part()
        .with(Count::Output, None)
        .with(Count::OutputReasoning, None)
        .with(Count::OutputAudio, None);
    let tokens = tokens_of(Scope::Running(0), counts);
    assert_eq!(tokens.by_type, [30, 30, 6, 4, 12, 5, 3, 8, 2, 0, 0, 0, 0, 0]);
    assert_eq!(tokens.input_provenance, Provenance::Running);
}

#[test]
fn cached_tokens_reduce_the_audio_tokens() {
    // OpenAI counts cached audio in both details. Without its modality, at most ten tokens of audio are uncached here.
    let unstated = every_part().with(Count::InputCachedAudio, None).with(Count::InputCachedImage, None);
    let tokens = tokens_of(Scope::Whole, unstated.with(Count::InputCached, 80));
    assert_eq!(tokens.by_type[..9], [0, 80, 6, 4, 10, 0, 0, 0, 0]);
    // The modalities of the cached tokens are their count where a server states no other.
    for input_cached in [None, Some(0), Some(10)] {
        let tokens = tokens_of(Scope::Whole, every_part().with(Count::InputCached, input_cached));
        assert_eq!(tokens.by_type[..9], [60, 0, 6, 4, 12, 5, 3, 8, 2], "{input_cached:?}");
        assert_eq!(tokens.cached(), 10);
    }
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
        let counts = every_part().with(Count::InputCacheWrite, written).with(Count::InputCacheWrite1h, hour);
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
    let counts = Counts::of([
        (Count::Input, 1200),
        (Count::InputImage, 1000),
        (Count::InputVideo, 150),
        (Count::Output, 40),
        (Count::OutputImage, 30),
    ]);
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
    let tokens = tokens_of(Scope::Whole, Counts::of([(Count::Input, 8)]));
    assert_eq!((tokens.input(), tokens.input_provenance), (8, Provenance::Reported));
    assert_eq!((tokens.output(), tokens.output_provenance), (0, Provenance::None));
}

/// A chat on a path of embeddings.
#[test]
fn output_counts_in_a_dialect_without_answers() {
    let mut resolver = UsageResolver::new(1000);
    let counts = Counts::of([(Count::Input, 9), (Count::Output, 3)]);
    resolver.usage(&Usage { scope: Scope::Whole, counts });
    let tokens = resolver.prompt();
    assert_eq!((tokens.input(), tokens.output()), (9, 3));
    assert_eq!(tokens.output_provenance, Provenance::Reported);
}

#[test]
fn implausible_audio_count_is_rejected() {
    let mut resolver = UsageResolver::new(1000);
    let counts = every_part().with(Count::InputAudio, 1001);
    resolver.usage(&Usage { scope: Scope::Whole, counts });
    assert_eq!(resolver.rejected, 1);
    assert_eq!(tokens(&resolver, 1, &one(), true, 0).of(TokenType::InputAudio), 0);
}

/// An `n` of answers that never arrive must not shorten a prompt.
#[test]
fn requested_answers_alone_divide_no_prompt() {
    let lists = |prompts, answers, seen: u32| {
        let request = Request { answers, prompts, whole: true, ..Request::default() };
        let mut resolver = UsageResolver::new(1 << 40);
        for choice in 0..seen {
            let counts = Counts::of([(Count::Input, 900), (Count::Output, 7)]);
            resolver.usage(&Usage { scope: Scope::Choice(Some(choice)), counts });
        }
        tokens(&resolver, seen, &request, true, 0).input()
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
        parts in proptest::array::uniform14(proptest::option::of(0_u64..200)),
        scope in prop_oneof![Just(Scope::Whole), Just(Scope::Choice(Some(0))), Just(Scope::Running(0))],
    ) {
        let named = Count::ALL.into_iter().zip(parts);
        let counts = named.fold(Counts::default(), |counts, (count, tokens)| counts.with(count, tokens));
        let tokens = tokens_of(scope, counts);
        let read = Reading::of(counts).counts;
        if tokens.input_provenance != Provenance::None {
            prop_assert_eq!(tokens.input(), read.or_zero(Count::Input));
        }
        if tokens.output_provenance != Provenance::None {
            prop_assert_eq!(tokens.output(), read.or_zero(Count::Output));
        }
        prop_assert_eq!(tokens.input() + tokens.output(), tokens.by_type.iter().sum::<u64>());
        let is_part = |kind: &TokenType| !matches!(kind, TokenType::Input | TokenType::Output);
        for (kind, max) in TokenType::ALL.into_iter().zip(parts).filter(|(kind, _)| is_part(kind)) {
            prop_assert!(tokens.of(kind) <= max.unwrap_or(0));
        }
    }
}

/// Without the sum, an abandoned list of prompts would be charged as its last one.
#[test]
fn prompts_of_an_unfinished_list_are_added_up() {
    let counts = |input: u64, cached: u64| {
        Counts::of([(Count::Input, input), (Count::InputCached, cached), (Count::Output, 1)])
    };
    let running = |choice| Scope::Running(choice);
    let input = |usages: &[(Scope, Counts)], (answers, prompts): (u32, u32)| {
        let mut resolver = UsageResolver::new(TOKENS_MAX);
        for (scope, counts) in usages {
            resolver.usage(&Usage { scope: *scope, counts: *counts });
        }
        let request = Request { answers, prompts, ..one() };
        let tokens = tokens(&resolver, answers, &request, false, 3);
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

#[test]
fn prompts_without_an_answer_keep_their_modalities() {
    let counts = Counts::of([
        (Count::Input, 10),
        (Count::InputCached, 2),
        (Count::InputImage, 5),
        (Count::InputAudio, 1),
    ]);
    let mut resolver = UsageResolver::new(TOKENS_MAX);
    resolver.usage(&Usage { scope: Scope::Whole, counts });
    let tokens = resolver.prompt();
    let types = [TokenType::Input, TokenType::InputCached, TokenType::InputImage, TokenType::InputAudio];
    assert_eq!(types.map(|kind| tokens.of(kind)), [2, 2, 5, 1]);
}

/// Speech and images: a usage that does not say what was generated counts by the endpoint.
#[test]
fn endpoint_says_the_type_of_the_answer() {
    let of = |scope, counts| {
        let mut resolver = UsageResolver::new(TOKENS_MAX);
        resolver.generates = Some(TokenType::OutputImage);
        resolver.usage(&Usage { scope, counts });
        let tokens = tokens(&resolver, 1, &one(), true, counts.or_zero(Count::Output));
        [TokenType::Output, TokenType::OutputReasoning, TokenType::OutputAudio, TokenType::OutputImage]
            .map(|kind| tokens.of(kind))
    };
    let counts = Counts::of([(Count::Input, 5), (Count::Output, 9)]);
    for scope in [Scope::Whole, Scope::Running(0)] {
        assert_eq!(of(scope, counts), [0, 0, 0, 9], "{scope:?}");
        assert_eq!(of(scope, counts.with(Count::OutputImage, 6)), [3, 0, 0, 6], "{scope:?}");
        assert_eq!(of(scope, counts.with(Count::OutputAudio, 6)), [3, 0, 6, 0], "{scope:?}");
    }
}
