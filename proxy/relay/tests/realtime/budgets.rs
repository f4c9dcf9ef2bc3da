//! Tenants that may not spend, or not on this model.

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Arc, Mutex, mpsc};

use meter::Ending;
use relay::{Gap, Gate, Models, Refusal, RequestedModel, Terms, UnknownPaths};
use serde_json::Value;

use super::socket::{Server, Socket, closed, connect, send, try_connect};
use super::{
    REALTIME, answering, assert_no_record, created, delta, done, expect, record, say, session_created, until,
};
use crate::gate::refusing;
use crate::support::{Proxy, TestPlan, eventually};
use crate::tenants::{in_force, keys};

const KEY_A: (&str, &str) = ("authorization", "Bearer key-a");
const CREATE: &str = r#"{"type":"response.create","response":{"instructions":"SECRET"}}"#;

/// A proxy with this gate, and tenants by key.
fn gated(server: &Server, gate: &Arc<Gate>) -> Proxy {
    let gate = Arc::clone(gate);
    Proxy::with(server.address, |plan: &mut TestPlan| {
        in_force(keys())(plan);
        plan.control.gate = Some(gate);
    })
}

/// The texts that a server received.
type Heard = Arc<Mutex<Vec<String>>>;

/// A server that records the texts that it receives, and passes on the code of the close frame.
fn listening(
    script: impl Fn(&mut Socket) + Send + Sync + 'static,
) -> (Server, Heard, mpsc::Receiver<Option<u16>>) {
    let heard = Heard::default();
    let (saw, seen) = mpsc::channel();
    let (keeps, saw) = (Arc::clone(&heard), Mutex::new(saw));
    let server = Server::start(move |socket| {
        script(socket);
        let code = loop {
            match socket.read() {
                Ok(tungstenite::Message::Close(frame)) => {
                    let _ = socket.flush();
                    break frame.map(|frame| u16::from(frame.code));
                }
                Ok(message) if message.is_text() => keeps.lock().unwrap().push(message.to_string()),
                Ok(_) => {}
                Err(_) => break None,
            }
        };
        saw.lock().unwrap().send(code).unwrap();
    });
    (server, heard, seen)
}

#[test]
fn request_over_budget_is_refused_with_1008() {
    let (server, heard, seen) = listening(|_| {});
    let gate = Arc::new(Gate::default());
    let proxy = gated(&server, &gate);
    let mut client = connect(&proxy, REALTIME, &[KEY_A]);
    let mut other = connect(&proxy, REALTIME, &[("authorization", "Bearer key-b")]);
    let item = r#"{"type":"conversation.item.create","item":{}}"#;
    send(&mut client, item);
    gate.refuse(refusing(&["a"]));
    // A message that requests no answer passes.
    send(&mut client, item);
    eventually("both items arrive", || heard.lock().unwrap().len() == 2);
    send(&mut client, CREATE);
    assert_eq!(closed(&mut client), Some((1008, "The \"budget\" is spent.".to_owned())));
    assert_eq!(seen.recv().unwrap(), Some(1001));
    assert_eq!(*heard.lock().unwrap(), [item, item], "nothing of the request goes upstream");
    assert_eq!(proxy.seen().refused, [Refusal::Budget]);
    assert_eq!(proxy.seen().rejected, [("a".to_owned(), Refusal::Budget)]);
    // Another tenant's session is not affected.
    send(&mut other, item);
    eventually("the other item arrives", || heard.lock().unwrap().len() == 3);
    assert_no_record(&proxy);
}

#[test]
fn handshake_over_budget_is_answered_with_429() {
    let server = answering();
    let gate = Arc::new(Gate::default());
    gate.refuse(refusing(&["a"]));
    let proxy = gated(&server, &gate);
    assert_eq!(try_connect(&proxy, REALTIME, &[KEY_A]).err(), Some(429));
    assert!(try_connect(&proxy, REALTIME, &[]).is_ok());
}

#[test]
fn answer_in_progress_ends_before_the_session() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let (server, heard, seen) = listening(move |socket| {
        expect(socket, "response.create");
        say(socket, &[created("resp_1"), delta("resp_1", "Hi")]);
        wait.lock().unwrap().recv().unwrap();
        say(socket, &[delta("resp_1", "!"), done("resp_1", "completed", Value::Null)]);
        // Nothing after the answer reaches the client.
        say(socket, &[serde_json::json!({"type": "rate_limits.updated"})]);
    });
    let gate = Arc::new(Gate::default());
    let proxy = gated(&server, &gate);
    let mut client = connect(&proxy, REALTIME, &[KEY_A]);
    send(&mut client, CREATE);
    until(&mut client, "response.output_audio_transcript.delta");
    gate.refuse(refusing(&["a"]));
    send(&mut client, r#"{"type":"input_audio_buffer.append","audio":"AAAA"}"#);
    send(&mut client, CREATE);
    eventually("it is refused", || proxy.seen().refused == [Refusal::Budget]);
    go.send(()).unwrap();
    assert_eq!(until(&mut client, "response.done").len(), 2);
    assert_eq!(closed(&mut client).map(|(code, _)| code), Some(1008));
    assert_eq!(seen.recv().unwrap(), Some(1001));
    assert_eq!(heard.lock().unwrap().len(), 1, "audio passes during an answer");
    assert_eq!((record(&proxy).ending, proxy.seen().seated), (Ending::Complete, 0));
}

/// A server with turn detection answers audio that the client sent beside an earlier answer.
#[test]
fn server_begun_answer_over_budget_is_last() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let (server, heard, seen) = listening(move |socket| {
        expect(socket, "response.create");
        say(socket, &[created("resp_1"), delta("resp_1", "Hi")]);
        expect(socket, "input_audio_buffer.append");
        say(socket, &[done("resp_1", "cancelled", Value::Null), created("resp_2"), delta("resp_2", "So")]);
        wait.lock().unwrap().recv().unwrap();
        say(socket, &[done("resp_2", "completed", Value::Null), created("resp_3")]);
    });
    let gate = Arc::new(Gate::default());
    let proxy = gated(&server, &gate);
    let mut client = connect(&proxy, REALTIME, &[KEY_A]);
    send(&mut client, CREATE);
    until(&mut client, "response.output_audio_transcript.delta");
    gate.refuse(refusing(&["a"]));
    let append = r#"{"type":"input_audio_buffer.append","audio":"AAAA"}"#;
    send(&mut client, append);
    eventually("it is refused", || proxy.seen().refused == [Refusal::Budget]);
    // Beside this answer, audio no longer passes.
    send(&mut client, append);
    go.send(()).unwrap();
    assert_eq!(until(&mut client, "response.done").len(), 1, "the first answer");
    assert_eq!(until(&mut client, "response.done").len(), 3, "the second one is forwarded to its end");
    assert_eq!(closed(&mut client).map(|(code, _)| code), Some(1008));
    assert_eq!(seen.recv().unwrap(), Some(1001));
    assert!(heard.lock().unwrap().is_empty());
    assert_eq!([record(&proxy).ending, record(&proxy).ending], [Ending::ClientAbort, Ending::Complete]);
}

#[test]
fn audio_over_budget_is_refused_between_answers() {
    for message in [
        r#"{"type":"input_audio_buffer.append","audio":"AAAA"}"#,
        r#"{"type":"input_audio_buffer.commit"}"#,
        r#"{"audio":"AAAA","type":"conversation.item.create","type":"response.create"}"#,
        r#"{"type":"respons\u0065.create"}"#,
        r#"{"Type":"response.create"}"#,
        "no JSON",
    ] {
        let (server, heard, _seen) = listening(|_| {});
        let gate = Arc::new(Gate::default());
        let proxy = gated(&server, &gate);
        let mut client = connect(&proxy, REALTIME, &[KEY_A]);
        gate.refuse(refusing(&["a"]));
        send(&mut client, message);
        assert_eq!(closed(&mut client).map(|(code, _)| code), Some(1008), "{message}");
        assert!(heard.lock().unwrap().is_empty(), "{message}");
    }
}

#[test]
fn a_request_that_the_server_ignores_lets_no_audio_pass() {
    let (server, heard, _seen) = listening(|_| {});
    let gate = Arc::new(Gate::default());
    let proxy = gated(&server, &gate);
    let mut client = connect(&proxy, REALTIME, &[KEY_A]);
    send(&mut client, CREATE);
    eventually("the request arrives", || heard.lock().unwrap().len() == 1);
    gate.refuse(refusing(&["a"]));
    send(&mut client, r#"{"type":"input_audio_buffer.append","audio":"AAAA"}"#);
    eventually("the audio is refused", || proxy.seen().refused == [Refusal::Budget]);
    assert_eq!(heard.lock().unwrap().len(), 1);
}

/// Tenant `a` may use `known` only.
#[derive(Debug)]
struct Known;

impl Models for Known {
    fn restricts(&self, tenant: &str) -> bool {
        tenant == "a"
    }

    fn refused(&self, _: &str, requested: &RequestedModel<'_>) -> Option<Box<str>> {
        (requested.model != "known").then(|| "It has no price.".into())
    }

    fn terms(&self, tenant: &str) -> Terms {
        let unknown_paths = if tenant == "a" { UnknownPaths::Refuse } else { UnknownPaths::Pass };
        Terms { unknown_paths, ..Terms::default() }
    }

    fn message(&self, _: &str, gap: Gap) -> Box<str> {
        gap.name().into()
    }
}

#[test]
fn unpriced_model_is_refused_in_handshake_and_request() {
    let (server, heard, _seen) = listening(|_| {});
    let gate = Arc::new(Gate::with_models(Box::new(Known)));
    let proxy = gated(&server, &gate);
    assert_eq!(try_connect(&proxy, REALTIME, &[KEY_A]).err(), Some(403));
    // A tunnel of unknown use, under `unknown_paths: refuse`.
    assert_eq!(try_connect(&proxy, "/v1/elsewhere", &[KEY_A]).err(), Some(403));
    assert!(try_connect(&proxy, "/v1/elsewhere", &[]).is_ok());
    let mut client = connect(&proxy, "/v1/responses", &[KEY_A]);
    let large = format!(r#"{{"type":"response.create","input":"{}","model":"known"}}"#, "x".repeat(300_000));
    send(&mut client, &large);
    eventually("a known model passes", || heard.lock().unwrap().len() == 1);
    assert_eq!(heard.lock().unwrap()[0], large);
    send(&mut client, r#"{"type":"response.create","model":"other"}"#);
    // The first answer is in progress: the server ends it.
    eventually("it is refused", || proxy.seen().refused.last() == Some(&Refusal::Unpriced));
    assert_eq!(heard.lock().unwrap().len(), 1);
}

#[test]
fn each_model_of_a_handshake_is_checked() {
    let server = answering();
    let proxy = gated(&server, &Arc::new(Gate::with_models(Box::new(Known))));
    for (target, field, status) in [
        ("/v1/realtime?model=known", None, None),
        ("/v1/realtime?model=known&model=known", None, None),
        ("/v1/realtime?model=known&model=dear", None, Some(403)),
        ("/v1/realtime?model=dear&model=known", None, Some(403)),
        ("/v1/realtime?model=known&deployment=dear", None, Some(403)),
        ("/v1/realtime?model=known&mod%65l[]=dear", None, Some(403)),
        ("/v1/realtime?model=known,dear", None, Some(403)),
        ("/v1/realtime?model=known", Some(("x-gateway-model-name", "dear")), Some(403)),
    ] {
        let fields: Vec<_> = field.into_iter().chain([KEY_A]).collect();
        assert_eq!(try_connect(&proxy, target, &fields).err(), status, "{target} {field:?}");
    }
    // With terms that refuse what cannot be read, also a head that may name any model.
    let proxy = gated(&server, &Arc::new(Gate::with_models(Box::new(Strict))));
    let any = ("x-portkey-config", "pc-1");
    assert_eq!(try_connect(&proxy, REALTIME, &[KEY_A, any]).err(), Some(403));
    assert!(try_connect(&proxy, REALTIME, &[KEY_A]).is_ok() && try_connect(&proxy, REALTIME, &[any]).is_ok());
}

/// The server may use any of them, until it states one.
#[test]
fn each_model_of_a_handshake_may_be_charged() {
    let target = "/v1/realtime?model=cheap&model=dear";
    let (server, _heard, _seen) = listening(|socket| {
        expect(socket, "response.create");
        say(socket, &[created("resp_1"), done("resp_1", "completed", Value::Null), session_created()]);
        expect(socket, "response.create");
        say(socket, &[created("resp_2"), done("resp_2", "completed", Value::Null)]);
    });
    let proxy = gated(&server, &Arc::new(Gate::default()));
    let mut client = connect(&proxy, target, &[KEY_A]);
    for expected in [&["cheap", "dear"][..], &["gpt-realtime-2025-08-28"]] {
        send(&mut client, CREATE);
        let identity = record(&proxy).identity;
        let models: Vec<&str> =
            [&identity.model].into_iter().chain(&identity.other_models).map(|m| &**m).collect();
        assert_eq!(models, expected);
        if expected.len() > 1 {
            until(&mut client, "session.created");
        }
    }
}

#[test]
fn compression_is_not_offered_under_a_budget() {
    let server = answering();
    let proxy = gated(&server, &Arc::new(Gate::default()));
    let _client = connect(&proxy, REALTIME, &[("sec-websocket-extensions", "permessage-deflate")]);
    assert!(!server.handshake().contains_key("sec-websocket-extensions"));
}

/// Terms that end a session whose messages cannot be read.
#[derive(Debug)]
struct Strict;

impl Models for Strict {
    fn restricts(&self, _: &str) -> bool {
        false
    }

    fn refused(&self, _: &str, _: &RequestedModel<'_>) -> Option<Box<str>> {
        None
    }

    fn terms(&self, tenant: &str) -> Terms {
        Terms { refuse_unreadable: tenant == "a", ..Terms::default() }
    }

    fn message(&self, _: &str, gap: Gap) -> Box<str> {
        gap.name().into()
    }
}

#[test]
fn broken_frames_end_the_session_where_terms_demand_it() {
    for (key, is_refused) in [(KEY_A, true), (("authorization", "Bearer key-b"), false)] {
        let server = Server::start(|socket| while socket.read().is_ok() {});
        let gate = Arc::new(Gate::with_models(Box::new(Strict)));
        let proxy = gated(&server, &gate);
        let mut client = connect(&proxy, REALTIME, &[key]);
        client.get_mut().write_all(b"\x83\x81????x").unwrap();
        let code = closed(&mut client).map(|(code, _)| code);
        // Otherwise the server sees them, and ends the connection.
        assert_eq!(code, is_refused.then_some(1008));
        assert_eq!(proxy.seen().refused.contains(&Refusal::Unreadable), is_refused);
    }
}

#[test]
fn two_models_in_a_request_are_unreadable() {
    let server = Server::start(|socket| while socket.read().is_ok() {});
    let gate = Arc::new(Gate::with_models(Box::new(Strict)));
    let proxy = gated(&server, &gate);
    let mut client = connect(&proxy, "/v1/responses", &[KEY_A]);
    send(&mut client, r#"{"model":"cheap","type":"response.create","model":"dear"}"#);
    assert_eq!(closed(&mut client).map(|(code, _)| code), Some(1008));
    assert_eq!(proxy.seen().refused, [Refusal::Unreadable]);
}

#[test]
fn memory_of_a_checked_message_is_counted_until_it_is_written() {
    const LENGTH: usize = 7 << 20;
    let (arrives, arrived) = mpsc::channel::<()>();
    let (go, wait) = mpsc::channel::<()>();
    let ends = Mutex::new((arrives, wait));
    let server = Server::start(move |socket| {
        let (arrives, wait) = &*ends.lock().unwrap();
        socket.get_ref().socket().peek(&mut [0]).unwrap();
        arrives.send(()).unwrap();
        wait.recv().unwrap();
        while socket.read().is_ok() {}
    });
    let proxy = gated(&server, &Arc::new(Gate::with_models(Box::new(Known))));
    let mut client = connect(&proxy, "/v1/responses", &[KEY_A]);
    let message = format!(r#"{{"type":"x","pad":"{}"}}"#, "x".repeat(LENGTH));
    send(&mut client, &message);
    let taken = || proxy.running.reader()().gathered_bytes.taken;
    // The socket's buffers take less than the message.
    arrived.recv().unwrap();
    assert_eq!(taken(), message.len() + 14, "a frame has a header of 14 bytes");
    go.send(()).unwrap();
    eventually("it is written", || taken() == 0);
}

#[test]
fn pongs_pass_while_requests_are_checked() {
    let (go, wait) = mpsc::channel::<()>();
    let go = Mutex::new(go);
    let server = Server::start(move |socket| {
        socket.send(tungstenite::Message::Ping(bytes::Bytes::from_static(b"alive?"))).unwrap();
        assert!(socket.read().unwrap().is_pong());
        go.lock().unwrap().send(()).unwrap();
        while socket.read().is_ok() {}
    });
    let gate = Arc::new(Gate::default());
    gate.refuse(HashMap::new());
    let proxy = gated(&server, &gate);
    let mut client = connect(&proxy, REALTIME, &[KEY_A]);
    gate.refuse(refusing(&["a"]));
    assert!(client.read().unwrap().is_ping());
    client.flush().unwrap();
    wait.recv().unwrap();
}
