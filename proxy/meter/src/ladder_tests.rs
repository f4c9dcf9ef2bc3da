//! The parts of a count, whichever usage says them: disjoint, a subset of their whole, lost by no way
//! in which a usage may cover an answer.

use proptest::prelude::*;
use scan::{Counts, Request, Scope, Usage};

use crate::ladder::Ladder;
use crate::{Provenance, TokenType, Tokens};

fn one() -> Request {
    Request { answers: 1, prompts: 1, whole: true, ..Request::default() }
}

fn told(scope: Scope, counts: Counts) -> Tokens {
    let mut ladder = Ladder::new(1 << 40);
    ladder.usage(&Usage { scope, counts });
    ladder.tokens(1, &one(), true, 0)
}

/// An answer of sound to a question of sound, of whose prompt a part was cached and a part written.
const SOUND: Counts = Counts {
    input: Some(100),
    input_cached: Some(40),
    input_cache_write: Some(10),
    input_audio: Some(30),
    output: Some(50),
    output_reasoning: Some(5),
    output_audio: Some(25),
    rejected: 0,
};

#[test]
fn no_part_is_lost_by_what_a_usage_covers() {
    for scope in [Scope::Whole, Scope::Choice(Some(0)), Scope::Choice(None)] {
        let tokens = told(scope, SOUND);
        assert_eq!(tokens.by_type, [20, 40, 10, 30, 20, 5, 25], "{scope:?}");
        assert_eq!(tokens.input_provenance, Provenance::Reported, "{scope:?}");
    }
    // Anthropic's first frame, and then the client leaves: all of the prompt is known.
    let counts = Counts { output: None, output_reasoning: None, output_audio: None, ..SOUND };
    let tokens = told(Scope::Running(0), counts);
    assert_eq!(tokens.by_type, [20, 40, 10, 30, 0, 0, 0]);
    assert_eq!(tokens.input_provenance, Provenance::Running);
}

#[test]
fn of_sound_that_may_have_been_cached_only_the_rest_is_sound() {
    // OpenAI counts cached audio in both details; what was not cached is at most ten here.
    let tokens = told(Scope::Whole, Counts { input_cached: Some(80), ..SOUND });
    assert_eq!(tokens.by_type[..4], [0, 80, 10, 10]);
}

#[test]
fn sound_that_cannot_be_is_refused() {
    let mut ladder = Ladder::new(1000);
    let counts = Counts { input_audio: Some(1001), ..SOUND };
    ladder.usage(&Usage { scope: Scope::Whole, counts });
    assert_eq!(ladder.rejected, 1);
    assert_eq!(ladder.tokens(1, &one(), true, 0).of(TokenType::InputAudio), 0);
}

/// What a client says of answers that nobody gives makes no prompt shorter.
#[test]
fn what_only_a_client_says_divides_nothing() {
    let lists = |prompts, answers, seen: u32| {
        let request = Request { answers, prompts, whole: true, ..Request::default() };
        let mut ladder = Ladder::new(1 << 40);
        for choice in 0..seen {
            let counts = Counts { input: Some(900), output: Some(7), ..Counts::default() };
            ladder.usage(&Usage { scope: Scope::Choice(Some(choice)), counts });
        }
        ladder.tokens(seen, &request, true, 0).input()
    };
    for (prompts, answers, seen, input) in [
        (2, 2_000_000, 1, 900),
        (2, 2_000_000, 2, 1800),
        (3, u32::MAX, 3, 2700),
        // Each prompt is said twice, once for each of its answers.
        (2, 4, 4, 1800),
        (1, 2, 2, 900),
        (1, 1_000_000, 1, 900),
    ] {
        assert_eq!(lists(prompts, answers, seen), input, "{prompts} prompts, {answers} answers, {seen} seen");
    }
}

proptest! {
    #![proptest_config(chance::cases(512))]

    /// Whatever a server says of the parts, they make up the whole.
    #[test]
    fn the_parts_make_up_the_whole(
        said in proptest::array::uniform7(proptest::option::of(0_u64..200)),
        scope in prop_oneof![Just(Scope::Whole), Just(Scope::Choice(Some(0))), Just(Scope::Running(0))],
    ) {
        let [input, input_cached, input_cache_write, input_audio, output, output_reasoning, output_audio] = said;
        let counts = Counts {
            input, input_cached, input_cache_write, input_audio, output, output_reasoning, output_audio,
            rejected: 0,
        };
        let tokens = told(scope, counts);
        if tokens.input_provenance != Provenance::None {
            prop_assert_eq!(tokens.input(), input.unwrap_or(0));
        }
        if tokens.output_provenance != Provenance::None {
            prop_assert_eq!(tokens.output(), output.unwrap_or(0));
        }
        prop_assert_eq!(tokens.input() + tokens.output(), tokens.by_type.iter().sum::<u64>());
        for (kind, most) in [
            (TokenType::InputCached, input_cached),
            (TokenType::InputCacheWrite, input_cache_write),
            (TokenType::InputAudio, input_audio),
        ] {
            prop_assert!(tokens.of(kind) <= most.unwrap_or(0));
        }
    }
}
