//! The definitions of a record, on constructed events. End-to-end tests replay recorded streams.

use scan::{
    Count, Counts, Delta, Dialect, Event, Extent, Finish, Request, RequestScanner, Scope, Sink, Usage,
};

use crate::{
    Body, Close, Ending, Identity, Load, LoadSpan, Meter, Provenance, Record, Tick, Timing, TokenType, Weight,
};

pub(crate) const MS: u64 = 1_000_000;

/// An exchange whose request is complete at 100 ms and whose answer comes in frames.
pub(crate) struct Fixture(pub(crate) Meter);

impl Fixture {
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
        self.0.end(identity, close, LoadSpan::single(), Tick(ms * MS))
    }
}

pub(crate) fn text(choice: u32) -> Event {
    Event::Text(Delta { choice, chars: 4, tokens: None })
}

fn ids(choice: u32, tokens: u32) -> Event {
    Event::Text(Delta { choice, chars: 4, tokens: Some(tokens) })
}

pub(crate) fn usage(scope: Scope, input: u64, output: u64) -> Event {
    let counts = Counts::of([(Count::Input, input), (Count::Output, output)]);
    Event::Usage(Usage { scope, counts })
}

pub(crate) fn stop(choice: u32) -> Event {
    Event::Finish { choice, reason: Finish::Stop }
}

pub(crate) const CLEAN: Close = Close::Clean { whole: false };

#[test]
fn a_stream_with_usage_is_complete() {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    fixture
        .frame(150, &[Event::Role { choice: 0 }])
        .frame(200, &[text(0)])
        .frame(210, &[text(0)])
        .frame(230, &[text(0)])
        .frame(231, &[stop(0)])
        .frame(232, &[usage(Scope::Whole, 12, 3)])
        .frame(232, &[Event::Done]);
    let record = fixture.end(CLEAN, 240);

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
    assert_eq!((timing.pace().inter_token.count(), timing.pace().inter_token.sum_ns), (2, 30 * MS));
    assert_eq!(timing.weight, Weight::Exact, "three frames, three tokens: one each");
    assert_eq!(timing.visible_chars_rate, Some(8.0 / 0.030));
    assert_eq!(record.visible_chars, 12);
}

#[test]
fn wall_times_include_the_upload_durations_do_not() {
    let ended = |complete: Option<u64>, first_byte: u64, end: u64| {
        let mut meter = Meter::new(Dialect::OpenaiChat, Tick(50 * MS), 1000 * MS);
        if let Some(at) = complete {
            meter.requested(Request { answers: 1, prompts: 1, ..Request::default() }, Tick(at * MS));
        }
        meter.answered(200, Body::Frames);
        let mut fixture = Fixture(meter);
        fixture.frame(first_byte, &[text(0)]);
        let mut record = fixture.end(Close::ClientGone { whole: false }, end);
        record.identity.started_unix_ns = 7_000 * MS;
        let Timing { upload_ns, duration_ns, first_token_ns, .. } = record.timing;
        assert_eq!(record.ended_unix_ns(), (7_000 + end - 50) * MS, "{complete:?}");
        (record.requested_unix_ns() / MS, upload_ns / MS, duration_ns / MS, first_token_ns.map(|ns| ns / MS))
    };
    assert_eq!(ended(Some(350), 400, 1000), (7_300, 300, 650, Some(50)));
    // The answer begins before the request is complete, or has ended by then.
    assert_eq!(ended(Some(350), 200, 1000), (7_300, 300, 650, Some(0)));
    assert_eq!(ended(Some(1000), 200, 1000), (7_950, 950, 0, Some(0)));
    // The request never became complete: all time is the answer's.
    assert_eq!(ended(None, 200, 1000), (7_000, 0, 950, Some(150)));
}

#[test]
fn merged_tokens_are_spread_over_their_frames() {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    for frame in 0..5 {
        fixture.frame(200 + 40 * frame, &[text(0)]);
    }
    fixture.frame(361, &[stop(0)]).frame(362, &[usage(Scope::Whole, 1, 17)]).frame(362, &[Event::Done]);
    let timing = fixture.end(CLEAN, 362).timing;
    assert_eq!(timing.weight, Weight::Spread);
    assert_eq!((timing.pace().inter_token.count(), timing.pace().inter_token.sum_ns), (16, 160 * MS));
    assert_eq!(timing.pace().chunk_gap.count(), 4);
    assert_eq!(timing.output_rate, Some(100.0));
}

#[test]
fn running_counts_weigh_frames_and_hidden_tokens() {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    fixture
        .frame(200, &[Event::Role { choice: 0 }, usage(Scope::Running(0), 9, 0)])
        .frame(210, &[text(0), usage(Scope::Running(0), 9, 1)])
        .frame(240, &[text(0), usage(Scope::Running(0), 9, 4)])
        .frame(250, &[Event::Empty(Delta::default()), usage(Scope::Running(0), 9, 5)]);
    let record = fixture.end(Close::ClientGone { whole: false }, 300);
    assert_eq!(record.ending, Ending::ClientAbort);
    assert_eq!(record.tokens.output_provenance, Provenance::Running);
    assert_eq!((record.tokens.input(), record.tokens.output()), (9, 5));
    assert_eq!(record.timing.weight, Weight::Exact);
    let gaps = record.timing.pace().inter_token;
    assert_eq!((gaps.count(), gaps.sum_ns), (4, 40 * MS));
    assert_eq!(record.timing.pace().chunk_gap.count(), 2);
}

#[test]
fn first_count_at_the_finish_weighs_no_frame() {
    let mut fixture = Fixture::new(Dialect::OpenaiCompletions);
    for frame in 0..3 {
        fixture.frame(200 + 10 * frame, &[text(0)]);
    }
    fixture.frame(230, &[stop(0), usage(Scope::Choice(Some(0)), 5, 3)]).frame(231, &[Event::Done]);
    let record = fixture.end(CLEAN, 231);
    assert_eq!((record.tokens.output(), record.tokens.output_provenance), (3, Provenance::Reported));
    assert_eq!(record.timing.weight, Weight::Exact, "three frames, three tokens");
    let gaps = record.timing.pace().inter_token;
    assert_eq!((gaps.count(), gaps.sum_ns), (2, 20 * MS));
    assert_eq!(record.timing.generation_ns, 20 * MS, "the finish is no token");
}

#[test]
fn an_empty_delta_with_ids_starts_the_tokens() {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    fixture
        .frame(120, &[Event::Empty(Delta { choice: 0, chars: 0, tokens: Some(1) })])
        .frame(140, &[ids(0, 2)]);
    let record = fixture.end(Close::Cut, 150);
    assert_eq!(record.ending, Ending::UpstreamCut);
    assert_eq!(record.timing.first_token_ns, Some(20 * MS));
    assert_eq!(record.timing.first_visible_ns, Some(40 * MS));
    assert_eq!((record.tokens.output(), record.tokens.output_provenance), (3, Provenance::Ids));
}

#[test]
fn choice_usages_are_reported_once_all_arrived() {
    let both = [Some(2), None];
    for usages in both {
        let mut fixture = Fixture::new(Dialect::OpenaiChat);
        fixture.0.requested(Request { answers: 2, prompts: 1, ..Request::default() }, Tick(100 * MS));
        fixture.frame(200, &[text(0)]).frame(200, &[text(1)]).frame(210, &[stop(0)]);
        fixture.frame(211, &[usage(Scope::Choice(None), 19, 24)]).frame(212, &[stop(1)]);
        if usages.is_some() {
            fixture.frame(213, &[usage(Scope::Choice(None), 19, 20)]);
        }
        fixture.frame(214, &[Event::Done]);
        let tokens = fixture.end(CLEAN, 220).tokens;
        assert_eq!(tokens.input(), 19, "one prompt, counted once");
        match usages {
            Some(_) => assert_eq!((tokens.output(), tokens.output_provenance), (44, Provenance::Reported)),
            None => assert_eq!((tokens.output(), tokens.output_provenance), (24, Provenance::Running)),
        }
    }
}

#[test]
fn a_zero_usage_is_no_count() {
    let mut fixture = Fixture::new(Dialect::OpenaiCompletions);
    for ms in [200, 210, 220] {
        fixture.frame(ms, &[text(0), usage(Scope::Running(0), 0, 0)]);
    }
    fixture.frame(230, &[stop(0), usage(Scope::Choice(Some(0)), 0, 0)]).frame(231, &[Event::Done]);
    let record = fixture.end(CLEAN, 231);
    assert_eq!((record.tokens.output(), record.tokens.output_provenance), (3, Provenance::Frames));
    assert_eq!(record.tokens.input_provenance, Provenance::None);
}

#[test]
fn cached_and_reasoning_tokens_are_counted_once() {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    let answer = [(Count::Output, 50), (Count::OutputReasoning, 30)];
    let counts = Counts::of(answer).with(Count::Input, 100).with(Count::InputCached, 80);
    fixture.frame(200, &[Event::Reasoning(Delta { choice: 0, chars: 3, tokens: None })]);
    fixture.frame(210, &[text(0)]).frame(220, &[stop(0)]);
    fixture.frame(230, &[Event::Usage(Usage { scope: Scope::Whole, counts })]).frame(230, &[Event::Done]);
    let record = fixture.end(CLEAN, 231);
    assert_eq!(record.tokens.of(TokenType::Input), 20);
    assert_eq!(record.tokens.of(TokenType::InputCached), 80);
    assert_eq!(record.tokens.of(TokenType::Output), 20);
    assert_eq!(record.tokens.of(TokenType::OutputReasoning), 30);
    assert_eq!(record.timing.first_token_ns, Some(100 * MS));
    assert_eq!(record.timing.first_visible_ns, Some(110 * MS));
    assert_eq!(record.timing.input_rate, Some(200.0), "(100 − 80) ÷ 0.1 s");
}

#[test]
fn choices_are_timed_separately() {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    fixture.0.requested(Request { answers: 2, prompts: 1, ..Request::default() }, Tick(100 * MS));
    for step in 0..3 {
        fixture.frame(200 + 10 * step, &[text(0)]).frame(205 + 10 * step, &[text(1)]);
    }
    fixture.frame(230, &[stop(0)]).frame(230, &[stop(1)]);
    fixture.frame(230, &[usage(Scope::Whole, 5, 6)]).frame(230, &[Event::Done]);
    let record = fixture.end(CLEAN, 230);
    assert_eq!(record.choices, 2);
    let gaps = record.timing.pace().inter_token;
    assert_eq!((gaps.count(), gaps.sum_ns), (4, 40 * MS));
    assert_eq!(record.timing.output_rate, Some(100.0), "the rate of one reader");
}

#[test]
fn finishes_and_gaps_are_kept_per_choice() {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    let ends = |choice, reason| Event::Finish { choice, reason };
    fixture.frame(200, &[text(0)]).frame(230, &[text(1)]).frame(260, &[text(0)]).frame(270, &[text(1)]);
    // An untimed choice has no gaps.
    fixture.frame(270, &[text(9)]).frame(900, &[text(9)]);
    fixture.frame(901, &[ends(0, Finish::Stop), ends(2, Finish::ToolCalls), ends(9, Finish::Abort)]);
    fixture.frame(902, &[ends(0, Finish::Length)]);
    let record = fixture.end(Close::Cut, 903);
    let none = None;
    let expected = [Some(Finish::Length), none, Some(Finish::ToolCalls), none, none, none, none, none];
    assert_eq!(record.finishes, expected, "the last reason of each");
    assert_eq!(record.timing.longest_gap_ns, 60 * MS);

    let mut single = Fixture::new(Dialect::OpenaiChat);
    single.frame(200, &[text(0)]);
    assert_eq!(single.end(Close::Cut, 900).timing.longest_gap_ns, 0, "one token has no gap");
}

#[test]
fn the_longest_token_gap_is_an_observed_one() {
    // Ten tokens per frame, one second between frames; then one token after 200 ms.
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    for frame in 0..4 {
        fixture.frame(200 + 1000 * frame, &[ids(0, 10)]);
    }
    fixture.frame(3400, &[ids(0, 1)]);
    let timing = fixture.end(Close::Cut, 3500).timing;
    assert_eq!(timing.weight, Weight::Exact);
    assert_eq!((timing.longest_gap_ns, timing.longest_token_gap_ns), (1000 * MS, 200 * MS));

    // Where the total is spread over the frames, the longest gap is unknown.
    let mut spread = Fixture::new(Dialect::OpenaiChat);
    spread.frame(200, &[text(0)]).frame(1200, &[text(0)]).frame(1201, &[usage(Scope::Whole, 1, 20)]);
    let timing = spread.end(Close::Cut, 1300).timing;
    assert_eq!(timing.weight, Weight::Spread);
    assert_eq!((timing.longest_gap_ns, timing.longest_token_gap_ns), (1000 * MS, 0));
}

#[test]
fn choices_beyond_the_timed_ones_are_counted() {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    for choice in 0..12 {
        fixture.frame(200, &[text(choice)]).frame(210, &[text(choice)]);
    }
    let record = fixture.end(Close::Cut, 220);
    assert_eq!((record.choices, record.tokens.output()), (12, 24));
    assert_eq!(record.timing.pace().chunk_gap.count(), 8);
}

#[test]
fn output_rate_is_independent_of_choices() {
    for choices in [1, 8, 16] {
        let mut fixture = Fixture::new(Dialect::OpenaiChat);
        for token in 0..11 {
            let deltas: Vec<_> = (0..choices).map(text).collect();
            fixture.frame(200 + 100 * token, &deltas);
        }
        let record = fixture.end(Close::Cut, 1300);
        assert_eq!(record.tokens.output(), 11 * u64::from(choices));
        assert_eq!(record.timing.output_rate, Some(10.0), "{choices} choices");
    }
}

#[test]
fn running_counts_of_untimed_choices_are_kept() {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    for choice in 0..10 {
        fixture.frame(200, &[text(choice), usage(Scope::Running(choice), 3, 100)]);
    }
    let record = fixture.end(Close::ClientGone { whole: false }, 210);
    assert_eq!((record.tokens.output(), record.tokens.output_provenance), (1000, Provenance::Running));
}

#[test]
fn a_repeated_final_count_is_added_once() {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    fixture.frame(200, &[text(0)]).frame(210, &[stop(0), usage(Scope::Choice(Some(0)), 3, 5)]);
    fixture.frame(211, &[usage(Scope::Choice(Some(0)), 3, 5)]).frame(212, &[Event::Done]);
    let record = fixture.end(CLEAN, 212);
    assert_eq!((record.tokens.output(), record.tokens.output_provenance), (5, Provenance::Reported));
}

#[test]
fn a_count_after_the_finish_is_final() {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    fixture.frame(200, &[text(0)]).frame(210, &[stop(0)]).frame(211, &[usage(Scope::Running(0), 3, 5)]);
    fixture.frame(212, &[Event::Done]);
    let tokens = fixture.end(CLEAN, 212).tokens;
    assert_eq!((tokens.output(), tokens.output_provenance), (5, Provenance::Reported));
}

#[test]
fn timings_at_the_finish_are_no_usage() {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    fixture.frame(200, &[text(0)]).frame(210, &[stop(0), usage(Scope::Running(0), 3, 5)]);
    fixture.frame(212, &[Event::Done]);
    let tokens = fixture.end(CLEAN, 212).tokens;
    assert_eq!((tokens.output(), tokens.output_provenance), (5, Provenance::Running));
}

#[test]
fn usages_per_prompt_are_summed() {
    let mut fixture = Fixture::new(Dialect::OpenaiCompletions);
    fixture.0.requested(Request { answers: 2, prompts: 2, ..Request::default() }, Tick(100 * MS));
    fixture.frame(200, &[text(0)]).frame(200, &[text(1)]).frame(210, &[stop(0)]).frame(210, &[stop(1)]);
    fixture.frame(211, &[usage(Scope::Whole, 7, 50)]).frame(212, &[usage(Scope::Whole, 9, 60)]);
    let tokens = fixture.frame(213, &[Event::Done]).0.live_output();
    assert_eq!(tokens, 110);
    let tokens = fixture.end(CLEAN, 213).tokens;
    assert_eq!((tokens.input(), tokens.output()), (16, 110));
}

#[test]
fn an_error_is_never_billed() {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    fixture.0.answered(500, Body::Whole);
    fixture.frame(200, &[Event::Error, usage(Scope::Whole, 100, 50)]);
    let record = fixture.end(Close::Clean { whole: true }, 210);
    assert_eq!((record.ending, record.tokens), (Ending::ErrorStatus, crate::Tokens::NONE));
}

#[test]
fn an_implausible_count_is_rejected() {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    fixture.frame(200, &[text(0), usage(Scope::Running(0), 3, 1)]);
    for choice in 0..200 {
        fixture.frame(210, &[stop(choice), usage(Scope::Choice(Some(choice)), 3, 1 << 53)]);
    }
    let record = fixture.end(Close::Cut, 220);
    assert_eq!((record.tokens.output(), record.usage_rejected), (1, 200));
}

#[test]
fn tokens_without_text_are_output() {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    fixture.frame(200, &[Event::Empty(Delta { choice: 0, chars: 0, tokens: Some(40) })]);
    fixture.frame(210, &[stop(0)]).frame(211, &[usage(Scope::Whole, 3, 41)]).frame(211, &[Event::Done]);
    let record = fixture.end(CLEAN, 211);
    assert_eq!((record.ending, record.tokens.output()), (Ending::Complete, 41));
}

#[test]
fn log_probabilities_of_an_echo_are_no_output() {
    let mut fixture = Fixture::new(Dialect::OpenaiCompletions);
    fixture.0.requested(Request { answers: 1, prompts: 1, echo: true, ..Request::default() }, Tick(100 * MS));
    fixture.frame(200, &[ids(0, 30)]).frame(210, &[ids(0, 1)]).frame(220, &[ids(0, 1)]);
    let tokens = fixture.end(Close::Cut, 230).tokens;
    assert_eq!((tokens.output(), tokens.output_provenance), (3, Provenance::Frames));
}

#[test]
fn positions_are_spread_with_the_tokens() {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    for frame in 0..65 {
        fixture.frame(200 + 40 * frame, &[text(0)]);
    }
    fixture.frame(2761, &[stop(0)]).frame(2762, &[usage(Scope::Whole, 3, 260)]).frame(2762, &[Event::Done]);
    let position = fixture.end(CLEAN, 2762).timing.pace().position;
    assert_eq!(position.map(|span| span.tokens), [60, 192, 4, 0, 0, 0]);
    assert_eq!(position[1].ns / position[1].tokens, 10 * MS);
}

#[test]
fn a_slow_client_is_no_stall() {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    fixture.frame(200, &[text(0)]).frame(900, &[Event::Ping]).frame(1700, &[text(0)]);
    fixture.0.add_client_wait(1900 * MS);
    fixture.frame(3700, &[text(0)]).frame(3701, &[stop(0)]).frame(3701, &[Event::Done]);
    let timing = fixture.end(CLEAN, 9000).timing;
    assert_eq!((timing.stalls, timing.stalled_ns), (1, 1500 * MS));
    assert_eq!(timing.client_wait_ns, 1900 * MS);

    let mut hung = Fixture::new(Dialect::OpenaiChat);
    hung.frame(200, &[text(0)]).frame(5000, &[Event::Ping]);
    let timing = hung.end(Close::ClientGone { whole: false }, 9200).timing;
    assert_eq!((timing.stalls, timing.stalled_ns), (1, 9000 * MS), "pings are no tokens");
}

#[test]
fn events_and_close_determine_the_ending() {
    let ended = |events: &[Event], close| {
        let mut fixture = Fixture::new(Dialect::OpenaiChat);
        for &event in events {
            fixture.frame(200, &[event]);
        }
        fixture.end(close, 300).ending
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
    // Two answers were requested, one arrived, and there is no end mark.
    let mut half = Fixture::new(Dialect::OpenaiChat);
    half.0.requested(Request { answers: 2, prompts: 1, ..Request::default() }, Tick(100 * MS));
    half.frame(200, &[text(0)]).frame(210, &[stop(0)]);
    assert_eq!(half.end(CLEAN, 300).ending, Ending::UpstreamCut);
    // llama.cpp's own endpoint has no end mark and may give fewer answers than requested.
    let mut native = Fixture::new(Dialect::LlamacppCompletion);
    native.0.requested(Request { answers: 2, prompts: 1, ..Request::default() }, Tick(100 * MS));
    native.frame(200, &[text(0)]).frame(210, &[stop(0)]);
    assert_eq!(native.end(CLEAN, 300).ending, Ending::Complete);

    let mut refused = Fixture::new(Dialect::OpenaiChat);
    refused.0.answered(429, Body::Whole);
    assert_eq!(refused.end(Close::ClientGone { whole: false }, 200).ending, Ending::ErrorStatus);
}

#[test]
fn an_unstreamed_answer_has_no_first_token() {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    fixture.0.answered(200, Body::Whole);
    fixture.frame(500, &[text(0), stop(0), usage(Scope::Choice(Some(0)), 7, 9)]);
    let record = fixture.end(Close::Clean { whole: true }, 500);
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
fn positions_divide_tokens_and_time() {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    for token in 0..300 {
        fixture.frame(200 + token, &[ids(0, 1)]);
    }
    let timing = fixture.end(Close::Cut, 600).timing;
    assert_eq!(timing.pace().position.map(|span| span.tokens), [63, 192, 44, 0, 0, 0]);
    assert_eq!(timing.pace().position[1].ns, 192 * MS);
}

#[test]
fn meter_state_stays_below_its_limit() {
    let size = size_of::<Meter>();
    println!("{size} bytes");
    assert!(size <= 1808, "{size} bytes");
}

#[test]
fn usages_of_some_prompts_are_running() {
    let whole = |output| {
        let counts = Counts::of([(Count::Input, 5), (Count::Output, output)]);
        Event::Usage(Usage { scope: Scope::Whole, counts })
    };
    let finish = |choice| Event::Finish { choice, reason: Finish::Stop };
    let three = || {
        let mut fixture = Fixture::new(Dialect::OpenaiCompletions);
        fixture
            .0
            .requested(Request { answers: 3, prompts: 3, whole: true, ..Request::default() }, Tick(100 * MS));
        fixture
    };
    // TensorRT-LLM sends one for each prompt, and the client leaves after two.
    let mut cut = three();
    cut.frame(110, &[text(0)]).frame(120, &[finish(0)]).frame(130, &[whole(50)]).frame(140, &[whole(60)]);
    let record = cut.end(Close::ClientGone { whole: false }, 150);
    assert_eq!((record.tokens.output(), record.tokens.output_provenance), (110, Provenance::Running));
    assert_eq!((record.tokens.input(), record.tokens.input_provenance), (10, Provenance::Running));
    // After one usage, the kind of server is unknown.
    let mut one = three();
    one.frame(110, &[text(0)]).frame(130, &[whole(50)]);
    let record = one.end(Close::ClientGone { whole: false }, 150);
    assert_eq!((record.tokens.output(), record.tokens.output_provenance), (50, Provenance::Running));
    // vLLM sends one for all prompts, at the end.
    let mut all = three();
    all.frame(110, &[text(0)]).frame(120, &[finish(0), finish(1), finish(2)]).frame(130, &[whole(90)]);
    let record = all.end(Close::Cut, 150);
    assert_eq!((record.tokens.output(), record.tokens.output_provenance), (90, Provenance::Reported));
}

/// llama.cpp ignores the members of SGLang, and reports the usage of its one answer.
#[test]
fn ignored_request_members_change_no_count() {
    let requested = |body: &[u8]| {
        let mut scanner = RequestScanner::new();
        scanner.feed(body);
        let mut meter = Meter::new(Dialect::OpenaiChat, Tick(0), 1000 * MS);
        meter.requested(scanner.end(), Tick(100 * MS));
        meter.answered(200, Body::Frames);
        Fixture(meter)
    };
    for junk in ["", r#","text":["a","b"],"sampling_params":{"n":1000000}"#, r#","prompt":["a","b"]"#] {
        let mut fixture = requested(format!(r#"{{"messages":[]{junk}}}"#).as_bytes());
        fixture
            .frame(110, &[text(0)])
            .frame(120, &[stop(0), usage(Scope::Choice(Some(0)), 915, 1)])
            .frame(121, &[Event::Done]);
        let tokens = fixture.end(CLEAN, 130).tokens;
        assert_eq!((tokens.input(), tokens.input_provenance), (915, Provenance::Reported), "{junk}");
        assert_eq!((tokens.output(), tokens.output_provenance), (1, Provenance::Reported), "{junk}");
    }
    // An uncounted prompt stays uncounted.
    let mut fixture = requested(br#"{"messages":[],"input_ids":[1],"prompt":[1]}"#);
    fixture.frame(110, &[text(0)]);
    assert_eq!(
        fixture.end(Close::ClientGone { whole: false }, 130).tokens.input_provenance,
        Provenance::None
    );
}

#[test]
fn an_unreadable_body_has_no_count() {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    let running =
        Usage { scope: Scope::Running(0), counts: Counts::of([(Count::Input, 5), (Count::Output, 5)]) };
    fixture.frame(110, &[text(0), Event::Usage(running)]);
    fixture.0.mark_unreadable();
    let record = fixture.end(Close::Clean { whole: false }, 150);
    assert_eq!((record.tokens.output(), record.tokens.output_provenance), (0, Provenance::None));
    assert_eq!((record.tokens.input(), record.tokens.input_provenance), (0, Provenance::None));
}

#[test]
fn ping_is_no_chunk() {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    fixture.frame(120, &[Event::Ping]).frame(150, &[Event::Role { choice: 0 }]).frame(200, &[text(0)]);
    let record = fixture.end(CLEAN, 210);
    assert_eq!(record.timing.first_byte_ns, Some(20 * MS));
    assert_eq!(record.timing.first_chunk_ns, Some(50 * MS));
}

#[test]
fn success_is_a_status_from_200_to_299() {
    let mut meter = Fixture::new(Dialect::OpenaiChat).0;
    for (status, expected) in
        [(100, false), (199, false), (200, true), (299, true), (300, false), (500, false)]
    {
        meter.answered(status, Body::Frames);
        assert_eq!(meter.is_success(), expected, "{status}");
    }
}
