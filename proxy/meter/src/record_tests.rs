//! Records: recounting by a local tokenizer, stalls, errors and server reports.

use scan::{Count, Counts, Delta, Dialect, Event, Request, Scope, ServerReport, Usage};

use crate::exchange::COUNTED_CHOICES;
use crate::record::is_processed;
use crate::tests::{Fixture, MS, stop, text, usage};
use crate::{Body, Close, ErrorType, Provenance, Record, Tick, TokenType};

/// The record of an exchange that was requested at 100 ms and read these events, each at its millisecond.
fn record(body: Body, events: &[(u64, Event)], end_ms: u64) -> Record {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    fixture.0.answered(200, body);
    for &(ms, event) in events {
        fixture.frame(ms, &[event]);
    }
    fixture.end(Close::Cut, end_ms)
}

fn streamed(events: &[(u64, Event)], end_ms: u64) -> Record {
    record(Body::Frames, events, end_ms)
}

/// The speeds: timed tokens, tokens per second, nanoseconds per token.
fn speeds(record: &Record) -> (u64, Option<f64>, Option<u64>) {
    (record.timing.generation_tokens, record.timing.output_rate, record.timing.per_output_token_ns)
}

#[test]
fn tokenizer_count_replaces_the_estimate() {
    let thought = Event::Reasoning(Delta { choice: 0, chars: 4, tokens: None });
    let mut counted = streamed(&[(200, text(0)), (210, thought), (230, text(0))], 240);
    assert_eq!(speeds(&counted), (2, Some(2.0 / 0.030), Some(20 * MS)));
    counted.recount(11);
    assert_eq!(speeds(&counted), (10, Some(10.0 * 1e9 / 30e6), Some(4 * MS)), "(140 − 100) ÷ (11 − 1)");
    assert_eq!(counted.tokens.output_provenance, Provenance::Tokenized);
    assert_eq!((counted.tokens.output(), counted.tokens.of(TokenType::OutputReasoning)), (11, 0));
}

#[test]
fn recount_keeps_the_prompt() {
    let mut counted = streamed(&[(200, text(0)), (210, text(0))], 240);
    counted.tokens.input_provenance = Provenance::Ids;
    counted.tokens.by_type[TokenType::Input as usize] = 7;
    counted.recount(2);
    assert_eq!((counted.tokens.input(), counted.tokens.input_provenance), (7, Provenance::Ids));
    assert_eq!(speeds(&counted), (1, Some(1.0 / 0.010), Some(40 * MS)));
}

#[test]
fn one_token_has_no_speed() {
    let mut counted = streamed(&[(200, text(0)), (210, text(0))], 240);
    let before = speeds(&counted);
    counted.recount(1);
    assert_eq!(speeds(&counted), before);
    let mut single = streamed(&[(200, text(0))], 240);
    single.recount(5);
    assert_eq!(speeds(&single), (0, None, None), "a single frame has no time between frames");
}

#[test]
fn ungranted_stream_request_is_recorded() {
    let asked_stream = |stream: Option<bool>| {
        let mut fixture = Fixture::new(Dialect::OpenaiChat);
        fixture.0.requested(Request { answers: 2, stream, ..Request::default() }, Tick(100 * MS));
        fixture.0.answered(200, Body::Whole);
        assert_eq!(fixture.0.request().answers, 2);
        let record = fixture.end(Close::Cut, 200);
        (record.asked_stream, record.streamed)
    };
    assert_eq!(asked_stream(Some(true)), (true, false));
    assert_eq!(asked_stream(Some(false)), (false, false));
    assert_eq!(asked_stream(None), (false, false));
}

#[test]
fn choice_beyond_the_limit_has_no_count() {
    let counted = |choice: u32| {
        let counts = Counts::of([(Count::Output, 7)]);
        let usage = Event::Usage(Usage { scope: Scope::Running(choice), counts });
        streamed(&[(200, usage)], 210).tokens.output()
    };
    assert_eq!(counted(COUNTED_CHOICES as u32 - 1), 7);
    assert_eq!(counted(COUNTED_CHOICES as u32), 0);
}

fn stalls(record: &Record) -> (u32, u64) {
    (record.timing.stalls, record.timing.stalled_ns / MS)
}

#[test]
fn cut_before_the_first_byte_is_a_reset() {
    assert_eq!(streamed(&[], 300).error_type(), Some(ErrorType::UpstreamReset));
    assert_eq!(streamed(&[(200, text(0))], 300).error_type(), Some(ErrorType::StreamTruncated));
}

#[test]
fn silence_beyond_the_limit_is_a_stall() {
    assert_eq!(stalls(&streamed(&[(200, text(0))], 1200)), (0, 0), "exactly the limit is no stall");
    assert_eq!(stalls(&streamed(&[(200, text(0))], 1201)), (1, 1001));
    assert_eq!(stalls(&streamed(&[(200, text(0)), (1200, text(0))], 1300)), (0, 0));
    assert_eq!(stalls(&streamed(&[(200, text(0)), (1201, text(0))], 1300)), (1, 1001));
    assert_eq!(
        stalls(&streamed(&[(200, text(0)), (1700, text(0)), (3000, text(0))], 5000)),
        (3, 1500 + 1300 + 2000)
    );
}

#[test]
fn finished_answer_does_not_stall() {
    assert_eq!(stalls(&streamed(&[(200, text(0)), (210, stop(0))], 9000)), (0, 0));
    assert_eq!(stalls(&streamed(&[(200, text(0)), (210, Event::Done)], 9000)), (0, 0));
    assert_eq!(stalls(&record(Body::Whole, &[(200, text(0))], 9000)), (0, 0));
    assert_eq!(stalls(&streamed(&[(200, Event::Role { choice: 0 })], 9000)), (0, 0), "nothing has begun");
    assert_eq!(stalls(&streamed(&[(200, text(0)), (200, text(1)), (210, stop(0))], 9000)), (1, 8800));
}

#[test]
fn client_wait_is_no_stall() {
    let mut fixture = Fixture::new(Dialect::OpenaiChat);
    fixture.0.add_client_wait(500 * MS);
    fixture.frame(100, &[text(0)]);
    fixture.0.add_client_wait(700 * MS);
    let ended = fixture.end(Close::ClientGone { whole: false }, 2000);
    assert_eq!(stalls(&ended), (1, 1200), "1900 ms less the 700 since that token");
    assert_eq!(ended.timing.client_wait_ns, 1200 * MS);
}

#[test]
fn last_report_of_each_time_counts() {
    let first = ServerReport { queue_ns: Some(1), prefill_ns: Some(2), ..ServerReport::default() };
    let last = ServerReport { prefill_ns: Some(3), decode_ns: Some(4), ..ServerReport::default() };
    let reported = streamed(&[(200, Event::Server(first)), (210, Event::Server(last))], 220).timing.server();
    let expected = ServerReport {
        queue_ns: Some(1),
        prefill_ns: Some(3),
        decode_ns: Some(4),
        ..ServerReport::default()
    };
    assert_eq!(reported, expected);
}

#[test]
fn drafts_of_several_choices_are_not_reported() {
    let drafts = ServerReport {
        queue_ns: Some(1),
        draft_tokens: Some(8),
        accepted_draft_tokens: Some(5),
        ..ServerReport::default()
    };
    let reported = |choices: &[u32]| {
        let events: Vec<_> = choices.iter().map(|&choice| (200, text(choice))).collect();
        streamed(&[&events[..], &[(210, Event::Server(drafts))]].concat(), 220).timing.server()
    };
    assert_eq!(reported(&[]), drafts, "a server may report before any text");
    assert_eq!(reported(&[0]), drafts);
    let times = ServerReport { queue_ns: Some(1), ..ServerReport::default() };
    assert_eq!(reported(&[0, 1]), times, "each choice has drafts of its own");
}

#[test]
fn sent_and_accepted_requests_are_processed() {
    for (status, attempts, expected) in [
        (0, 0, false),
        (200, 0, false),
        (0, 1, true),
        (200, 1, true),
        (399, 2, true),
        (400, 1, false),
        (503, 2, false),
    ] {
        assert_eq!(is_processed(status, attempts), expected, "{status} after {attempts}");
    }
}

#[test]
fn a_rate_needs_an_amount_and_a_time() {
    // The last frame arrives with the first: the time is zero.
    assert_eq!(speeds(&streamed(&[(200, text(0)), (200, text(0))], 240)).1, None);
    // A prompt of zero tokens has a time but no rate.
    let nothing = usage(Scope::Whole, 0, 3);
    assert_eq!(streamed(&[(200, text(0)), (210, nothing)], 240).timing.input_rate, None);
}
