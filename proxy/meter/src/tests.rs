//! The definitions, one by one, on hand-made events. Whole recorded streams are replayed in the
//! end-to-end tests.

use scan::{Counts, Dialect, Event, Extent, Finish, Piece, Request, RequestScanner, Scope, Sink, Usage};

use crate::{
    Body, Close, Ending, Identity, Load, LoadSpan, Meter, Provenance, Record, Tick, Timing, TokenType, Weight,
};

pub(crate) const MS: u64 = 1_000_000;

/// An exchange whose request was complete at 100 ms and which is answered in frames.
pub(crate) struct Bench(pub(crate) Meter);

impl Bench {
    pub(crate) fn new(dialect: Dialect) -> Self {
        let mut meter = Meter::new(dialect, Tick(50 * MS), 1000 * MS);
        meter
            .requested(Request { answers: 1, prompts: 1, whole: true, ..Request::default() }, Tick(100 * MS));
        meter.answered(200, Body::Frames);
        Self(meter)
    }

    /// One frame, read at `ms`.
    pub(crate) fn frame(&mut self, ms: u64, events: &[Event]) -> &mut Self {
        let mut reading = self.0.read(Tick(ms * MS));
        events.iter().for_each(|&event| reading.event(event));
        reading.frame(Extent { from: 0, to: 0, whole: true, is_usage: false, usage: None, timings: None });
        self
    }

    pub(crate) fn end(self, close: Close, ms: u64) -> Record {
        let identity = Identity::new("u", "vllm", Dialect::OpenaiChat, "m");
        self.0.end(identity, close, LoadSpan::alone(), Tick(ms * MS))
    }
}

pub(crate) fn text(choice: u32) -> Event {
    Event::Text(Piece { choice, chars: 4, tokens: None })
}

fn ids(choice: u32, tokens: u32) -> Event {
    Event::Text(Piece { choice, chars: 4, tokens: Some(tokens) })
}

pub(crate) fn usage(scope: Scope, input: u64, output: u64) -> Event {
    let counts = Counts { input: Some(input), output: Some(output), ..Counts::default() };
    Event::Usage(Usage { scope, counts })
}

pub(crate) fn stop(choice: u32) -> Event {
    Event::Finish { choice, reason: Finish::Stop }
}

const CLEAN: Close = Close::Clean { whole: false };

#[test]
fn a_plain_stream_with_usage() {
    let mut bench = Bench::new(Dialect::OpenaiChat);
    bench
        .frame(150, &[Event::Role { choice: 0 }])
        .frame(200, &[text(0)])
        .frame(210, &[text(0)])
        .frame(230, &[text(0)])
        .frame(231, &[stop(0)])
        .frame(232, &[usage(Scope::Whole, 12, 3)])
        .frame(232, &[Event::Done]);
    let record = bench.end(CLEAN, 240);

    assert_eq!(record.ending, Ending::Complete);
    assert_eq!((record.tokens.input(), record.tokens.output()), (12, 3));
    assert_eq!(record.tokens.output_provenance, Provenance::Reported);
    let timing = &record.timing;
    assert_eq!(timing.duration_ns, 140 * MS);
    assert_eq!(timing.first_byte_ns, Some(50 * MS), "the role frame is the first byte");
    assert_eq!(timing.first_chunk_ns, Some(50 * MS), "and the first chunk");
    assert_eq!(timing.first_token_ns, Some(100 * MS), "and not the first token");
    assert_eq!(timing.generation_ns, 30 * MS);
    assert_eq!(timing.output_rate, Some(2.0 / 0.030));
    assert_eq!(timing.per_output_token_ns, Some(20 * MS), "(140 − 100) ÷ (3 − 1)");
    assert_eq!(timing.input_rate, Some(120.0));
    assert_eq!((timing.inter_token.count(), timing.inter_token.sum_ns), (2, 30 * MS));
    assert_eq!(timing.weight, Weight::Exact, "three frames, three tokens: one each");
    assert_eq!(timing.visible_chars_rate, Some(8.0 / 0.030));
    assert_eq!(record.visible_chars, 12);
}

#[test]
fn wall_times_count_the_upload_and_durations_do_not() {
    let ended = |complete: Option<u64>, first_byte: u64, end: u64| {
        let mut meter = Meter::new(Dialect::OpenaiChat, Tick(50 * MS), 1000 * MS);
        if let Some(at) = complete {
            meter.requested(Request { answers: 1, prompts: 1, ..Request::default() }, Tick(at * MS));
        }
        meter.answered(200, Body::Frames);
        let mut bench = Bench(meter);
        bench.frame(first_byte, &[text(0)]);
        let mut record = bench.end(Close::ClientGone { whole: false }, end);
        record.identity.started_unix_ns = 7_000 * MS;
        let Timing { upload_ns, duration_ns, first_token_ns, .. } = record.timing;
        assert_eq!(record.ended_unix_ns(), (7_000 + end - 50) * MS, "{complete:?}");
        (record.requested_unix_ns() / MS, upload_ns / MS, duration_ns / MS, first_token_ns.map(|ns| ns / MS))
    };
    assert_eq!(ended(Some(350), 400, 1000), (7_300, 300, 650, Some(50)));
    // An answer that begins before the request is complete, or that is over by then.
    assert_eq!(ended(Some(350), 200, 1000), (7_300, 300, 650, Some(0)));
    assert_eq!(ended(Some(1000), 200, 1000), (7_950, 950, 0, Some(0)));
    // Nobody said that it is complete: it is all answer.
    assert_eq!(ended(None, 200, 1000), (7_000, 0, 950, Some(150)));
}

#[test]
fn merged_tokens_are_spread_over_their_frames() {
    let mut bench = Bench::new(Dialect::OpenaiChat);
    for frame in 0..5 {
        bench.frame(200 + 40 * frame, &[text(0)]);
    }
    bench.frame(361, &[stop(0)]).frame(362, &[usage(Scope::Whole, 1, 17)]).frame(362, &[Event::Done]);
    let timing = bench.end(CLEAN, 362).timing;
    assert_eq!(timing.weight, Weight::Spread);
    assert_eq!((timing.inter_token.count(), timing.inter_token.sum_ns), (16, 160 * MS));
    assert_eq!(timing.chunk_gap.count(), 4);
    assert_eq!(timing.output_rate, Some(100.0));
}

#[test]
fn running_counts_weigh_frames_exactly_and_see_hidden_tokens() {
    let mut bench = Bench::new(Dialect::OpenaiChat);
    bench
        .frame(200, &[Event::Role { choice: 0 }, usage(Scope::Running(0), 9, 0)])
        .frame(210, &[text(0), usage(Scope::Running(0), 9, 1)])
        .frame(240, &[text(0), usage(Scope::Running(0), 9, 4)])
        .frame(250, &[Event::Empty(Piece::default()), usage(Scope::Running(0), 9, 5)]);
    let record = bench.end(Close::ClientGone { whole: false }, 300);
    assert_eq!(record.ending, Ending::ClientAbort);
    assert_eq!(record.tokens.output_provenance, Provenance::Running);
    assert_eq!((record.tokens.input(), record.tokens.output()), (9, 5));
    assert_eq!(record.timing.weight, Weight::Exact);
    assert_eq!((record.timing.inter_token.count(), record.timing.inter_token.sum_ns), (4, 40 * MS));
    assert_eq!(record.timing.chunk_gap.count(), 2);
}

#[test]
fn a_first_count_at_the_finish_is_not_the_last_frames_weight() {
    let mut bench = Bench::new(Dialect::OpenaiCompletions);
    for frame in 0..3 {
        bench.frame(200 + 10 * frame, &[text(0)]);
    }
    bench.frame(230, &[stop(0), usage(Scope::Choice(Some(0)), 5, 3)]).frame(231, &[Event::Done]);
    let record = bench.end(CLEAN, 231);
    assert_eq!((record.tokens.output(), record.tokens.output_provenance), (3, Provenance::Reported));
    assert_eq!(record.timing.weight, Weight::Exact, "three frames, three tokens");
    assert_eq!((record.timing.inter_token.count(), record.timing.inter_token.sum_ns), (2, 20 * MS));
    assert_eq!(record.timing.generation_ns, 20 * MS, "the finish is no token");
}

#[test]
fn an_empty_delta_with_ids_is_the_first_token() {
    let mut bench = Bench::new(Dialect::OpenaiChat);
    bench
        .frame(120, &[Event::Empty(Piece { choice: 0, chars: 0, tokens: Some(1) })])
        .frame(140, &[ids(0, 2)]);
    let record = bench.end(Close::Cut, 150);
    assert_eq!(record.ending, Ending::UpstreamCut);
    assert_eq!(record.timing.first_token_ns, Some(20 * MS));
    assert_eq!(record.timing.first_visible_ns, Some(40 * MS));
    assert_eq!((record.tokens.output(), record.tokens.output_provenance), (3, Provenance::Ids));
}

#[test]
fn usage_of_one_choice_is_reported_only_when_every_choice_sent_one() {
    let both = [Some(2), None];
    for usages in both {
        let mut bench = Bench::new(Dialect::OpenaiChat);
        bench.0.requested(Request { answers: 2, prompts: 1, ..Request::default() }, Tick(100 * MS));
        bench.frame(200, &[text(0)]).frame(200, &[text(1)]).frame(210, &[stop(0)]);
        bench.frame(211, &[usage(Scope::Choice(None), 19, 24)]).frame(212, &[stop(1)]);
        if usages.is_some() {
            bench.frame(213, &[usage(Scope::Choice(None), 19, 20)]);
        }
        bench.frame(214, &[Event::Done]);
        let tokens = bench.end(CLEAN, 220).tokens;
        assert_eq!(tokens.input(), 19, "one prompt, counted once");
        match usages {
            Some(_) => assert_eq!((tokens.output(), tokens.output_provenance), (44, Provenance::Reported)),
            None => assert_eq!((tokens.output(), tokens.output_provenance), (24, Provenance::Running)),
        }
    }
}

#[test]
fn a_usage_of_zeros_is_no_count() {
    let mut bench = Bench::new(Dialect::OpenaiCompletions);
    for ms in [200, 210, 220] {
        bench.frame(ms, &[text(0), usage(Scope::Running(0), 0, 0)]);
    }
    bench.frame(230, &[stop(0), usage(Scope::Choice(Some(0)), 0, 0)]).frame(231, &[Event::Done]);
    let record = bench.end(CLEAN, 231);
    assert_eq!((record.tokens.output(), record.tokens.output_provenance), (3, Provenance::Frames));
    assert_eq!(record.tokens.input_provenance, Provenance::None);
}

#[test]
fn cached_and_reasoning_tokens_are_counted_once() {
    let mut bench = Bench::new(Dialect::OpenaiChat);
    let counts = Counts {
        input: Some(100),
        input_cached: Some(80),
        output: Some(50),
        output_reasoning: Some(30),
        ..Counts::default()
    };
    bench.frame(200, &[Event::Reasoning(Piece { choice: 0, chars: 3, tokens: None })]);
    bench.frame(210, &[text(0)]).frame(220, &[stop(0)]);
    bench.frame(230, &[Event::Usage(Usage { scope: Scope::Whole, counts })]).frame(230, &[Event::Done]);
    let record = bench.end(CLEAN, 231);
    assert_eq!(record.tokens.of(TokenType::Input), 20);
    assert_eq!(record.tokens.of(TokenType::InputCached), 80);
    assert_eq!(record.tokens.of(TokenType::Output), 20);
    assert_eq!(record.tokens.of(TokenType::OutputReasoning), 30);
    assert_eq!(record.timing.first_token_ns, Some(100 * MS));
    assert_eq!(record.timing.first_visible_ns, Some(110 * MS));
    assert_eq!(record.timing.input_rate, Some(200.0), "(100 − 80) ÷ 0.1 s");
}

#[test]
fn choices_are_timed_apart() {
    let mut bench = Bench::new(Dialect::OpenaiChat);
    bench.0.requested(Request { answers: 2, prompts: 1, ..Request::default() }, Tick(100 * MS));
    for step in 0..3 {
        bench.frame(200 + 10 * step, &[text(0)]).frame(205 + 10 * step, &[text(1)]);
    }
    bench.frame(230, &[stop(0)]).frame(230, &[stop(1)]);
    bench.frame(230, &[usage(Scope::Whole, 5, 6)]).frame(230, &[Event::Done]);
    let record = bench.end(CLEAN, 230);
    assert_eq!(record.choices, 2);
    assert_eq!((record.timing.inter_token.count(), record.timing.inter_token.sum_ns), (4, 40 * MS));
    assert_eq!(record.timing.output_rate, Some(100.0), "what one reader sees");
}

#[test]
fn every_choice_has_its_own_end_and_the_longest_gap_is_one_choices() {
    let mut bench = Bench::new(Dialect::OpenaiChat);
    let ends = |choice, reason| Event::Finish { choice, reason };
    bench.frame(200, &[text(0)]).frame(230, &[text(1)]).frame(260, &[text(0)]).frame(270, &[text(1)]);
    // A choice that is counted and not timed has no gaps.
    bench.frame(270, &[text(9)]).frame(900, &[text(9)]);
    bench.frame(901, &[ends(0, Finish::Stop), ends(2, Finish::ToolCalls), ends(9, Finish::Abort)]);
    bench.frame(902, &[ends(0, Finish::Length)]);
    let record = bench.end(Close::Cut, 903);
    let none = None;
    let said = [Some(Finish::Length), none, Some(Finish::ToolCalls), none, none, none, none, none];
    assert_eq!(record.finishes, said, "the last word of each");
    assert_eq!(record.timing.longest_gap_ns, 60 * MS);

    let mut single = Bench::new(Dialect::OpenaiChat);
    single.frame(200, &[text(0)]);
    assert_eq!(single.end(Close::Cut, 900).timing.longest_gap_ns, 0, "one token has no gap");
}

#[test]
fn the_longest_token_gap_is_one_that_was_observed() {
    // Ten tokens a frame, a second between frames; then one token after 200 ms.
    let mut bench = Bench::new(Dialect::OpenaiChat);
    for frame in 0..4 {
        bench.frame(200 + 1000 * frame, &[ids(0, 10)]);
    }
    bench.frame(3400, &[ids(0, 1)]);
    let timing = bench.end(Close::Cut, 3500).timing;
    assert_eq!(timing.weight, Weight::Exact);
    assert_eq!((timing.longest_gap_ns, timing.longest_token_gap_ns), (1000 * MS, 200 * MS));

    // Of a total that was spread over the frames nobody knows the longest.
    let mut spread = Bench::new(Dialect::OpenaiChat);
    spread.frame(200, &[text(0)]).frame(1200, &[text(0)]).frame(1201, &[usage(Scope::Whole, 1, 20)]);
    let timing = spread.end(Close::Cut, 1300).timing;
    assert_eq!(timing.weight, Weight::Spread);
    assert_eq!((timing.longest_gap_ns, timing.longest_token_gap_ns), (1000 * MS, 0));
}

#[test]
fn choices_beyond_the_timed_ones_are_counted() {
    let mut bench = Bench::new(Dialect::OpenaiChat);
    for choice in 0..12 {
        bench.frame(200, &[text(choice)]).frame(210, &[text(choice)]);
    }
    let record = bench.end(Close::Cut, 220);
    assert_eq!((record.choices, record.tokens.output()), (12, 24));
    assert_eq!(record.timing.chunk_gap.count(), 8);
}

#[test]
fn many_choices_are_as_fast_as_a_few() {
    for choices in [1, 8, 16] {
        let mut bench = Bench::new(Dialect::OpenaiChat);
        for token in 0..11 {
            let pieces: Vec<_> = (0..choices).map(text).collect();
            bench.frame(200 + 100 * token, &pieces);
        }
        let record = bench.end(Close::Cut, 1300);
        assert_eq!(record.tokens.output(), 11 * u64::from(choices));
        assert_eq!(record.timing.output_rate, Some(10.0), "{choices} choices");
    }
}

#[test]
fn running_counts_of_choices_beyond_the_timed_ones_are_kept() {
    let mut bench = Bench::new(Dialect::OpenaiChat);
    for choice in 0..10 {
        bench.frame(200, &[text(choice), usage(Scope::Running(choice), 3, 100)]);
    }
    let record = bench.end(Close::ClientGone { whole: false }, 210);
    assert_eq!((record.tokens.output(), record.tokens.output_provenance), (1000, Provenance::Running));
}

#[test]
fn a_repeated_last_count_is_not_added_twice() {
    let mut bench = Bench::new(Dialect::OpenaiChat);
    bench.frame(200, &[text(0)]).frame(210, &[stop(0), usage(Scope::Choice(Some(0)), 3, 5)]);
    bench.frame(211, &[usage(Scope::Choice(Some(0)), 3, 5)]).frame(212, &[Event::Done]);
    let record = bench.end(CLEAN, 212);
    assert_eq!((record.tokens.output(), record.tokens.output_provenance), (5, Provenance::Reported));
}

#[test]
fn a_count_after_the_finish_is_final() {
    let mut bench = Bench::new(Dialect::OpenaiChat);
    bench.frame(200, &[text(0)]).frame(210, &[stop(0)]).frame(211, &[usage(Scope::Running(0), 3, 5)]);
    bench.frame(212, &[Event::Done]);
    let tokens = bench.end(CLEAN, 212).tokens;
    assert_eq!((tokens.output(), tokens.output_provenance), (5, Provenance::Reported));
}

#[test]
fn timings_at_the_finish_are_no_usage() {
    let mut bench = Bench::new(Dialect::OpenaiChat);
    bench.frame(200, &[text(0)]).frame(210, &[stop(0), usage(Scope::Running(0), 3, 5)]);
    bench.frame(212, &[Event::Done]);
    let tokens = bench.end(CLEAN, 212).tokens;
    assert_eq!((tokens.output(), tokens.output_provenance), (5, Provenance::Running));
}

#[test]
fn a_usage_for_each_prompt_is_summed() {
    let mut bench = Bench::new(Dialect::OpenaiCompletions);
    bench.0.requested(Request { answers: 2, prompts: 2, ..Request::default() }, Tick(100 * MS));
    bench.frame(200, &[text(0)]).frame(200, &[text(1)]).frame(210, &[stop(0)]).frame(210, &[stop(1)]);
    bench.frame(211, &[usage(Scope::Whole, 7, 50)]).frame(212, &[usage(Scope::Whole, 9, 60)]);
    let tokens = bench.frame(213, &[Event::Done]).0.live_output();
    assert_eq!(tokens, 110);
    let tokens = bench.end(CLEAN, 213).tokens;
    assert_eq!((tokens.input(), tokens.output()), (16, 110));
}

#[test]
fn an_error_is_never_billed() {
    let mut bench = Bench::new(Dialect::OpenaiChat);
    bench.0.answered(500, Body::Whole);
    bench.frame(200, &[Event::Error, usage(Scope::Whole, 100, 50)]);
    let record = bench.end(Close::Clean { whole: true }, 210);
    assert_eq!((record.ending, record.tokens), (Ending::ErrorStatus, crate::Tokens::NONE));
}

#[test]
fn a_claim_beyond_reason_is_refused() {
    let mut bench = Bench::new(Dialect::OpenaiChat);
    bench.frame(200, &[text(0), usage(Scope::Running(0), 3, 1)]);
    for choice in 0..200 {
        bench.frame(210, &[stop(choice), usage(Scope::Choice(Some(choice)), 3, 1 << 53)]);
    }
    let record = bench.end(Close::Cut, 220);
    assert_eq!((record.tokens.output(), record.usage_rejected), (1, 200));
}

#[test]
fn tokens_without_a_word_are_output() {
    let mut bench = Bench::new(Dialect::OpenaiChat);
    bench.frame(200, &[Event::Empty(Piece { choice: 0, chars: 0, tokens: Some(40) })]);
    bench.frame(210, &[stop(0)]).frame(211, &[usage(Scope::Whole, 3, 41)]).frame(211, &[Event::Done]);
    let record = bench.end(CLEAN, 211);
    assert_eq!((record.ending, record.tokens.output()), (Ending::Complete, 41));
}

#[test]
fn an_echoed_prompts_log_probabilities_are_no_output() {
    let mut bench = Bench::new(Dialect::OpenaiCompletions);
    bench.0.requested(Request { answers: 1, prompts: 1, echo: true, ..Request::default() }, Tick(100 * MS));
    bench.frame(200, &[ids(0, 30)]).frame(210, &[ids(0, 1)]).frame(220, &[ids(0, 1)]);
    let tokens = bench.end(Close::Cut, 230).tokens;
    assert_eq!((tokens.output(), tokens.output_provenance), (3, Provenance::Frames));
}

#[test]
fn positions_are_spread_with_the_tokens() {
    let mut bench = Bench::new(Dialect::OpenaiChat);
    for frame in 0..65 {
        bench.frame(200 + 40 * frame, &[text(0)]);
    }
    bench.frame(2761, &[stop(0)]).frame(2762, &[usage(Scope::Whole, 3, 260)]).frame(2762, &[Event::Done]);
    let position = bench.end(CLEAN, 2762).timing.position;
    assert_eq!(position.map(|span| span.tokens), [60, 192, 4, 0, 0, 0]);
    assert_eq!(position[1].ns / position[1].tokens, 10 * MS);
}

#[test]
fn a_stall_is_the_servers_and_a_slow_reader_is_not() {
    let mut bench = Bench::new(Dialect::OpenaiChat);
    bench.frame(200, &[text(0)]).frame(900, &[Event::Ping]).frame(1700, &[text(0)]);
    bench.0.client_waited(1900 * MS);
    bench.frame(3700, &[text(0)]).frame(3701, &[stop(0)]).frame(3701, &[Event::Done]);
    let timing = bench.end(CLEAN, 9000).timing;
    assert_eq!((timing.stalls, timing.stalled_ns), (1, 1500 * MS));
    assert_eq!(timing.client_wait_ns, 1900 * MS);

    let mut hung = Bench::new(Dialect::OpenaiChat);
    hung.frame(200, &[text(0)]).frame(5000, &[Event::Ping]);
    let timing = hung.end(Close::ClientGone { whole: false }, 9200).timing;
    assert_eq!((timing.stalls, timing.stalled_ns), (1, 9000 * MS), "pings are no tokens");
}

#[test]
fn endings() {
    let ended = |events: &[Event], close| {
        let mut bench = Bench::new(Dialect::OpenaiChat);
        for &event in events {
            bench.frame(200, &[event]);
        }
        bench.end(close, 300).ending
    };
    let length = Event::Finish { choice: 0, reason: Finish::Length };
    for (events, close, ending) in [
        (&[text(0), stop(0), Event::Done][..], CLEAN, Ending::Complete),
        (&[text(0), length, Event::Done], CLEAN, Ending::Length),
        (&[text(0), stop(0)], CLEAN, Ending::Complete),
        (&[text(0), stop(0)], Close::Cut, Ending::UpstreamCut),
        (&[text(0), stop(0), Event::Done], Close::Cut, Ending::Complete),
        (&[text(0), stop(0), Event::Done], Close::ClientGone { whole: false }, Ending::Complete),
        (&[text(0)], CLEAN, Ending::UpstreamCut),
        (&[text(0)], Close::ClientGone { whole: false }, Ending::ClientAbort),
        (&[], Close::ClientGone { whole: false }, Ending::ClientAbort),
        (&[text(0), Event::Error, Event::Done], CLEAN, Ending::ErrorInBand),
        (&[text(0), Event::Error], Close::ClientGone { whole: false }, Ending::ErrorInBand),
        (&[stop(0), Event::Done], CLEAN, Ending::NoOutput),
        (&[], Close::Local, Ending::ProxyError),
    ] {
        assert_eq!(ended(events, close), ending, "{events:?} {close:?}");
    }
    // Two answers were asked for, one was ever seen, and no mark says that this is all.
    let mut half = Bench::new(Dialect::OpenaiChat);
    half.0.requested(Request { answers: 2, prompts: 1, ..Request::default() }, Tick(100 * MS));
    half.frame(200, &[text(0)]).frame(210, &[stop(0)]);
    assert_eq!(half.end(CLEAN, 300).ending, Ending::UpstreamCut);
    // llama.cpp's own endpoint has no mark; it may give fewer answers than were asked for.
    let mut native = Bench::new(Dialect::LlamacppCompletion);
    native.0.requested(Request { answers: 2, prompts: 1, ..Request::default() }, Tick(100 * MS));
    native.frame(200, &[text(0)]).frame(210, &[stop(0)]);
    assert_eq!(native.end(CLEAN, 300).ending, Ending::Complete);

    let mut refused = Bench::new(Dialect::OpenaiChat);
    refused.0.answered(429, Body::Whole);
    assert_eq!(refused.end(Close::ClientGone { whole: false }, 200).ending, Ending::ErrorStatus);
}

#[test]
fn an_unstreamed_answer_has_no_first_token() {
    let mut bench = Bench::new(Dialect::OpenaiChat);
    bench.0.answered(200, Body::Whole);
    bench.frame(500, &[text(0), stop(0), usage(Scope::Choice(Some(0)), 7, 9)]);
    let record = bench.end(Close::Clean { whole: true }, 500);
    assert_eq!((record.ending, record.tokens.output()), (Ending::Complete, 9));
    assert_eq!(record.tokens.output_provenance, Provenance::Reported);
    assert_eq!(record.timing.first_token_ns, None);
    assert_eq!(record.timing.output_rate, None);
    assert_eq!(record.timing.first_byte_ns, Some(400 * MS));
}

#[test]
fn concurrency_is_the_mean_over_the_exchange() {
    let mut load = Load::default();
    let mine = load.enter(Tick(0));
    let other = load.enter(Tick(100));
    load.leave(Tick(200), &other);
    let left = load.leave(Tick(400), &mine);
    assert!((left.mean_since(&mine) - 1.25).abs() < 1e-9, "(100·1 + 100·2 + 200·1) ÷ 400");
    assert_eq!(left.busy_ns, 400);
    assert_eq!(left.share, 350 << 32);
}

#[test]
fn positions_share_out_tokens_and_time() {
    let mut bench = Bench::new(Dialect::OpenaiChat);
    for token in 0..300 {
        bench.frame(200 + token, &[ids(0, 1)]);
    }
    let timing = bench.end(Close::Cut, 600).timing;
    assert_eq!(timing.position.map(|span| span.tokens), [63, 192, 44, 0, 0, 0]);
    assert_eq!(timing.position[1].ns, 192 * MS);
}

#[test]
fn the_state_of_an_exchange_is_small() {
    let size = size_of::<Meter>();
    println!("{size} bytes");
    assert!(size <= 1736, "{size} bytes");
}

#[test]
fn some_of_the_prompts_usages_are_not_all() {
    let whole = |output| {
        let counts = Counts { input: Some(5), output: Some(output), ..Counts::default() };
        Event::Usage(Usage { scope: Scope::Whole, counts })
    };
    let finish = |choice| Event::Finish { choice, reason: Finish::Stop };
    let three = || {
        let mut bench = Bench::new(Dialect::OpenaiCompletions);
        bench
            .0
            .requested(Request { answers: 3, prompts: 3, whole: true, ..Request::default() }, Tick(100 * MS));
        bench
    };
    // TensorRT-LLM: one for each prompt, and the client leaves after two.
    let mut cut = three();
    cut.frame(110, &[text(0)]).frame(120, &[finish(0)]).frame(130, &[whole(50)]).frame(140, &[whole(60)]);
    let record = cut.end(Close::ClientGone { whole: false }, 150);
    assert_eq!((record.tokens.output(), record.tokens.output_provenance), (110, Provenance::Running));
    assert_eq!((record.tokens.input(), record.tokens.input_provenance), (10, Provenance::Running));
    // After one, nobody can tell which kind of server it is.
    let mut one = three();
    one.frame(110, &[text(0)]).frame(130, &[whole(50)]);
    let record = one.end(Close::ClientGone { whole: false }, 150);
    assert_eq!((record.tokens.output(), record.tokens.output_provenance), (50, Provenance::Running));
    // vLLM: one for all of them, at the end.
    let mut all = three();
    all.frame(110, &[text(0)]).frame(120, &[finish(0), finish(1), finish(2)]).frame(130, &[whole(90)]);
    let record = all.end(Close::Cut, 150);
    assert_eq!((record.tokens.output(), record.tokens.output_provenance), (90, Provenance::Reported));
}

/// llama.cpp ignores members that are SGLang's, and reports the usage of its one answer.
#[test]
fn ignored_members_of_a_request_change_no_count() {
    let asked = |body: &[u8]| {
        let mut scanner = RequestScanner::new();
        scanner.feed(body);
        let mut meter = Meter::new(Dialect::OpenaiChat, Tick(0), 1000 * MS);
        meter.requested(scanner.end(), Tick(100 * MS));
        meter.answered(200, Body::Frames);
        Bench(meter)
    };
    for junk in ["", r#","text":["a","b"],"sampling_params":{"n":1000000}"#, r#","prompt":["a","b"]"#] {
        let mut bench = asked(format!(r#"{{"messages":[]{junk}}}"#).as_bytes());
        bench
            .frame(110, &[text(0)])
            .frame(120, &[stop(0), usage(Scope::Choice(Some(0)), 915, 1)])
            .frame(121, &[Event::Done]);
        let tokens = bench.end(CLEAN, 130).tokens;
        assert_eq!((tokens.input(), tokens.input_provenance), (915, Provenance::Reported), "{junk}");
        assert_eq!((tokens.output(), tokens.output_provenance), (1, Provenance::Reported), "{junk}");
    }
    // Nor do they hide that a prompt was not counted.
    let mut bench = asked(br#"{"messages":[],"input_ids":[1],"prompt":[1]}"#);
    bench.frame(110, &[text(0)]);
    assert_eq!(bench.end(Close::ClientGone { whole: false }, 130).tokens.input_provenance, Provenance::None);
}

#[test]
fn a_body_that_was_given_up_has_no_count() {
    let mut bench = Bench::new(Dialect::OpenaiChat);
    let running = Usage {
        scope: Scope::Running(0),
        counts: Counts { input: Some(5), output: Some(5), ..Counts::default() },
    };
    bench.frame(110, &[text(0), Event::Usage(running)]);
    bench.0.blinded();
    let record = bench.end(Close::Clean { whole: false }, 150);
    assert_eq!((record.tokens.output(), record.tokens.output_provenance), (0, Provenance::None));
    assert_eq!((record.tokens.input(), record.tokens.input_provenance), (0, Provenance::None));
}

#[test]
fn ping_is_no_chunk() {
    let mut bench = Bench::new(Dialect::OpenaiChat);
    bench.frame(120, &[Event::Ping]).frame(150, &[Event::Role { choice: 0 }]).frame(200, &[text(0)]);
    let record = bench.end(CLEAN, 210);
    assert_eq!(record.timing.first_byte_ns, Some(20 * MS));
    assert_eq!(record.timing.first_chunk_ns, Some(50 * MS));
}

#[test]
fn a_status_of_success_is_between_200_and_299() {
    let mut meter = Bench::new(Dialect::OpenaiChat).0;
    for (status, expected) in
        [(100, false), (199, false), (200, true), (299, true), (300, false), (500, false)]
    {
        meter.answered(status, Body::Frames);
        assert_eq!(meter.is_success(), expected, "{status}");
    }
}
