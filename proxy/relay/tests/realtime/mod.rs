//! Sessions over WebSockets: each answer is an exchange, and every byte passes unchanged.

mod answers;
mod budgets;
mod ends;
mod socket;
mod wire;

use meter::Record;
use serde_json::{Value, json};

use self::socket::{Server, Socket, receive, send};
use crate::support::{CANCEL, Proxy};

/// The path of most sessions.
const REALTIME: &str = "/v1/realtime?model=gpt-realtime";

/// The settings that OpenAI sends first.
fn session_created() -> Value {
    json!({"type": "session.created", "event_id": "event_1", "session": {
        "object": "realtime.session", "id": "sess_1", "model": "gpt-realtime-2025-08-28",
        "audio": {"input": {"transcription": {"model": "gpt-4o-transcribe"}}},
    }})
}

fn created(id: &str) -> Value {
    json!({"type": "response.created", "event_id": "event_2", "response": {
        "object": "realtime.response", "id": id, "status": "in_progress", "status_details": null,
        "output": [], "conversation_id": "conv_1", "usage": null,
    }})
}

fn delta(id: &str, text: &str) -> Value {
    json!({"type": "response.output_audio_transcript.delta", "event_id": "event_3", "response_id": id,
        "item_id": "item_1", "output_index": 0, "content_index": 0, "delta": text})
}

fn audio(id: &str) -> Value {
    json!({"type": "response.output_audio.delta", "event_id": "event_4", "response_id": id,
        "item_id": "item_1", "output_index": 0, "content_index": 0, "delta": "AAAA"})
}

/// The end of a response with this status, and the reason for it.
fn done(id: &str, status: &str, details: Value) -> Value {
    json!({"type": "response.done", "event_id": "event_5", "response": {
        "object": "realtime.response", "id": id, "status": status, "status_details": details,
        "output": [{"id": "item_1", "type": "message", "content": [{"transcript": "Hi there"}]}],
        "conversation_id": "conv_1",
        "usage": {"total_tokens": 253, "input_tokens": 132, "output_tokens": 121,
            "input_token_details": {"text_tokens": 119, "audio_tokens": 13, "image_tokens": 0,
                "cached_tokens": 64, "cached_tokens_details": {"text_tokens": 59, "audio_tokens": 5}},
            "output_token_details": {"text_tokens": 30, "audio_tokens": 91}},
    }})
}

/// Sends these events.
fn say(socket: &mut Socket, events: &[Value]) {
    for event in events {
        send(socket, &event.to_string());
    }
}

/// Reads the client's next event; panics unless it has this type.
fn expect(socket: &mut Socket, kind: &str) -> Value {
    let event: Value = serde_json::from_str(&receive(socket)).unwrap();
    assert_eq!(event["type"], kind, "{event}");
    event
}

/// Reads the server's events up to one of this type.
fn until(socket: &mut Socket, kind: &str) -> Vec<Value> {
    let mut events = Vec::new();
    loop {
        let event: Value = serde_json::from_str(&receive(socket)).unwrap();
        let is_last = event["type"] == kind;
        events.push(event);
        if is_last {
            return events;
        }
    }
}

/// Waits for the record of an exchange that has ended.
fn record(proxy: &Proxy) -> Record {
    crate::usage::record(proxy)
}

/// Asserts that no further exchange ended.
fn assert_no_record(proxy: &Proxy) {
    assert!(proxy.inbox.recv_timeout(CANCEL).is_err(), "a record too many");
}

/// A server that gives each request of a session one whole answer.
fn answering() -> Server {
    Server::start(|socket| {
        say(socket, &[session_created()]);
        for number in 1.. {
            let Ok(message) = socket.read() else { return };
            if !message.is_text() {
                continue;
            }
            let event: Value = serde_json::from_str(message.to_text().unwrap()).unwrap();
            if event["type"] == "response.create" {
                let id = format!("resp_{number}");
                say(socket, &[created(&id), delta(&id, "Hi"), audio(&id), delta(&id, " there")]);
                say(socket, &[done(&id, "completed", Value::Null)]);
            }
        }
    })
}
