//! A session over a WebSocket: metrics, ledger and bill, and no word of it anywhere.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest;
use tungstenite::handshake::server::{Request, Response};
use tungstenite::{Message, WebSocket};

use crate::ledger::place::{Place, Rows, command};

const KEY: &str = "openai-insecure-api-key.sk-canary-of-the-subprotocol";

/// A server that answers each request of a session with 30 tokens of text and 91 of audio.
fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                #[expect(clippy::result_large_err, reason = "the library's signature")]
                let choose = |request: &Request, mut response: Response| {
                    if request.headers().contains_key("sec-websocket-protocol") {
                        response
                            .headers_mut()
                            .insert("sec-websocket-protocol", "realtime".parse().expect("a value"));
                    }
                    Ok(response)
                };
                let mut socket = tungstenite::accept_hdr(stream, choose).expect("a handshake");
                while let Ok(message) = socket.read() {
                    if message.is_text() {
                        answer(&mut socket);
                    }
                }
            });
        }
    });
    address
}

fn answer(socket: &mut WebSocket<TcpStream>) {
    let usage = json!({"total_tokens": 253, "input_tokens": 132, "output_tokens": 121,
        "input_token_details": {"text_tokens": 119, "audio_tokens": 13, "cached_tokens": 64},
        "output_token_details": {"text_tokens": 30, "audio_tokens": 91}});
    for event in [
        json!({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}}),
        json!({"type": "response.output_text.delta", "response_id": "resp_1", "delta": "canary-of-the-answer"}),
        json!({"type": "response.done", "response": {"id": "resp_1", "status": "completed", "usage": usage}}),
    ] {
        socket.send(Message::text(event.to_string())).expect("the client reads");
    }
}

#[test]
fn session_is_in_metrics_and_ledger() {
    let place = Place::new();
    let mut proxy = place.start(server(), "x.db", &["--log-level", "trace"]);
    let stream = TcpStream::connect(proxy.data).expect("the data port is open");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket");
    let target = format!("ws://{}/v1/realtime?model=small", proxy.data);
    let mut request = target.into_client_request().expect("a request");
    let fields = request.headers_mut();
    fields.insert("x-tenant", "acme".parse().expect("a value"));
    fields.insert("sec-websocket-protocol", format!("realtime, {KEY}").parse().expect("a value"));
    let (mut client, _) = tungstenite::client(request, stream).expect("a handshake");
    for _ in 0..3 {
        let create = r#"{"type":"response.create","response":{"instructions":"canary-of-the-request"}}"#;
        client.send(Message::text(create)).expect("the proxy reads");
        loop {
            let event = client.read().expect("an event").to_string();
            let event: Value = serde_json::from_str(&event).expect("JSON");
            if event["type"] == "response.done" {
                break;
            }
        }
    }

    let page = proxy.page_when("all is on the disk", |page| Rows::of(page).acknowledged == 3);
    let sum = |name: &str, labels: &[(&str, &str)]| page.sum(name, labels);
    assert_eq!(sum("tokenmeter_exchanges_total", &[("model", "small"), ("ending", "complete")]), 3.0);
    for (kind, tokens) in
        [("input", 55), ("input_cached", 64), ("input_audio", 13), ("output", 30), ("output_audio", 91)]
    {
        let labels = [("model", "small"), ("type", kind), ("provenance", "reported")];
        assert_eq!(sum("tokenmeter_tokens_total", &labels), f64::from(3 * tokens), "{kind}");
    }
    assert_eq!(sum("tokenmeter_passthrough_total", &[]), 0.0);
    let rows = place.spend("x.db", "tenant,model");
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!((&rows[0]["tenant"], &rows[0]["model"]), (&json!("acme"), &json!("small")));
    assert_eq!((&rows[0]["input_tokens"], &rows[0]["output_tokens"]), (&json!(396), &json!(363)));

    client.close(None).expect("the proxy reads");
    while client.read().is_ok() {}
    drop(client);
    proxy.terminate();
    assert!(proxy.ended(Duration::from_secs(15)).success(), "{}", proxy.log());
    command(&["ledger", "verify", "--ledger", &place.text("x.db")]);
    let ledger = String::from_utf8_lossy(&std::fs::read(place.path("x.db")).expect("a file")).into_owned();
    for text in [&page.text, &proxy.log(), &ledger] {
        assert!(!text.contains("canary"), "a secret or a word of the session has left the process");
    }
}
