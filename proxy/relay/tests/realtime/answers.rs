//! The records of answers: their counts, their names, and how they end.

use std::time::Duration;

use meter::{Ending, Provenance, TokenType};
use relay::Passthrough;
use scan::Dialect;
use serde_json::{Value, json};

use super::socket::{Server, close, connect, send};
use super::{
    REALTIME, answering, assert_no_record, audio, created, delta, done, expect, record, say, session_created,
    until,
};
use crate::support::{Proxy, eventually};

#[test]
fn each_response_is_one_exchange() {
    let server = answering();
    let proxy = Proxy::new(server.address);
    let mut client = connect(&proxy, REALTIME, &[("x-request-id", "not of one response")]);
    until(&mut client, "session.created");
    for _ in 0..2 {
        send(&mut client, r#"{"event_id":"my-1","type":"response.create","response":{}}"#);
        assert_eq!(until(&mut client, "response.done").len(), 5);
        let record = record(&proxy);
        let identity = &record.identity;
        assert_eq!((identity.dialect, &*identity.model), (Dialect::Realtime, "gpt-realtime-2025-08-28"));
        assert!(identity.response_id.as_deref().is_some_and(|id| id.starts_with("resp_")));
        assert_eq!(identity.links.as_deref().unwrap().conversation.as_str(), "conv_1");
        assert_eq!(identity.request_id.as_deref(), Some("my-1"));
        assert_eq!((record.status, record.streamed, record.ending), (101, true, Ending::Complete));
        assert_eq!(record.tokens.output_provenance, Provenance::Reported);
        let counts = [
            (TokenType::Input, 60),
            (TokenType::InputCached, 59),
            (TokenType::InputCachedAudio, 5),
            (TokenType::InputAudio, 8),
            (TokenType::Output, 30),
            (TokenType::OutputAudio, 91),
        ];
        for (kind, expected) in counts {
            assert_eq!(record.tokens.of(kind), expected, "{kind:?}");
        }
        assert_eq!((record.visible_chars, record.upstream_attempts), (8, 1));
        assert!(record.timing.first_token_ns.is_some());
    }
    close(client);
    eventually("the tunnel ends", || proxy.running.in_flight() == 0);
    assert_no_record(&proxy);
    assert_eq!(proxy.seen().seated, 0);
    assert_eq!(proxy.seen().passed, []);
}

#[test]
fn status_decides_the_ending() {
    let rows: [(&str, Value, Ending); 6] = [
        ("completed", Value::Null, Ending::Complete),
        ("incomplete", json!({"type": "incomplete", "reason": "max_output_tokens"}), Ending::Length),
        ("incomplete", json!({"type": "incomplete", "reason": "content_filter"}), Ending::Complete),
        ("cancelled", json!({"type": "cancelled", "reason": "turn_detected"}), Ending::ClientAbort),
        ("cancelled", json!({"type": "cancelled", "reason": "client_cancelled"}), Ending::ClientAbort),
        ("failed", json!({"type": "failed", "error": {"code": "server_error"}}), Ending::ErrorInBand),
    ];
    let scripted = rows.clone();
    let server = Server::start(move |socket| {
        for (status, details, _) in &scripted {
            expect(socket, "response.create");
            say(socket, &[created("resp_1"), delta("resp_1", "Hi"), done("resp_1", status, details.clone())]);
        }
        while socket.read().is_ok() {}
    });
    let proxy = Proxy::new(server.address);
    let mut client = connect(&proxy, REALTIME, &[]);
    for (status, _, ending) in rows {
        send(&mut client, r#"{"type":"response.create"}"#);
        until(&mut client, "response.done");
        let record = record(&proxy);
        assert_eq!(record.ending, ending, "{status}");
        assert_eq!((record.tokens.input(), record.tokens.output()), (132, 121), "{status}");
        assert_eq!(&*record.identity.model, "gpt-realtime", "the query names it");
        assert_eq!(record.identity.response_model, None, "this server states none");
    }
}

#[test]
fn answer_of_the_server_begins_with_the_end_of_the_turn() {
    const PAUSE: Duration = Duration::from_millis(400);
    let server = Server::start(|socket| {
        say(socket, &[session_created()]);
        expect(socket, "input_audio_buffer.append");
        say(socket, &[json!({"type": "input_audio_buffer.speech_stopped", "audio_end_ms": 900})]);
        std::thread::sleep(PAUSE);
        say(socket, &[created("resp_1"), audio("resp_1"), done("resp_1", "completed", Value::Null)]);
        // Without the end of a turn, it begins when it is announced.
        say(socket, &[created("resp_2"), audio("resp_2"), done("resp_2", "completed", Value::Null)]);
        while socket.read().is_ok() {}
    });
    let proxy = Proxy::new(server.address);
    let mut client = connect(&proxy, REALTIME, &[]);
    send(&mut client, r#"{"type":"input_audio_buffer.append","audio":"AAAA"}"#);
    let (first, second) = (record(&proxy), record(&proxy));
    // The proxy may read the end of the turn late.
    let pause = PAUSE.as_nanos() as u64 / 2;
    assert!(first.timing.first_token_ns.is_some_and(|ns| ns >= pause), "{:?}", first.timing);
    assert!(second.timing.first_token_ns.is_some_and(|ns| ns < pause), "{:?}", second.timing);
    assert_eq!(first.identity.response_id.as_deref(), Some("resp_1"));
    assert_eq!(first.ending, Ending::Complete);
}

#[test]
fn error_ends_the_request_that_it_names() {
    let server = Server::start(|socket| {
        expect(socket, "response.create");
        expect(socket, "response.create");
        expect(socket, "session.update");
        // Of no request for an answer.
        say(socket, &[json!({"type": "error", "error": {"code": "x", "event_id": "my-3"}})]);
        say(socket, &[json!({"type": "error", "error": {"code": "active", "event_id": "my-2"}})]);
        say(socket, &[created("resp_1"), delta("resp_1", "Hi"), done("resp_1", "completed", Value::Null)]);
        while socket.read().is_ok() {}
    });
    let proxy = Proxy::new(server.address);
    let mut client = connect(&proxy, REALTIME, &[]);
    send(&mut client, r#"{"type":"response.create","event_id":"my-1"}"#);
    send(&mut client, r#"{"type":"response.create","event_id":"my-2"}"#);
    send(&mut client, r#"{"type":"session.update","event_id":"my-3","session":{}}"#);
    until(&mut client, "response.done");
    let (failed, answered) = (record(&proxy), record(&proxy));
    assert_eq!((failed.identity.request_id.as_deref(), failed.ending), (Some("my-2"), Ending::ErrorInBand));
    assert!(!failed.tokens.is_counted());
    assert_eq!((answered.identity.request_id.as_deref(), answered.ending), (Some("my-1"), Ending::Complete));
    assert_no_record(&proxy);
}

#[test]
fn the_server_states_the_model_of_a_session() {
    let server = Server::start(|socket| {
        say(socket, &[session_created()]);
        expect(socket, "session.update");
        say(socket, &[json!({"type": "error", "error": {"code": "unknown_parameter", "event_id": "my-1"}})]);
        expect(socket, "response.create");
        say(socket, &[created("resp_1"), done("resp_1", "completed", Value::Null)]);
        expect(socket, "session.update");
        expect(socket, "response.create");
        say(socket, &[json!({"type": "session.updated", "session": {"model": "other"}})]);
        say(socket, &[created("resp_2"), done("resp_2", "completed", Value::Null)]);
        while socket.read().is_ok() {}
    });
    let proxy = Proxy::new(server.address);
    let mut client = connect(&proxy, REALTIME, &[]);
    until(&mut client, "session.created");
    send(&mut client, r#"{"type":"session.update","event_id":"my-1","model":"cheap"}"#);
    until(&mut client, "error");
    send(&mut client, r#"{"type":"response.create"}"#);
    until(&mut client, "response.done");
    assert_eq!(&*record(&proxy).identity.model, "gpt-realtime-2025-08-28");
    // The request is sent before the server has confirmed the model.
    send(&mut client, r#"{"type":"session.update","session":{"model":"other"}}"#);
    send(&mut client, r#"{"type":"response.create"}"#);
    until(&mut client, "response.done");
    assert_eq!(record(&proxy).identity.response_model.as_deref(), Some("other"));
}

/// The events of a whole answer of the Responses API.
fn answer_of_responses(id: &str) -> [Value; 2] {
    let response = |status: &str, usage: Value| json!({"id": id, "status": status, "usage": usage});
    [
        json!({"type": "response.created", "response": response("in_progress", Value::Null)}),
        json!({"type": "response.completed",
            "response": response("completed", json!({"input_tokens": 9, "output_tokens": 7}))}),
    ]
}

#[test]
fn error_of_another_message_does_not_end_an_answer() {
    let server = Server::start(|socket| {
        expect(socket, "response.create");
        let [created, completed] = answer_of_responses("resp_1");
        say(socket, &[created]);
        expect(socket, "nonsense");
        say(
            socket,
            &[json!({"type": "error", "status": 400, "error": {"code": "unknown_event"}}), completed],
        );
        expect(socket, "response.create");
        let [created, _] = answer_of_responses("resp_2");
        say(socket, &[created, json!({"type": "error", "status": 500, "error": {"code": "server_error"}})]);
        // The next answer of the lane shows that the one before has ended.
        expect(socket, "response.create");
        say(socket, &answer_of_responses("resp_3"));
        while socket.read().is_ok() {}
    });
    let proxy = Proxy::new(server.address);
    let mut client = connect(&proxy, "/v1/responses", &[]);
    send(&mut client, r#"{"type":"response.create","model":"m"}"#);
    until(&mut client, "response.created");
    send(&mut client, r#"{"type":"nonsense"}"#);
    until(&mut client, "response.completed");
    let whole = record(&proxy);
    assert_eq!((whole.tokens.input(), whole.tokens.output()), (9, 7));
    send(&mut client, r#"{"type":"response.create","model":"m"}"#);
    until(&mut client, "error");
    send(&mut client, r#"{"type":"response.create","model":"m"}"#);
    until(&mut client, "response.completed");
    let (failed, next) = (record(&proxy), record(&proxy));
    assert_eq!(
        (failed.identity.response_id.as_deref(), failed.ending),
        (Some("resp_2"), Ending::ErrorInBand)
    );
    assert_eq!((next.identity.response_id.as_deref(), next.ending), (Some("resp_3"), Ending::Complete));
    assert_no_record(&proxy);
}

#[test]
fn requests_that_no_answer_follows_hide_no_answer() {
    let server = Server::start(|socket| {
        for request in 0..40 {
            expect(socket, "response.create");
            // The server ignores the first requests, and the lanes of all.
            if request >= 20 {
                say(socket, &answer_of_responses(&format!("resp_{request}")));
            }
        }
        while socket.read().is_ok() {}
    });
    let proxy = Proxy::new(server.address);
    let mut client = connect(&proxy, "/v1/responses", &[]);
    for lane in 0..40 {
        send(
            &mut client,
            &json!({"type": "response.create", "model": "m", "stream_id": lane.to_string()}).to_string(),
        );
    }
    for _ in 0..20 {
        until(&mut client, "response.completed");
        let record = record(&proxy);
        assert_eq!((record.tokens.output(), record.ending), (7, Ending::Complete));
    }
    assert_eq!(proxy.seen().passed, []);
}

#[test]
fn parallel_responses_are_told_apart() {
    let server = Server::start(|socket| {
        expect(socket, "response.create");
        expect(socket, "response.create");
        say(socket, &[created("resp_1"), created("resp_2"), delta("resp_2", "no")]);
        say(socket, &[delta("resp_1", "yes"), done("resp_2", "completed", Value::Null)]);
        say(socket, &[delta("resp_1", "!"), done("resp_1", "completed", Value::Null)]);
        while socket.read().is_ok() {}
    });
    let proxy = Proxy::new(server.address);
    let mut client = connect(&proxy, REALTIME, &[]);
    send(&mut client, r#"{"type":"response.create"}"#);
    send(&mut client, r#"{"type":"response.create","response":{"conversation":"none"}}"#);
    let (second, first) = (record(&proxy), record(&proxy));
    assert_eq!((second.identity.response_id.as_deref(), second.visible_chars), (Some("resp_2"), 2));
    assert_eq!((first.identity.response_id.as_deref(), first.visible_chars), (Some("resp_1"), 4));
}

#[test]
fn answers_beyond_the_limit_are_counted_as_unmetered() {
    let server = Server::start(|socket| {
        for _ in 0..17 {
            expect(socket, "response.create");
        }
        for answer in 0..17 {
            say(socket, &[created(&format!("resp_{answer}"))]);
        }
        while socket.read().is_ok() {}
    });
    let proxy = Proxy::new(server.address);
    let mut client = connect(&proxy, REALTIME, &[]);
    for _ in 0..17 {
        send(&mut client, r#"{"type":"response.create"}"#);
    }
    eventually("the last is counted", || proxy.seen().passed == [Passthrough::Socket]);
    assert_eq!(proxy.seen().seated, 16);
    drop(client);
    for _ in 0..16 {
        assert_eq!(record(&proxy).ending, Ending::ClientAbort);
    }
    assert_no_record(&proxy);
}

#[test]
fn transcription_of_vllm_is_one_exchange() {
    let server = Server::start(|socket| {
        say(socket, &[json!({"type": "session.created", "id": "sess-1", "created": 1_790_000_000})]);
        expect(socket, "session.update");
        for (text, usage) in [
            ("so", json!({"prompt_tokens": 40, "completion_tokens": 3, "total_tokens": 43})),
            // Early releases report zeros.
            ("and so", json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0})),
        ] {
            expect(socket, "input_audio_buffer.commit");
            say(socket, &[json!({"type": "transcription.delta", "delta": text})]);
            say(socket, &[json!({"type": "transcription.delta", "delta": " it"})]);
            say(socket, &[json!({"type": "transcription.done", "text": "…", "usage": usage})]);
        }
        expect(socket, "input_audio_buffer.commit");
        say(socket, &[json!({"type": "transcription.delta", "delta": "x"})]);
        say(socket, &[json!({"type": "error", "error": "Invalid audio data", "code": "invalid_audio"})]);
        say(socket, &[json!({"type": "error", "error": "boom", "code": "processing_error"})]);
        while socket.read().is_ok() {}
    });
    let proxy = Proxy::new(server.address);
    let mut client = connect(&proxy, "/v1/realtime", &[]);
    send(&mut client, r#"{"type":"session.update","model":"voxtral"}"#);
    for _ in 0..3 {
        send(&mut client, r#"{"type":"input_audio_buffer.commit","final":false}"#);
    }
    let (counted, zeros, failed) = (record(&proxy), record(&proxy), record(&proxy));
    assert_eq!((counted.identity.dialect, &*counted.identity.model), (Dialect::Realtime, "voxtral"));
    assert_eq!((counted.tokens.input(), counted.tokens.output()), (40, 3));
    assert_eq!((counted.ending, counted.visible_chars), (Ending::Complete, 5));
    assert_eq!((zeros.tokens.output_provenance, zeros.tokens.output()), (Provenance::Frames, 2));
    assert_eq!((failed.ending, failed.tokens.output()), (Ending::ErrorInBand, 1));
}

#[test]
fn transcription_of_the_speaker_is_an_exchange_of_its_own() {
    let server = Server::start(|socket| {
        say(socket, &[session_created()]);
        say(socket, &[json!({"type": "input_audio_buffer.committed", "item_id": "item_9"})]);
        say(socket, &[created("resp_1")]);
        let prefix = "conversation.item.input_audio_transcription";
        let part = json!({"type": format!("{prefix}.delta"), "item_id": "item_9", "delta": "Hello"});
        let end = json!({"type": format!("{prefix}.completed"), "item_id": "item_9", "transcript": "Hello",
            "usage": {"type": "tokens", "total_tokens": 48, "input_tokens": 46, "output_tokens": 2,
                "input_token_details": {"text_tokens": 6, "audio_tokens": 40}}});
        say(socket, &[part, end, done("resp_1", "completed", Value::Null)]);
        while socket.read().is_ok() {}
    });
    let proxy = Proxy::new(server.address);
    let _client = connect(&proxy, REALTIME, &[]);
    let (heard, answered) = (record(&proxy), record(&proxy));
    let identity = &heard.identity;
    assert_eq!((identity.dialect, &*identity.model), (Dialect::Transcription, "gpt-4o-transcribe"));
    assert_eq!((heard.tokens.of(TokenType::Input), heard.tokens.of(TokenType::InputAudio)), (6, 40));
    assert_eq!((heard.tokens.output(), heard.ending), (2, Ending::Complete));
    assert_eq!(answered.identity.dialect, Dialect::Realtime);
}

#[test]
fn responses_over_a_socket_are_metered_by_their_stream() {
    let server = Server::start(|socket| {
        for _ in 0..2 {
            expect(socket, "response.create");
        }
        let event = |stream: &str, kind: &str, mut event: Value| {
            event["type"] = kind.into();
            event["stream_id"] = stream.into();
            event
        };
        let response = |id: &str, status: &str, output: u64| {
            let usage = json!({"input_tokens": 9, "output_tokens": output,
                "input_tokens_details": {"cached_tokens": 4}});
            json!({"response": {"id": id, "object": "response", "status": status, "model": "gpt-x",
                "usage": if status == "completed" { usage } else { Value::Null }}})
        };
        say(
            socket,
            &[
                event("b", "response.created", response("resp_b", "in_progress", 0)),
                event("a", "response.created", response("resp_a", "in_progress", 0)),
                event("b", "response.output_text.delta", json!({"delta": "one"})),
                event("a", "response.output_text.delta", json!({"delta": "other"})),
                event("b", "response.completed", response("resp_b", "completed", 7)),
                // Some servers announce the end twice.
                event("b", "response.done", json!({})),
                event("a", "error", json!({"status": 500, "error": {"code": "server_error"}})),
            ],
        );
        while socket.read().is_ok() {}
    });
    let proxy = Proxy::new(server.address);
    let mut client = connect(&proxy, "/v1/responses", &[]);
    for stream in ["a", "b"] {
        let request = json!({"type": "response.create", "stream_id": stream, "model": "gpt-asked",
            "input": [{"role": "user", "content": "usage"}], "previous_response_id": "resp_0"});
        send(&mut client, &request.to_string());
    }
    let whole = record(&proxy);
    until(&mut client, "error");
    // The answer might go on after the error, as long as the session does.
    drop(client);
    let failed = record(&proxy);
    let identity = &whole.identity;
    assert_eq!((identity.dialect, &*identity.model), (Dialect::OpenaiResponses, "gpt-asked"));
    assert_eq!(identity.response_model.as_deref(), Some("gpt-x"));
    assert_eq!(identity.response_id.as_deref(), Some("resp_b"));
    let links = identity.links.as_deref().unwrap();
    assert_eq!(links.previous_response.as_str(), "resp_0");
    assert_eq!((whole.tokens.input(), whole.tokens.output(), whole.visible_chars), (9, 7, 3));
    assert_eq!(whole.ending, Ending::Complete);
    assert_eq!(
        (failed.identity.response_id.as_deref(), failed.ending),
        (Some("resp_a"), Ending::ErrorInBand)
    );
    assert_no_record(&proxy);
}
