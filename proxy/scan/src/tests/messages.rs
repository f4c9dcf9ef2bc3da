//! Messages of a WebSocket: each is one value with an envelope, and forgets the one before it.

use super::{Seen, short};
use crate::{Dialect, Envelope, Framing, MessageKind, Names, Scanner};

/// Reads messages, each in steps of this many bytes, and returns the envelope of the last, if that was read.
fn read(dialect: Dialect, messages: &[&str], step: usize) -> (Scanner, Seen, bool) {
    let mut scanner = Scanner::new(dialect, Framing::Messages);
    let (mut seen, mut is_read) = (Seen::default(), false);
    for message in messages {
        seen = Seen::default();
        scanner.begin_message();
        message.as_bytes().chunks(step).for_each(|bytes| scanner.feed(bytes, &mut seen));
        is_read = scanner.end_message(&mut seen);
    }
    (scanner, seen, is_read)
}

fn envelope(message: &str) -> Envelope {
    let mut envelopes = [1, 3, usize::MAX].map(|step| {
        let (scanner, _, is_read) = read(Dialect::Realtime, &[message], step);
        assert!(is_read, "{message}");
        *scanner.envelope().expect("messages have envelopes")
    });
    envelopes.sort_by_key(|envelope| format!("{envelope:?}"));
    assert_eq!(format!("{:?}", envelopes[0]), format!("{:?}", envelopes[2]), "{message}");
    envelopes[0]
}

#[test]
fn type_decides_the_kind() {
    for (kind, expected) in [
        ("response.create", MessageKind::Create),
        ("input_audio_buffer.append", MessageKind::Append),
        ("input_audio_buffer.commit", MessageKind::Commit),
        ("input_audio_buffer.committed", MessageKind::TurnEnd),
        ("input_audio_buffer.speech_stopped", MessageKind::TurnEnd),
        ("session.update", MessageKind::Session),
        ("session.created", MessageKind::Session),
        ("response.created", MessageKind::Created),
        ("response.done", MessageKind::Done),
        ("response.completed", MessageKind::Done),
        ("response.output_text.delta", MessageKind::Part),
        ("response.cancel", MessageKind::Part),
        ("transcription.delta", MessageKind::Transcript),
        ("transcription.done", MessageKind::TranscriptDone),
        ("conversation.item.input_audio_transcription.completed", MessageKind::InputTranscriptDone),
        ("error", MessageKind::Error),
        ("conversation.item.create", MessageKind::Other),
        ("Response.create", MessageKind::Other),
    ] {
        assert_eq!(envelope(&format!(r#"{{"type":"{kind}"}}"#)).kind, expected, "{kind}");
    }
    for (message, expected) in [
        (r#"{"typ\u0065":"response\u002ecreate"}"#, MessageKind::Create),
        (r#"{"type":"x","type":"response.create"}"#, MessageKind::Create),
        (r#"{"type":"response.create","type":null}"#, MessageKind::Untyped),
        (r#"{"response":{"type":"response.create"}}"#, MessageKind::Untyped),
        (r#"["response.create"]"#, MessageKind::Untyped),
    ] {
        assert_eq!(envelope(message).kind, expected, "{message}");
    }
    for (message, expected) in [
        (r#"{"model":"a","type":"response.create"}"#, false),
        (r#"{"model":"a","type":"response.create","model":"a"}"#, false),
        (r#"{"model":"a","type":"response.create","model":"b"}"#, true),
    ] {
        assert_eq!(envelope(message).has_two_models, expected, "{message}");
    }
}

#[test]
fn ids_are_bounded_visible_words() {
    let message = r#"{"type":"error","event_id":"e1","response_id":"r1","item_id":"i1","code":"processing_error",
        "error":{"event_id":"e0"},"response":{"conversation_id":"c1"},
        "session":{"audio":{"input":{"transcription":{"model":"whisper"}}}}}"#;
    let read = envelope(message);
    let ids = [&read.event, &read.failed_event, &read.response, &read.item, &read.conversation];
    assert_eq!(ids.map(|id| id.as_str()), ["e1", "e0", "r1", "i1", "c1"]);
    assert_eq!((read.transcription_model.as_str(), read.is_fatal), ("whisper", true));
    let long = format!(r#"{{"event_id":"{}","response_id":"my secret","item_id":7}}"#, "x".repeat(129));
    let read = envelope(&long);
    assert!(read.event.is_empty() && read.response.is_empty() && read.item.is_empty());
}

#[test]
fn a_message_forgets_the_one_before_it() {
    let first = r#"{"type":"response.done","response_id":"r1","model":"m","response":{"id":"r1"}}"#;
    let (scanner, ..) = read(Dialect::Realtime, &[first], usize::MAX);
    assert_eq!((scanner.names().model(), scanner.names().id()), ("m", "r1"));
    for next in [r#"{"type":"x"}"#, "no JSON", "", "[DONE]", "{\"type\":\"response.create\""] {
        let (scanner, _, is_read) = read(Dialect::Realtime, &[first, next], 2);
        let envelope = scanner.envelope().expect("messages have envelopes");
        assert!(envelope.response.is_empty() && *scanner.names() == Names::default());
        assert_eq!(is_read, next == r#"{"type":"x"}"#, "{next}");
    }
}

#[test]
fn events_are_those_of_the_message() {
    let done = |status: &str, rest: &str| {
        format!(
            r#"{{"type":"response.done","response":{{"id":"r","status":"{status}"{rest},"usage":{{"input_tokens":5,"output_tokens":7,"input_token_details":{{"cached_tokens":2,"audio_tokens":1}},"output_token_details":{{"audio_tokens":4}}}}}}}}"#
        )
    };
    let length = done("incomplete", r#","status_details":{"reason":"max_output_tokens"}"#);
    let (completed, cancelled, failed) = (done("completed", ""), done("cancelled", ""), done("failed", ""));
    let counts = "whole(in 5 cached 2 audio_in 1 out 7 audio_out 4)";
    for (message, expected) in [
        (r#"{"type":"response.output_text.delta","delta":"Hé\n"}"#, "text0/3 |".to_owned()),
        (r#"{"type":"response.output_audio.delta","delta":"AAAA"}"#, "audio0/4 |".to_owned()),
        (r#"{"type":"response.created","response":{"status":"in_progress"}}"#, "progress |".to_owned()),
        (&completed, format!("stop0 {counts} done |")),
        (&length, format!("length0 {counts} done |")),
        // The client or the speaker broke it off: no finish, and no end mark.
        (&cancelled, format!("{counts} |")),
        (&failed, format!("error {counts} done |")),
    ] {
        for step in [1, 5, usize::MAX] {
            let (_, seen, is_read) = read(Dialect::Realtime, &[r#"{"type":"x"}"#, message], step);
            assert!(is_read, "{message}");
            assert_eq!(short(&seen), expected, "{message} in steps of {step}");
        }
    }
}

#[test]
fn message_that_never_ended_leaves_nothing_behind() {
    let mut scanner = Scanner::new(Dialect::Realtime, Framing::Messages);
    scanner.begin_message();
    scanner.feed(
        br#"{"type":"response.done","response":{"id":"r1","usage":{"input_tokens":9"#,
        &mut Seen::default(),
    );
    let whole = r#"{"type":"session.created","session":{"model":"m"}}"#;
    for mut scanner in [scanner, Scanner::new(Dialect::Realtime, Framing::Messages)] {
        let mut seen = Seen::default();
        scanner.begin_message();
        scanner.feed(whole.as_bytes(), &mut seen);
        assert!(scanner.end_message(&mut seen));
        assert_eq!((scanner.names().model(), scanner.names().id()), ("m", ""));
    }
}
