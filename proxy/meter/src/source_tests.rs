//! The sources of a count at their edges: the limit of a count, the order of the sources, sums over choices and
//! over prompts.

use scan::{Count, Counts, Delta, Dialect, Event, Finish, Request, Scope, Usage};

use crate::tests::{Fixture, MS, stop, text};
use crate::track::{Moment, Tracks};
use crate::usage_resolver::{Resolved, UsageResolver};
use crate::usage_resolver_tests::tokens;
use crate::{Body, Close, Ending, Provenance, Record, Tick, TokenType, Tokens, Weight};

fn request(prompts: u32, answers: u32) -> Request {
    Request { answers, prompts, whole: true, ..Request::default() }
}

fn counts(input: u64, output: u64) -> Counts {
    Counts::of([(Count::Input, input), (Count::Output, output)])
}

/// A resolver with these usages.
fn resolver_with(usages: &[(Scope, Counts)]) -> UsageResolver {
    let mut resolver = UsageResolver::new(1 << 40);
    for &(scope, counts) in usages {
        resolver.usage(&Usage { scope, counts });
    }
    resolver
}

fn input(tokens: &Tokens) -> (Provenance, u64) {
    (tokens.input_provenance, tokens.input())
}

fn output(tokens: &Tokens) -> (Provenance, u64) {
    (tokens.output_provenance, tokens.output())
}

fn ended(limit: Option<u64>, usage: Counts) -> Record {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    if let Some(tokens) = limit {
        fixture.0.set_max_tokens(tokens);
    }
    fixture.frame(200, &[text(0), Event::Usage(Usage { scope: Scope::Whole, counts: usage })]);
    fixture.end(Close::Cut, 210)
}

#[test]
fn count_above_the_configured_limit_is_rejected() {
    let within = ended(Some(100), counts(100, 100));
    assert_eq!((within.usage_rejected, output(&within.tokens)), (0, (Provenance::Reported, 100)));
    let above = ended(Some(100), counts(100, 101));
    assert_eq!((above.usage_rejected, output(&above.tokens)), (1, (Provenance::Frames, 1)));
    assert_eq!(ended(None, counts(100, 101)).usage_rejected, 0, "the default limit is higher");
}

#[test]
fn each_count_is_rejected_separately() {
    let mut resolver = UsageResolver::new(1000);
    let all = Counts::default().with_rejected(1);
    let all = Count::ALL.into_iter().fold(all, |all, count| all.with(count, 1001)).with(Count::Output, 1000);
    let plausible = resolver.usage(&Usage { scope: Scope::Whole, counts: all });
    assert_eq!(plausible, Counts::of([(Count::Output, 1000)]).with_rejected(17));
    assert_eq!(resolver.rejected, 17);
}

#[test]
fn prompt_is_taken_from_the_best_source() {
    let ids = Request { prompt_ids: Some(8), ..request(1, 1) };
    let beams = Request { beam_search: true, ..ids.clone() };
    let (whole, running) = (Scope::Whole, Scope::Running(0));
    let choice = Scope::Choice(Some(0));
    let no_input = Counts::of([(Count::Output, 5)]);
    for (usages, request, expected) in [
        (&[(whole, counts(7, 5)), (choice, counts(6, 5))][..], ids.clone(), (Provenance::Reported, 7)),
        (&[(whole, counts(7, 5))], beams, (Provenance::Running, 7)),
        (
            &[(choice, counts(6, 5)), (running, counts(4, 5))],
            Request { answers: 2, ..ids.clone() },
            (Provenance::Reported, 6),
        ),
        (
            &[(choice, counts(6, 5))],
            Request { answers: 3, prompts: 2, ..ids.clone() },
            (Provenance::Running, 6),
        ),
        (
            &[(choice, no_input), (running, counts(4, 5))],
            Request { answers: 2, ..ids.clone() },
            (Provenance::Running, 4),
        ),
        (&[(running, counts(1, 5))], ids.clone(), (Provenance::Running, 1)),
        (&[(running, counts(0, 5))], ids.clone(), (Provenance::Ids, 8)),
        (&[(running, no_input)], ids.clone(), (Provenance::Ids, 8)),
        (&[], ids.clone(), (Provenance::Ids, 8)),
        (&[], Request { prompt_ids: None, ..ids.clone() }, (Provenance::None, 0)),
    ] {
        let tokens = tokens(&resolver_with(usages), 1, &request, true, 0);
        assert_eq!(input(&tokens), expected, "{usages:?}");
    }
}

#[test]
fn output_is_taken_from_the_best_source() {
    let counted = |running: u64, ids: u64, frames: u64| {
        let mut resolver = UsageResolver::new(1 << 40);
        (resolver.ids, resolver.frames) = (ids, frames);
        output(&tokens(&resolver, 1, &request(1, 1), true, running))
    };
    assert_eq!(counted(5, 9, 5), (Provenance::Running, 5));
    assert_eq!(counted(4, 9, 5), (Provenance::Ids, 9), "fewer tokens than frames are no count");
    assert_eq!(counted(0, 5, 5), (Provenance::Ids, 5));
    assert_eq!(counted(4, 4, 5), (Provenance::Frames, 5));
    assert_eq!(counted(0, 1, 0), (Provenance::Ids, 1));
    assert_eq!(counted(0, 0, 0), (Provenance::None, 0));
}

#[test]
fn zero_beside_content_or_ids_is_no_count() {
    let counted = |reported: u64, ids: u64, frames: u64| {
        let mut resolver = resolver_with(&[(Scope::Whole, counts(3, reported))]);
        (resolver.ids, resolver.frames) = (ids, frames);
        resolver.reported(1, &request(1, 1), true).and_then(|counts| counts.get(Count::Output))
    };
    assert_eq!(counted(0, 0, 0), Some(0));
    assert_eq!(counted(0, 0, 2), None);
    assert_eq!(counted(0, 2, 0), None);
    assert_eq!(counted(1, 2, 2), Some(1));
    assert_eq!(counted(1, 0, 0), Some(1));
    let mut resolver = resolver_with(&[(Scope::Whole, counts(3, 0))]);
    resolver.frames = 2;
    let tokens = tokens(&resolver, 1, &request(1, 1), true, 0);
    assert_eq!((input(&tokens), output(&tokens)), ((Provenance::None, 0), (Provenance::Frames, 2)));
}

/// One usage may cover all prompts or the first; only the end shows which.
#[test]
fn end_mark_or_every_finish_ends_the_answers() {
    let usage = Event::Usage(Usage { scope: Scope::Whole, counts: counts(9, 4) });
    for (last, provenance) in [
        (&[stop(0), usage, Event::Done][..], Provenance::Reported),
        (&[stop(0), stop(1), usage], Provenance::Reported),
        (&[stop(0), usage], Provenance::Running),
    ] {
        let mut fixture = Fixture::new(Dialect::OpenaiCompletions);
        fixture.0.requested(request(2, 2), Tick(100 * MS));
        fixture.frame(200, &[text(0)]).frame(210, &[text(1)]);
        for event in last {
            fixture.frame(220, &[*event]);
        }
        assert_eq!(output(&fixture.end(Close::Cut, 230).tokens), (provenance, 4), "{last:?}");
    }
}

#[test]
fn untimed_choice_counts_once_in_a_frame() {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    for (frames, events) in [(1, &[text(9), text(9)][..]), (3, &[text(9), text(10)]), (4, &[text(9)])] {
        fixture.frame(200, events);
        assert_eq!(fixture.0.live_output(), frames);
    }
    assert_eq!(output(&fixture.end(Close::Cut, 210).tokens), (Provenance::Frames, 4));
}

#[test]
fn detected_body_type_replaces_the_declared_one() {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    fixture.0.answered(200, Body::Whole);
    fixture.0.set_body(Body::Frames);
    fixture.frame(200, &[text(0)]);
    let record = fixture.end(Close::Cut, 210);
    assert_eq!(
        (record.timing.first_token_ns, output(&record.tokens)),
        (Some(100 * MS), (Provenance::Frames, 1))
    );
}

#[test]
fn usages_of_several_prompts_are_summed() {
    let part = |input, cached, output, reasoning| {
        counts(input, output).with(Count::InputCached, cached).with(Count::OutputReasoning, reasoning)
    };
    let usages = [part(10, 3, 50, 2), part(20, 4, 60, 1), part(30, 5, 70, 3), part(60, 6, 180, 6)];
    let usages = usages.map(|counts| (Scope::Whole, counts));
    let three = request(3, 3);
    for (seen, over, expected) in [
        (1, false, (Provenance::Running, 50, 10)),
        (1, true, (Provenance::Reported, 50, 10)),
        (2, true, (Provenance::Running, 110, 30)),
        (3, true, (Provenance::Reported, 180, 60)),
        (4, true, (Provenance::Reported, 180, 60)),
    ] {
        let tokens = tokens(&resolver_with(&usages[..seen]), 3, &three, over, 0);
        let got = (tokens.output_provenance, tokens.output(), tokens.input());
        assert_eq!(got, expected, "{seen} {over}");
    }
    let sum = tokens(&resolver_with(&usages[..3]), 3, &three, true, 0);
    assert_eq!(sum.by_type, [48, 12, 0, 0, 0, 0, 0, 0, 0, 174, 6, 0, 0, 0]);
    let last = tokens(&resolver_with(&usages), 3, &three, true, 0);
    assert_eq!(
        last.by_type,
        [54, 6, 0, 0, 0, 0, 0, 0, 0, 174, 6, 0, 0, 0],
        "one for all, after running ones"
    );
}

#[test]
fn prompts_repeated_for_each_answer_count_once() {
    let counted = |prompts, answers, seen: u32| {
        let counts = counts(900, 7).with(Count::InputCached, 100);
        let usages: Vec<_> = (0..seen).map(|choice| (Scope::Choice(Some(choice)), counts)).collect();
        let tokens = tokens(&resolver_with(&usages), seen, &request(prompts, answers), true, 0);
        (tokens.input(), tokens.of(TokenType::InputCached))
    };
    assert_eq!(counted(2, 4, 4), (1800, 200));
    assert_eq!(counted(2, 2, 4), (3600, 400), "one answer per prompt was requested");
    assert_eq!(counted(2, 6, 6), (1800, 200));
    assert_eq!(counted(2, 2, 1), (900, 100));
    assert_eq!(counted(1, 3, 3), (900, 100));
}

#[test]
fn usage_of_one_choice_is_not_all() {
    let one = resolver_with(&[(Scope::Choice(Some(0)), counts(6, 5))]);
    let reported = |choices, answers| one.reported(choices, &request(1, answers), true).is_some();
    assert!(reported(1, 1));
    assert!(!reported(2, 1));
    assert!(!reported(1, 2));
    assert!(resolver_with(&[]).reported(0, &request(1, 0), true).is_none());
}

#[test]
fn cached_tokens_beyond_the_prompt_are_excess() {
    let claim = |input, cached, output| counts(input, output).with(Count::InputCached, cached);
    for (scope, counts, excess) in [
        (Scope::Whole, claim(2_023, 3_968, 2), 1_945),
        (Scope::Whole, claim(10, 10, 2), 0),
        (Scope::Whole, claim(10, 4, 2), 0),
        (Scope::Running(0), claim(5, 9, 1), 4),
        (Scope::Choice(Some(0)), claim(5, 9, 1), 4),
        // Zero output beside content is no count, but its cached tokens still are.
        (Scope::Whole, claim(5, 9, 0), 4),
    ] {
        let mut resolver = resolver_with(&[(scope, counts)]);
        resolver.frames = 1;
        let Resolved { tokens, cached_excess: found, .. } =
            resolver.billed(Dialect::OpenaiChat, 1, &request(1, 1), true, 0);
        assert_eq!(found, excess, "{scope:?} {counts:?}");
        assert!(tokens.of(TokenType::InputCached) <= counts.or_zero(Count::Input));
    }
}

#[test]
fn embeddings_use_the_reported_counts() {
    let cached = counts(10, 3).with(Count::InputCached, 4);
    let tokens = resolver_with(&[(Scope::Whole, cached)]).prompt();
    assert_eq!(tokens.by_type, [6, 4, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0]);
    assert_eq!(tokens.input_provenance, Provenance::Reported);
    assert_eq!(tokens.output_provenance, Provenance::Reported);
    let above = counts(10, 3).with(Count::InputCached, 40);
    assert_eq!(
        resolver_with(&[(Scope::Whole, above)]).prompt().by_type,
        [0, 10, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0]
    );
    assert_eq!(resolver_with(&[(Scope::Whole, Counts::of([(Count::Output, 3)]))]).prompt(), Tokens::NONE);
    assert_eq!(resolver_with(&[]).prompt(), Tokens::NONE);
}

/// The tokens of an unstreamed answer to `request` with these events.
fn body(request: Request, events: &[Event], close: Close) -> Tokens {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    fixture.0.requested(request, Tick(100));
    fixture.0.answered(200, Body::Whole);
    fixture.frame(200, events);
    fixture.end(close, 210).tokens
}

const ENTIRE: Close = Close::Clean { whole: true };

fn usage_event(scope: Scope, counts: Counts) -> Event {
    Event::Usage(Usage { scope, counts })
}

/// llama.cpp's `response_fields`, TGI without `details`, Triton: one body is one frame of any length.
#[test]
fn body_without_a_count_is_uncounted() {
    let ids = Request { prompt_ids: Some(8), ..request(1, 1) };
    for asked in [request(1, 1), ids.clone()] {
        assert_eq!(body(asked.clone(), &[text(0), stop(0)], ENTIRE), Tokens::NONE);
        assert_eq!(body(asked, &[text(0)], Close::ClientGone { whole: false }), Tokens::NONE);
    }
    let prompt_alone = usage_event(Scope::Choice(Some(0)), Counts::of([(Count::Input, 7)]));
    assert_eq!(body(request(1, 1), &[text(0), prompt_alone], ENTIRE), Tokens::NONE);
    assert_eq!(body(request(1, 1), &[prompt_alone], ENTIRE), Tokens::NONE, "its text is missing, too");
    let output_alone = usage_event(Scope::Choice(Some(0)), Counts::of([(Count::Output, 7)]));
    let tokens = body(request(1, 1), &[text(0), output_alone], ENTIRE);
    assert_eq!((input(&tokens), output(&tokens)), ((Provenance::None, 0), (Provenance::Reported, 7)));
    let listed = Event::Text(Delta { choice: 0, chars: 90, tokens: Some(30) });
    assert_eq!(output(&body(request(1, 1), &[listed], ENTIRE)), (Provenance::Ids, 30));
    // No answer arrived, but the prompt was computed.
    assert_eq!(input(&body(ids.clone(), &[], Close::ClientGone { whole: false })), (Provenance::Ids, 8));
}

/// vLLM's usage of a beam search covers neither one choice nor all.
#[test]
fn usage_of_a_beam_search_is_running() {
    let beams = Request { beam_search: true, ..request(1, 1) };
    for scope in [Scope::Whole, Scope::Choice(Some(0))] {
        let tokens = body(beams.clone(), &[text(0), stop(0), usage_event(scope, counts(3, 4))], ENTIRE);
        assert_eq!(output(&tokens), (Provenance::Running, 4), "{scope:?}");
    }
}

/// llama.cpp counts one of several choices, or of several prompts, in an unstreamed answer.
#[test]
fn incomplete_usage_of_a_body_is_no_count() {
    let some = usage_event(Scope::Choice(None), counts(16, 20));
    let four = [text(0), text(1), text(2), text(3), some];
    for asked in [request(1, 4), request(4, 4), request(1, 1)] {
        assert_eq!(body(asked.clone(), &four, ENTIRE), Tokens::NONE, "{asked:?}");
    }
    let listed = |choice| Event::Text(Delta { choice, chars: 90, tokens: Some(30) });
    let logged = [listed(0), listed(1), some];
    let tokens = body(request(1, 2), &logged, ENTIRE);
    assert_eq!((input(&tokens), output(&tokens)), ((Provenance::Reported, 16), (Provenance::Ids, 60)));
    let tokens = body(request(2, 2), &logged, ENTIRE);
    assert_eq!((input(&tokens), output(&tokens)), ((Provenance::None, 0), (Provenance::Ids, 60)));
    let each = [text(0), some, text(1), some];
    let tokens = body(request(1, 2), &each, ENTIRE);
    assert_eq!((input(&tokens), output(&tokens)), ((Provenance::Reported, 16), (Provenance::Reported, 40)));
}

/// A client may request any number of choices; missing ones must not discard the count.
#[test]
fn missing_choices_keep_the_count_of_a_body() {
    let one = [text(0), stop(0), usage_event(Scope::Choice(Some(0)), counts(16, 20))];
    let tokens = body(request(1, 9), &one, ENTIRE);
    assert_eq!((input(&tokens), output(&tokens)), ((Provenance::Reported, 16), (Provenance::Reported, 20)));
    let cut = body(request(1, 9), &one, Close::ClientGone { whole: false });
    assert_eq!(output(&cut), (Provenance::Running, 20), "more may have been in transit");
}

/// Responses streamed in parallel: each has its own usage, and none covers all.
#[test]
fn usages_of_parallel_answers_are_summed() {
    let ended = |usages: u32, close| {
        let mut fixture = Fixture::new(Dialect::OpenaiResponses);
        fixture.frame(200, &[text(0)]).frame(210, &[Event::Role { choice: 1 }]).frame(220, &[text(0)]);
        for answer in 0..usages {
            fixture.frame(230, &[stop(answer), usage_event(Scope::Choice(None), counts(16, 20))]);
        }
        fixture.end(close, 240).tokens
    };
    let both = ended(2, Close::Clean { whole: false });
    assert_eq!((input(&both), output(&both)), ((Provenance::Reported, 16), (Provenance::Reported, 40)));
    let one = ended(1, Close::ClientGone { whole: false });
    assert_eq!((input(&one), output(&one)), ((Provenance::Reported, 16), (Provenance::Running, 20)));
}

#[test]
fn names_are_the_label_values() {
    assert_eq!(
        Provenance::ALL.map(Provenance::name).join(" "),
        "engine reported running ids tokenized frames none"
    );
}

#[test]
fn one_known_direction_makes_a_count() {
    let known = |input_provenance, output_provenance| {
        Tokens { input_provenance, output_provenance, ..Tokens::NONE }.is_counted()
    };
    assert!(!known(Provenance::None, Provenance::None));
    assert!(known(Provenance::Reported, Provenance::None));
    assert!(known(Provenance::None, Provenance::Frames));
}

/// A running count in the first frame describes that frame; after frames weighed by other means it covers them all.
#[test]
fn first_running_count_weighs_its_frame() {
    let running = Event::Usage(Usage { scope: Scope::Running(0), counts: counts(5, 3) });
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    fixture.frame(200, &[text(0), running]);
    assert_eq!(fixture.0.live_output(), 3);
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    fixture.frame(200, &[text(0)]).frame(210, &[text(0), running]);
    assert_eq!(fixture.0.live_output(), 2);
}

#[test]
fn text_with_a_zero_count_weighs_one_token() {
    for (tokens, running) in [(Some(0), None), (None, Some(0)), (Some(0), Some(0))] {
        let mut tracks = Tracks::default();
        tracks.add(Delta { choice: 0, chars: 4, tokens }, true);
        if let Some(running) = running {
            tracks.count(0, running);
        }
        tracks.end_frame(Moment::default(), |frame| assert_eq!(frame.tokens, 1));
        assert_eq!((tracks.weight, tracks.is_inexact), (1, true));
    }
}

fn usage_of(choice: u32, input: u64, output: u64) -> Event {
    Event::Usage(Usage { scope: Scope::Choice(Some(choice)), counts: counts(input, output) })
}

#[test]
fn running_count_weighs_a_second_choices_frame() {
    let running = |output| Event::Usage(Usage { scope: Scope::Running(1), counts: counts(5, output) });
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    fixture.frame(200, &[text(0), running(4)]);
    assert_eq!(fixture.0.live_output(), 5, "one of the first choice, four of the second");
}

#[test]
fn repeated_final_count_counts_once() {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    fixture
        .frame(200, &[text(0), text(1)])
        .frame(210, &[usage_of(1, 3, 10)])
        .frame(220, &[usage_of(1, 3, 10)]);
    fixture.frame(230, &[usage_of(0, 3, 7)]);
    assert_eq!(output(&fixture.end(Close::Clean { whole: false }, 240).tokens), (Provenance::Reported, 17));
}

#[test]
fn repeated_finish_counts_once() {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    fixture.frame(200, &[text(0), text(1)]).frame(210, &[stop(1)]).frame(220, &[stop(1)]);
    assert_eq!(fixture.end(Close::Clean { whole: false }, 230).ending, Ending::UpstreamCut);
}

#[test]
fn aborted_choice_is_an_error_in_band() {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    let abort = Event::Finish { choice: 0, reason: Finish::Abort };
    fixture.frame(200, &[text(0)]).frame(210, &[abort, Event::Done]);
    assert_eq!(fixture.end(Close::Clean { whole: false }, 220).ending, Ending::ErrorInBand);
}

#[test]
fn untimed_choice_without_ids_spreads_the_weights() {
    let ids = |choice, tokens| Event::Text(Delta { choice, chars: 4, tokens: Some(tokens) });
    for (last, expected) in [(ids(9, 1), Weight::Exact), (text(9), Weight::Spread)] {
        let mut fixture = Fixture::new(Dialect::OpenaiChat);
        fixture.frame(200, &[ids(0, 2)]).frame(210, &[ids(0, 2), last]);
        // More tokens than the frames' weight.
        fixture.frame(220, &[Event::Usage(Usage { scope: Scope::Whole, counts: counts(1, 9) })]);
        assert_eq!(fixture.end(Close::Cut, 230).timing.weight, expected);
    }
}

/// Running counts of one prompt count once for any number of choices.
#[test]
fn one_prompt_of_several_choices_counts_once() {
    let running = [(Scope::Running(0), counts(10, 1)), (Scope::Running(1), counts(10, 1))];
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    for (scope, counts) in running {
        fixture.frame(200, &[Event::Usage(Usage { scope, counts })]);
    }
    assert_eq!(input(&fixture.end(Close::Cut, 210).tokens), (Provenance::Running, 10));
}

#[test]
fn prompts_are_reported_once_every_choice_is() {
    let resolver =
        resolver_with(&[(Scope::Choice(Some(0)), counts(10, 1)), (Scope::Choice(Some(1)), counts(20, 2))]);
    let tokens = tokens(&resolver, 2, &request(2, 2), true, 0);
    assert_eq!((input(&tokens), output(&tokens)), ((Provenance::Reported, 30), (Provenance::Reported, 3)));
}

#[test]
fn reasoning_frames_count_as_reasoning() {
    let thought = Event::Reasoning(Delta { choice: 0, chars: 4, tokens: None });
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    fixture.frame(200, &[thought]).frame(210, &[thought]).frame(220, &[text(0)]);
    let tokens = fixture.end(Close::Cut, 230).tokens;
    assert_eq!((output(&tokens), tokens.of(TokenType::OutputReasoning)), ((Provenance::Frames, 3), 2));
}

#[test]
fn complete_and_length_endings_are_successes() {
    let successes: Vec<_> = Ending::ALL.into_iter().filter(|ending| ending.is_success()).collect();
    assert_eq!(successes, [Ending::Complete, Ending::Length]);
}
