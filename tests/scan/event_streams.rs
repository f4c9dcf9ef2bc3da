//! AWS event streams: each message is read as a line of NDJSON with the same payload is, wherever the bytes are cut.

use harness::dice::Dice;
use harness::event_stream::{message, wrapped};
use harness::{Seen, SinkCall, cuts, maker};
use proptest::prelude::*;
use scan::{Count, Counts, Dialect, Event, Finish, Framing, Scope, Tail, Usage};

const CONVERSE: [(&str, &str); 6] = [
    ("messageStart", r#"{"p":"abcd","role":"assistant"}"#),
    ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"Hello"},"p":"abc"}"#),
    ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"Hm"}}}"#),
    ("contentBlockStop", r#"{"contentBlockIndex":0,"p":"ab"}"#),
    ("messageStop", r#"{"p":"a","stopReason":"end_turn"}"#),
    (
        "metadata",
        r#"{"metrics":{"latencyMs":9},"serviceTier":{"type":"flex"},"usage":{"cacheReadInputTokens":6,"cacheWriteInputTokens":1,"inputTokens":20,"outputTokens":31,"totalTokens":58}}"#,
    ),
];

/// Reads a body whole, in steps and cut at every byte.
fn read(dialect: Dialect, body: &[u8]) -> Seen {
    cuts::difference(dialect, Framing::EventStream, body, 0..=body.len())
        .unwrap_or_else(|why| panic!("{why}"))
}

fn lines<'a>(dialect: Dialect, payloads: impl IntoIterator<Item = &'a [u8]>) -> Seen {
    let body: Vec<u8> = payloads.into_iter().flat_map(|payload| [payload, b"\n"].concat()).collect();
    cuts::in_steps(dialect, Framing::Ndjson, &body, usize::MAX)
}

#[test]
fn converse_stream_has_its_events() {
    let body: Vec<u8> =
        CONVERSE.iter().flat_map(|(name, event)| message(name, false, event.as_bytes())).collect();
    let seen = read(Dialect::BedrockConverse, &body);
    assert_eq!(
        seen.calls,
        lines(Dialect::BedrockConverse, CONVERSE.map(|(_, event)| event.as_bytes())).calls
    );
    let counts = Counts::of([
        (Count::Input, 27),
        (Count::InputCached, 6),
        (Count::InputCacheWrite, 1),
        (Count::Output, 31),
        (Count::Total, 58),
    ]);
    let events = seen.events();
    assert!(matches!(events[1], Event::Text(delta) if delta.chars == 5), "{events:?}");
    assert!(matches!(events[2], Event::Reasoning(delta) if delta.chars == 2), "{events:?}");
    assert!(events.contains(&Event::Finish { choice: 0, reason: Finish::Stop }), "{events:?}");
    assert_eq!(events.last(), Some(&Event::Usage(Usage { scope: Scope::Choice(Some(0)), counts })));
    assert_eq!((&*seen.tier, seen.tail), ("flex", Some(Tail { torn: false, whole: false })));
}

#[test]
fn wrapped_payloads_are_read_as_their_own() {
    let payloads = [
        r#"{"type":"message_start","message":{"id":"a","model":"m","usage":{"input_tokens":20,"output_tokens":1}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Grüezi, the text is long enough for several pieces of decoded bytes: abcdefghijklmnopqrstuvwxyz, abcdefghijklmnopqrstuvwxyz, abcdefghijklmnopqrstuvwxyz"}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":31}}"#,
        r#"{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":20,"outputTokenCount":31}}"#,
    ];
    let body: Vec<u8> = payloads.iter().flat_map(|payload| wrapped(payload.as_bytes())).collect();
    let seen = read(Dialect::Anthropic, &body);
    let same = lines(Dialect::Anthropic, payloads.map(str::as_bytes));
    assert_eq!((&seen.calls, &seen.model, &seen.id), (&same.calls, &same.model, &same.id));
    assert_eq!(seen.events().last(), Some(&Event::Done));
}

#[test]
fn exception_is_an_error() {
    for dialect in [Dialect::BedrockConverse, Dialect::Anthropic, Dialect::Unknown] {
        let seen = read(dialect, &message("throttlingException", true, br#"{"message":"Too many tokens"}"#));
        assert_eq!(seen.events()[0], Event::Error, "{dialect:?}");
    }
}

#[test]
fn broken_and_torn_streams_end_torn() {
    let whole = message("contentBlockDelta", false, CONVERSE[1].1.as_bytes());
    let calls = read(Dialect::BedrockConverse, &whole).calls;
    let torn = Some(Tail { torn: true, whole: false });
    for cut in 1..whole.len() {
        let seen = read(Dialect::BedrockConverse, &whole[..cut]);
        assert_eq!(seen.tail, torn, "cut at {cut}");
    }
    // Lengths that contradict each other, and a message above the maximum: nothing after it is read.
    for (total, headers) in [(15_u32, 0_u32), (40, 30), (u32::MAX, 4), (33 << 20, 4), (0, u32::MAX)] {
        let broken = [&total.to_be_bytes()[..], &headers.to_be_bytes(), &[0; 4], &whole].concat();
        let seen = read(Dialect::BedrockConverse, &[&whole[..], &broken].concat());
        assert_eq!((&seen.calls[..calls.len()], seen.tail), (&calls[..], torn), "{total} {headers}");
        assert!(
            !seen.calls[calls.len()..].iter().any(|call| matches!(call, SinkCall::Event(Event::Text(_))))
        );
    }
}

#[test]
fn odd_payloads_are_read_like_lines() {
    for payload in
        ["{}", "{\"bytes\":\"", "{\"bytes\":7}", "{\"by", "[1]", "5", "{\"bytes\":\"\",\"role\":\"a\"}"]
    {
        let seen = read(Dialect::BedrockConverse, &message("x", false, payload.as_bytes()));
        assert_eq!(
            seen.calls.iter().filter(|call| matches!(call, SinkCall::Frame(_))).count(),
            1,
            "{payload}"
        );
    }
    // Base64 with padding inside, of other letters, and without an end.
    for payload in ["{\"bytes\":\"e30=e30=\"}", "{\"bytes\":\"e3\\u0030\"}", "{\"bytes\":\"eyJyb2xl"] {
        read(Dialect::BedrockConverse, &message("chunk", false, payload.as_bytes()));
    }
}

proptest! {
    #![proptest_config(chance::cases(300))]

    /// Generated frames of every dialect, wrapped or not, give the events of lines, in any slices.
    #[test]
    fn messages_are_read_like_lines(entropy in proptest::collection::vec(any::<u8>(), 0..600), wraps in any::<bool>()) {
        let mut dice = Dice::new(&entropy);
        let dialect = *dice.of(&Dialect::ALL);
        let frames: Vec<Vec<u8>> =
            (0..4).map(|_| maker::body_of(&mut dice, dialect, Framing::Messages).body).collect();
        // Line ends and white space at the ends belong to lines, and a line that is no object to no message.
        let frames: Vec<_> =
            frames.into_iter().filter(|frame| frame.starts_with(b"{") && !frame.contains(&b'\n')).collect();
        let body: Vec<u8> =
            frames.iter().flat_map(|frame| if wraps { wrapped(frame) } else { message("e", false, frame) }).collect();
        let same = lines(dialect, frames.iter().map(|frame| &frame[..]));
        for slices in [dice.slices(&body), vec![&body[..]], body.chunks(1).collect()] {
            let seen = cuts::scan_slices(dialect, Framing::EventStream, slices.into_iter());
            prop_assert_eq!(&seen.calls, &same.calls);
            prop_assert_eq!((&seen.model, &seen.id, &seen.tier), (&same.model, &same.id, &same.tier));
        }
    }
}
