//! The counts of the engine: exact for every ending, timed as frames with the same tokens, and never mixed with
//! those of the body.

use proptest::prelude::*;
use scan::{Delta, Dialect, Event, Finish, Request, Scope};

use crate::exchange::TIMED_CHOICES;
use crate::tests::{Fixture, MS, stop, text, usage};
use crate::{
    Body, Close, Ending, EnginePrompt, EngineStep, Meter, Provenance, Record, Tick, Timing, TokenType, Weight,
};

const CLEAN: Close = Close::Clean { whole: false };
const LEFT: Close = Close::ClientGone { whole: false };

fn step(choice: u32, tokens: u32) -> EngineStep {
    EngineStep { choice, tokens, reasoning: 0 }
}

fn prompt(input: u64, cached: u64) -> EnginePrompt {
    EnginePrompt { input, cached: Some(cached), ..EnginePrompt::default() }
}

/// An exchange with a stream, counted by the engine.
fn counted() -> Fixture {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    fixture.0.count_by_engine();
    fixture
}

fn input(record: &Record) -> (Provenance, u64) {
    (record.tokens.input_provenance, record.tokens.input())
}

fn output(record: &Record) -> (Provenance, u64) {
    (record.tokens.output_provenance, record.tokens.output())
}

#[test]
fn aborted_answer_has_exact_tokens() {
    let mut fixture = counted();
    fixture.0.engine_prompt(prompt(12, 4));
    fixture.0.engine_step(EngineStep { choice: 0, tokens: 3, reasoning: 2 }, Tick(200 * MS));
    fixture.frame(201, &[text(0)]);
    fixture.0.engine_step(step(0, 5), Tick(220 * MS));
    assert_eq!(fixture.0.live_output(), 8);
    fixture.0.engine_finish(0, Finish::Abort);
    let record = fixture.end(LEFT, 230);

    assert_eq!(record.ending, Ending::ClientAbort);
    assert_eq!((input(&record), output(&record)), ((Provenance::Engine, 12), (Provenance::Engine, 8)));
    assert_eq!(record.tokens.by_type[..2], [8, 4]);
    assert_eq!(record.tokens.of(TokenType::OutputReasoning), 2);
    assert_eq!(record.finishes[0], Some(Finish::Abort));
    let timing = &record.timing;
    assert_eq!(timing.first_token_ns, Some(100 * MS), "the step's, before the frame");
    assert_eq!((timing.first_visible_ns, timing.first_byte_ns), (Some(101 * MS), Some(101 * MS)));
    assert_eq!((timing.weight, timing.generation_tokens, timing.generation_ns), (Weight::Exact, 7, 20 * MS));
}

#[test]
fn every_ending_keeps_the_counts() {
    let ended = |status, body, close, unreadable| {
        let mut fixture = counted();
        fixture.0.answered(status, body);
        fixture.0.engine_prompt(prompt(6, 0));
        fixture.0.engine_step(step(0, 4), Tick(200 * MS));
        if unreadable {
            fixture.0.mark_unreadable();
        }
        fixture.end(close, 230)
    };
    for close in [CLEAN, LEFT, Close::Cut, Close::Local] {
        for body in [Body::Frames, Body::Whole, Body::Unknown] {
            for unreadable in [false, true] {
                let record = ended(200, body, close, unreadable);
                assert_eq!(output(&record), (Provenance::Engine, 4), "{close:?} {body:?}");
                assert_eq!(input(&record), (Provenance::Engine, 6), "{close:?} {body:?}");
            }
        }
        let failed = ended(503, Body::Whole, close, false);
        assert_eq!((input(&failed), output(&failed)), ((Provenance::Engine, 6), (Provenance::Engine, 4)));
        let is_local = close == Close::Local;
        assert_eq!(failed.ending, if is_local { Ending::ProxyError } else { Ending::ErrorStatus });
    }
}

#[test]
fn answer_that_never_began_is_counted() {
    let mut fixture = Fixture(Meter::new(Dialect::OpenaiChat, Tick(50 * MS), 1000 * MS));
    fixture
        .0
        .requested(Request { answers: 1, prompts: 1, whole: true, ..Request::default() }, Tick(100 * MS));
    fixture.0.engine_prompt(prompt(900, 0));
    let record = fixture.end(LEFT, 230);
    assert_eq!((record.ending, record.status), (Ending::ClientAbort, 0));
    assert_eq!((input(&record), output(&record)), ((Provenance::Engine, 900), (Provenance::Engine, 0)));
}

#[test]
fn abort_of_the_engine_alone_is_an_error() {
    for (close, ending) in
        [(CLEAN, Ending::ErrorInBand), (Close::Cut, Ending::ErrorInBand), (LEFT, Ending::ClientAbort)]
    {
        for dialect in [Dialect::OpenaiChat, Dialect::Gemini] {
            let mut fixture = Fixture::new(dialect);
            fixture.0.engine_step(step(0, 4), Tick(200 * MS));
            fixture.0.engine_finish(0, Finish::Abort);
            assert_eq!(fixture.end(close, 230).ending, ending, "{close:?} {dialect:?}");
        }
    }
}

#[test]
fn finishes_of_both_sources_count_once() {
    let ended = |by_body: u32, by_engine: u32| {
        let mut fixture = counted();
        let many = Request { answers: 10, prompts: 1, whole: true, ..Request::default() };
        fixture.0.requested(many, Tick(100 * MS));
        fixture.0.engine_step(step(9, 4), Tick(200 * MS));
        (0..by_engine).for_each(|choice| fixture.0.engine_finish(choice, Finish::Length));
        (0..by_body).for_each(|choice| {
            fixture.frame(210, &[stop(choice)]);
        });
        fixture.end(CLEAN, 230).ending
    };
    assert_eq!(ended(9, 9), Ending::UpstreamCut, "the tenth is missing");
    assert_eq!(ended(9, 10), Ending::Length);
    assert_eq!(ended(10, 0), Ending::Complete);
}

#[test]
fn body_without_the_engines_prompt_gives_the_input() {
    let mut fixture = counted();
    fixture.0.engine_step(step(0, 4), Tick(200 * MS));
    fixture.frame(210, &[text(0), stop(0)]).frame(211, &[usage(Scope::Whole, 12, 3), Event::Done]);
    let record = fixture.end(CLEAN, 230);
    assert_eq!((input(&record), output(&record)), ((Provenance::Reported, 12), (Provenance::Engine, 4)));
    assert_eq!(record.ending, Ending::Complete);

    let none = counted().frame(210, &[text(0)]).0.live_output();
    assert_eq!(none, 0);
    let mut fixture = counted();
    fixture.frame(210, &[text(0)]);
    let record = fixture.end(LEFT, 230);
    assert_eq!((input(&record), output(&record)), ((Provenance::None, 0), (Provenance::Engine, 0)));
    assert_eq!(record.visible_chars, 4);
}

#[test]
fn prompts_of_several_generations_add_up() {
    let mut fixture = counted();
    fixture.0.set_max_tokens(100);
    fixture.0.engine_prompt(prompt(30, 40));
    fixture.0.engine_prompt(EnginePrompt { input: 60, image: Some(20), ..EnginePrompt::default() });
    fixture.0.engine_prompt(prompt(11, 0));
    fixture.0.engine_prompt(prompt(101, 0));
    fixture.0.engine_prompt(prompt(10, 101));
    let record = fixture.end(LEFT, 230);
    assert_eq!(record.tokens.by_type[..7], [50, 30, 0, 0, 0, 20, 0]);
    assert_eq!(record.cached_excess, 10, "of the first prompt, though the sum has room");
    assert_eq!(record.usage_rejected, 3, "two prompts and a part");
}

#[test]
fn step_above_the_limit_is_rejected() {
    let mut fixture = counted();
    fixture.0.set_max_tokens(10);
    for (tick, tokens) in [(200, 4), (210, 7), (220, 6), (230, 1), (240, u32::MAX)] {
        fixture.0.engine_step(step(0, tokens), Tick(tick * MS));
    }
    let record = fixture.end(LEFT, 250);
    assert_eq!((output(&record), record.usage_rejected), ((Provenance::Engine, 10), 3));
    assert_eq!(record.timing.generation_ns, 20 * MS, "a rejected step has no time either");
    assert_eq!(record.timing.pace().inter_token.count(), 6);
}

#[test]
fn step_without_tokens_has_no_time() {
    let mut fixture = counted();
    fixture.0.engine_step(step(1, 0), Tick(150 * MS));
    fixture.0.engine_step(EngineStep { choice: 0, tokens: 1, reasoning: 9 }, Tick(200 * MS));
    let record = fixture.end(LEFT, 250);
    assert_eq!((record.choices, output(&record)), (2, (Provenance::Engine, 1)));
    assert_eq!(record.tokens.of(TokenType::OutputReasoning), 1);
    assert_eq!(record.timing.first_token_ns, Some(100 * MS));
}

#[test]
fn frames_before_the_engine_are_discarded() {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    fixture.frame(150, &[text(0)]).frame(160, &[text(0)]);
    fixture.0.engine_step(step(0, 1), Tick(200 * MS));
    fixture.0.engine_step(step(0, 1), Tick(230 * MS));
    fixture.0.count_by_engine();
    let record = fixture.end(LEFT, 250);
    assert_eq!(output(&record), (Provenance::Engine, 2));
    let timing = &record.timing;
    assert_eq!((timing.first_token_ns, timing.longest_gap_ns), (Some(100 * MS), 30 * MS));
}

#[test]
fn unstreamed_answer_has_counts_and_no_token_times() {
    let mut fixture = counted();
    fixture.0.engine_step(step(0, 2), Tick(150 * MS));
    fixture.0.engine_step(step(0, 2), Tick(2150 * MS));
    fixture.0.answered(200, Body::Whole);
    fixture.frame(2200, &[text(0), usage(Scope::Whole, 12, 3), stop(0)]);
    let record = fixture.end(Close::Clean { whole: true }, 2200);
    assert_eq!((input(&record), output(&record)), ((Provenance::Reported, 12), (Provenance::Engine, 4)));
    let timing = &record.timing;
    assert_eq!((record.ending, timing.stalls, timing.longest_gap_ns), (Ending::Complete, 0, 0));
    assert_eq!((timing.first_token_ns, timing.output_rate, timing.weight), (None, None, Weight::Exact));
    assert_eq!((timing.pace().inter_token.count(), timing.pace().chunk_gap.count()), (0, 0));
}

#[test]
fn finished_answer_without_a_response_is_complete() {
    let end = |is_finished, close| {
        let mut fixture = Fixture(Meter::new(Dialect::OpenaiChat, Tick(0), 1000 * MS));
        fixture.0.engine_step(step(0, 2), Tick(150 * MS));
        if is_finished {
            fixture.0.engine_finish(0, Finish::Stop);
        }
        fixture.end(close, 250).ending
    };
    assert_eq!(end(true, CLEAN), Ending::Complete);
    assert_eq!(end(false, CLEAN), Ending::UpstreamCut);
    assert_eq!(end(true, LEFT), Ending::ClientAbort);
}

/// An occurrence in an exchange, and the milliseconds since the last.
#[derive(Clone, Copy, Debug)]
struct Occurrence {
    after_ms: u64,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// New tokens of a choice.
    Tokens { choice: u32, tokens: u32, reasoning: bool },
    /// A whole usage of the body.
    Usage { input: u64, output: u64 },
    /// A running usage of the body.
    Running { choice: u32, input: u64, output: u64 },
    /// A finish in the body.
    Finish { choice: u32 },
    /// The client's socket is not ready.
    Wait { ms: u64 },
}

fn occurrence() -> impl Strategy<Value = Occurrence> {
    let choice = 0..TIMED_CHOICES as u32 + 3;
    let what = prop_oneof![
        6 => (choice.clone(), 1..5u32, any::<bool>())
            .prop_map(|(choice, tokens, reasoning)| What::Tokens { choice, tokens, reasoning }),
        1 => (0..50u64, 0..50u64).prop_map(|(input, output)| What::Usage { input, output }),
        1 => (choice.clone(), 0..50u64, 0..50u64)
            .prop_map(|(choice, input, output)| What::Running { choice, input, output }),
        1 => choice.prop_map(|choice| What::Finish { choice }),
        1 => (0..2000u64).prop_map(|ms| What::Wait { ms }),
    ];
    (prop_oneof![0..100u64, 900..1500u64], what).prop_map(|(after_ms, what)| Occurrence { after_ms, what })
}

/// The source of the counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counted {
    /// The engine, beside a body whose frames have the same tokens.
    Engine,
    /// The body, whose frames have token ids.
    Body,
}

/// Meters the occurrences. Without `has_usage`, the frames of usage have none.
fn metered(occurrences: &[Occurrence], by: Counted, has_usage: bool, close: Close) -> Record {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    if by == Counted::Engine {
        fixture.0.count_by_engine();
    }
    let mut ms = 150;
    for Occurrence { after_ms, what } in occurrences {
        ms += after_ms;
        match *what {
            What::Tokens { choice, tokens, reasoning } => {
                let delta = Delta { choice, chars: 4, tokens: Some(tokens) };
                let event = if reasoning { Event::Reasoning(delta) } else { Event::Text(delta) };
                fixture.frame(ms, &[event]);
                if by == Counted::Engine {
                    let reasoning = if reasoning { tokens } else { 0 };
                    fixture.0.engine_step(EngineStep { choice, tokens, reasoning }, Tick(ms * MS));
                }
            }
            What::Usage { input, output } if has_usage => {
                fixture.frame(ms, &[usage(Scope::Whole, input, output)]);
            }
            What::Running { choice, input, output } if has_usage => {
                fixture.frame(ms, &[usage(Scope::Running(choice), input, output)]);
            }
            What::Usage { .. } | What::Running { .. } => {
                fixture.frame(ms, &[Event::Meta]);
            }
            What::Finish { choice } => {
                fixture.frame(ms, &[stop(choice)]);
            }
            What::Wait { ms } => fixture.0.add_client_wait(ms * MS),
        }
    }
    fixture.end(close, ms + 10)
}

/// The output tokens and the reasoning among them, counted again.
fn twin(occurrences: &[Occurrence]) -> (u64, u64) {
    let mut counts = (0, 0);
    for occurrence in occurrences {
        if let What::Tokens { tokens, reasoning, .. } = occurrence.what {
            counts.0 += u64::from(tokens);
            counts.1 += if reasoning { u64::from(tokens) } else { 0 };
        }
    }
    counts
}

/// The times, without those of the input tokens.
fn times(timing: &Timing) -> String {
    format!("{:?}", Timing { input_rate: None, ..timing.clone() })
}

fn closes() -> impl Strategy<Value = Close> {
    prop::sample::select(vec![CLEAN, LEFT, Close::Cut])
}

proptest! {
    #![proptest_config(chance::cases(512))]

    #[test]
    fn steps_are_timed_as_frames(
        occurrences in prop::collection::vec(occurrence(), 0..30), close in closes(),
    ) {
        let engine = metered(&occurrences, Counted::Engine, false, close);
        let body = metered(&occurrences, Counted::Body, false, close);
        prop_assert_eq!(times(&engine.timing), times(&body.timing));
        prop_assert_eq!(engine.tokens.by_type, body.tokens.by_type);
        prop_assert_eq!((engine.ending, engine.choices), (body.ending, body.choices));
        prop_assert_eq!((engine.visible_chars, engine.finishes), (body.visible_chars, body.finishes));
    }

    #[test]
    fn sources_never_mix(
        occurrences in prop::collection::vec(occurrence(), 0..30), close in closes(),
    ) {
        let engine = metered(&occurrences, Counted::Engine, true, close);
        let (tokens, reasoning) = twin(&occurrences);
        prop_assert_eq!(output(&engine), (Provenance::Engine, tokens));
        prop_assert_eq!(engine.tokens.of(TokenType::OutputReasoning), reasoning);
        let alone = metered(&occurrences, Counted::Engine, false, close);
        prop_assert_eq!(times(&engine.timing), times(&alone.timing), "usage changes no time");
        let body = metered(&occurrences, Counted::Body, true, close);
        prop_assert_eq!(input(&engine), input(&body), "the input is the body's");
        prop_assert_eq!(engine.cached_excess, body.cached_excess);
    }

    #[test]
    fn prompts_agree_with_a_naive_sum(
        prompts in prop::collection::vec((0..60u64, 0..60u64, 0..60u64, 0..60u64), 1..6), max in 1..200u64,
    ) {
        let mut fixture = Fixture::new(Dialect::OpenaiChat);
        fixture.0.set_max_tokens(max);
        let (mut sums, mut excess, mut rejected) = ([0; 4], 0, 0);
        let mut known = false;
        for (input, cached, write, audio) in prompts {
            let (cached, cache_write, audio) = (Some(cached), Some(write), Some(audio));
            let prompt = EnginePrompt { input, cached, cache_write, audio, ..EnginePrompt::default() };
            fixture.0.engine_prompt(prompt);
            let within = |part: Option<u64>| part.filter(|&part| part <= max).unwrap_or(0);
            let counts = [Some(input), cached, cache_write, audio];
            rejected += counts.into_iter().flatten().filter(|&count| count > max).count();
            if input > max {
                continue;
            }
            if sums.iter().sum::<u64>() + input > max {
                rejected += 1;
                continue;
            }
            known = true;
            // One token at a time: cached before written before audio before text.
            let limits = [within(cached), within(cache_write), within(audio), input];
            let mut taken = [0; 4];
            for _ in 0..input {
                let kind = (0..4).find(|&kind| taken[kind] < limits[kind]).unwrap();
                taken[kind] += 1;
            }
            (0..4).for_each(|kind| sums[kind] += taken[kind]);
            excess += within(cached).saturating_sub(input);
        }
        let record = fixture.end(LEFT, 230);
        let [cached, write, audio, text] = sums;
        prop_assert_eq!(&record.tokens.by_type[..7], &[text, cached, write, 0, audio, 0, 0]);
        prop_assert_eq!((record.cached_excess, record.usage_rejected as usize), (excess, rejected));
        prop_assert_eq!(record.tokens.input_provenance == Provenance::Engine, known);
    }
}
