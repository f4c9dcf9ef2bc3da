//! The server from a client's side, on raw sockets, because the bytes matter.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use simulator::speed::Model;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use crate::{Handle, Options, Server, Shape};

const SOON: Duration = Duration::from_secs(5);

async fn bind(options: Options) -> Handle {
    Server::bind("127.0.0.1:0".parse().unwrap(), options).await.unwrap()
}

async fn send(addr: SocketAddr, path: &str, headers: &str, body: &Value) -> TcpStream {
    let body = body.to_string();
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    );
    let mut socket = TcpStream::connect(addr).await.unwrap();
    socket.write_all(request.as_bytes()).await.unwrap();
    socket
}

/// Reads the whole response, and the error that ended it, if any.
async fn read(mut socket: TcpStream) -> (String, io::Result<usize>) {
    let mut response = Vec::new();
    let end = timeout(SOON, socket.read_to_end(&mut response)).await.unwrap();
    (String::from_utf8(response).unwrap(), end)
}

async fn post(addr: SocketAddr, path: &str, headers: &str, body: &Value) -> String {
    read(send(addr, path, headers, body).await).await.0
}

async fn get(addr: SocketAddr, path: &str) -> String {
    let mut socket = TcpStream::connect(addr).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    read(socket).await.0
}

/// Returns the chunks of a chunked response; the last one is empty if it was sent.
fn chunks(response: &str) -> Vec<&str> {
    let (_, mut rest) = response.split_once("\r\n\r\n").unwrap();
    let mut chunks = Vec::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        chunks.push(&after[..size]);
        rest = after[size..].strip_prefix("\r\n").unwrap();
    }
    chunks
}

/// Returns the body of a response with a length.
fn body(response: &str) -> Value {
    serde_json::from_str(response.split_once("\r\n\r\n").unwrap().1).unwrap()
}

fn status(response: &str) -> &str {
    &response[9..12]
}

fn question(more: Value) -> Value {
    let mut question = json!({
        "model": "m",
        "messages": [{ "role": "user", "content": "why is the sky blue" }],
        "prompt": "why is the sky blue",
        "stream": true,
        "max_tokens": 12,
    });
    for (name, value) in more.as_object().unwrap() {
        question[name] = value.clone();
    }
    question
}

const CHAT: &str = "/v1/chat/completions";

#[tokio::test]
async fn each_event_is_a_chunk() {
    let server = bind(Options::instant(Shape::Vllm)).await;
    let response = post(server.addr(), CHAT, "", &question(json!({}))).await;
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert!(response.contains("content-type: text/event-stream; charset=utf-8\r\n"));
    let chunks = chunks(&response);
    // Role, twelve tokens (the last with the finish reason), end mark, last chunk.
    assert_eq!(chunks.len(), 15);
    assert_eq!(chunks[13..], ["data: [DONE]\n\n", ""]);
    assert!(response.ends_with("0\r\n\r\n"));
}

#[tokio::test]
async fn equal_requests_give_equal_responses() {
    for shape in [Shape::Vllm, Shape::LlamaCpp] {
        let one = bind(Options::instant(shape)).await;
        let fast = Model { factor: 50.0, ..Model::default() };
        let other = bind(Options { speed: fast, ..Options::instant(shape) }).await;
        let question = question(json!({ "n": 2, "simulate": { "reasoning": 3 } }));
        let alone = post(one.addr(), CHAT, "", &question).await;
        let (first, second) =
            tokio::join!(post(other.addr(), CHAT, "", &question), post(other.addr(), CHAT, "", &question));
        assert_eq!(chunks(&alone), chunks(&first));
        assert_eq!(chunks(&alone), chunks(&second));
        let other_seed = bind(Options { seed: 1, ..Options::instant(shape) }).await;
        let differs = post(other_seed.addr(), CHAT, "", &question).await;
        assert_ne!(chunks(&alone), chunks(&differs));
    }
}

#[tokio::test]
async fn streamed_and_unstreamed_content_is_equal() {
    for shape in [Shape::Vllm, Shape::LlamaCpp] {
        let server = bind(Options::instant(shape)).await;
        let streamed = post(server.addr(), CHAT, "", &question(json!({}))).await;
        let streamed: String = chunks(&streamed)
            .iter()
            .flat_map(|chunk| chunk.split("\n\n"))
            .filter_map(|event| event.strip_prefix("data: "))
            .filter(|data| *data != "[DONE]")
            .map(|data| serde_json::from_str::<Value>(data).unwrap())
            .filter_map(|data| Some(data["choices"][0]["delta"]["content"].as_str()?.to_owned()))
            .collect();
        let whole = post(server.addr(), CHAT, "", &question(json!({ "stream": false }))).await;
        let whole = body(&whole);
        assert_eq!(whole["choices"][0]["message"]["content"], streamed);
        assert_eq!(whole["usage"]["completion_tokens"], 12);
    }
}

#[tokio::test]
async fn leaving_client_stops_its_generation() {
    let server = bind(Options::default()).await;
    for stream in [true, false] {
        let question = question(json!({ "max_tokens": 100_000, "stream": stream }));
        let socket = send(server.addr(), CHAT, "", &question).await;
        let running = server.until(SOON, |c| c.running == 1 && c.generated_tokens > 0);
        running.await.unwrap();
        drop(socket);
        server.until(SOON, |c| c.running == 0).await.unwrap();
        let stopped = server.counts().generated_tokens;
        sleep(Duration::from_millis(40)).await;
        assert_eq!(server.counts().generated_tokens, stopped);
    }
    assert_eq!(server.counts().aborted, 2);
}

#[tokio::test]
async fn client_leaving_before_the_head_is_counted() {
    let server = bind(Options::default()).await;
    let headers = "x-simulate: slow-head=1000s\r\n";
    let socket = send(server.addr(), CHAT, headers, &question(json!({}))).await;
    server.until(SOON, |c| c.requests == 1).await.unwrap();
    drop(socket);
    server.until(SOON, |c| c.aborted == 1).await.unwrap();
}

#[tokio::test]
async fn breaks_keep_the_frames_before_them() {
    for shape in [Shape::Vllm, Shape::LlamaCpp] {
        let server = bind(Options::instant(shape)).await;
        let fault = |fault: &'static str| {
            let addr = server.addr();
            async move {
                let headers = format!("x-simulate: {fault}\r\n");
                let question = question(json!({ "simulate": { "text": "plain" } }));
                read(send(addr, CHAT, &headers, &question).await).await
            }
        };
        let tokens = |response: &str| response.matches(r#""content":" "#).count();

        let (cut, end) = fault("cut-after=7").await;
        assert!(end.is_ok() && !cut.ends_with("0\r\n\r\n"));
        assert_eq!(tokens(&cut), 7);

        let (reset, end) = fault("reset-after=7").await;
        assert_eq!(end.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        assert_eq!(tokens(&reset), 7);

        let (ended, _) = fault("end-after=7").await;
        assert!(ended.ends_with("0\r\n\r\n") && !ended.contains("[DONE]"));
        assert_eq!(tokens(&ended), 7);

        let (error, _) = fault("error-in-band-after=7").await;
        assert_eq!(tokens(&error), 7);
        assert!(error.contains(r#"data: {"error":"#) && error.ends_with("0\r\n\r\n"));
        assert_eq!(error.contains("[DONE]"), shape == Shape::Vllm);

        // After the last token, before usage and end mark.
        let (late, _) = fault("cut-after=12").await;
        assert_eq!(tokens(&late), 12);
        assert!(!late.contains("[DONE]"));
        assert_eq!(server.counts().faulted, 5);
        assert_eq!(server.counts().running, 0);
    }
}

#[tokio::test]
async fn unstreamed_response_breaks_too() {
    let server = bind(Options::instant(Shape::Vllm)).await;
    let fault = |fault: &'static str| {
        let headers = format!("x-simulate: {fault}\r\n");
        let addr = server.addr();
        async move {
            let question = question(json!({ "stream": false }));
            read(send(addr, CHAT, &headers, &question).await).await.0
        }
    };
    assert_eq!(status(&fault("error-in-band-after=3").await), "500");
    let cut = fault("cut-after=3").await;
    let (head, body) = cut.split_once("\r\n\r\n").unwrap();
    let length = head.split("content-length: ").nth(1).unwrap();
    let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
    assert_eq!(body.len(), length / 2);
    assert_eq!(fault("no-head").await, "");
}

#[tokio::test]
async fn hang_lasts_until_the_client_leaves() {
    let server = bind(Options::instant(Shape::Vllm)).await;
    let headers = "x-simulate: hang-after=4, ping-every=5ms\r\n";
    let mut socket = send(server.addr(), CHAT, headers, &question(json!({}))).await;
    let mut seen = String::new();
    let mut buffer = [0; 4_096];
    while seen.matches(": keep-alive\n\n").count() < 3 {
        let read = timeout(SOON, socket.read(&mut buffer)).await.unwrap().unwrap();
        seen.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
    }
    assert_eq!(server.counts().running, 1);
    assert_eq!(server.counts().generated_tokens, 5);
    drop(socket);
    server.until(SOON, |c| c.running == 0 && c.aborted == 1).await.unwrap();
}

#[tokio::test]
async fn stall_changes_no_byte() {
    let server = bind(Options::instant(Shape::Vllm)).await;
    let plain = post(server.addr(), CHAT, "", &question(json!({}))).await;
    let started = Instant::now();
    let headers = "x-simulate: stall-after=3, stall=60ms\r\n";
    let stalled = post(server.addr(), CHAT, headers, &question(json!({}))).await;
    assert!(started.elapsed() >= Duration::from_millis(60));
    assert_eq!(chunks(&plain), chunks(&stalled));
}

#[tokio::test]
async fn split_events_join_to_the_same_bytes() {
    let server = bind(Options::instant(Shape::LlamaCpp)).await;
    let plain = post(server.addr(), CHAT, "", &question(json!({}))).await;
    let headers = "x-simulate: tear=7\r\n";
    let torn = timeout(SOON, send(server.addr(), CHAT, headers, &question(json!({})))).await.unwrap();
    // A chunk may end inside a character, so the response is joined as bytes.
    let torn = read(torn).await.0;
    let torn = raw_chunks(torn.as_bytes());
    assert!(torn.iter().all(|chunk| chunk.len() <= 7));
    assert_eq!(torn.concat(), chunks(&plain).concat().as_bytes());
}

fn raw_chunks(response: &[u8]) -> Vec<Vec<u8>> {
    let head = response.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
    let mut rest = &response[head + 4..];
    let mut chunks = Vec::new();
    while let Some(line) = rest.windows(2).position(|w| w == b"\r\n") {
        let size = std::str::from_utf8(&rest[..line]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        chunks.push(rest[line + 2..line + 2 + size].to_vec());
        rest = &rest[line + 2 + size + 2..];
    }
    chunks
}

#[tokio::test]
async fn usage_faults_change_only_usage() {
    for shape in [Shape::Vllm, Shape::LlamaCpp] {
        let server = bind(Options::instant(shape)).await;
        let requested = json!({ "stream_options": { "include_usage": true } });
        let params = |headers: &'static str, more: &Value| {
            let (addr, question) = (server.addr(), question(more.clone()));
            async move { post(addr, CHAT, headers, &question).await }
        };
        let usage = |response: &str| response.contains(r#""usage":{"#);
        assert!(usage(&params("", &requested).await));
        assert!(!usage(&params("", &json!({})).await));
        assert!(!usage(&params("x-simulate: no-usage\r\n", &requested).await));
        assert!(usage(&params("x-simulate: force-usage\r\n", &json!({})).await));
        let refused = params("x-simulate: refuse-usage\r\n", &requested).await;
        assert_eq!(status(&refused), "400");
        assert_eq!(body(&refused)["error"]["code"], 400);
    }
}

#[tokio::test]
async fn invalid_requests_get_the_servers_error_shape() {
    for shape in [Shape::Vllm, Shape::LlamaCpp] {
        let server = bind(Options { models: vec!["m".to_owned()], ..Options::instant(shape) }).await;
        let addr = server.addr();
        let unknown = post(addr, "/v1/nothing", "", &question(json!({}))).await;
        assert_eq!(status(&unknown), "404");
        assert_eq!(body(&unknown).get("detail").is_some(), shape == Shape::Vllm);
        let wrong = post(addr, CHAT, "", &json!({ "messages": 7 })).await;
        assert_eq!(status(&wrong), "400");
        assert_eq!(body(&wrong)["error"]["code"], 400);
        let model = post(addr, CHAT, "", &question(json!({ "model": "other" }))).await;
        assert_eq!(status(&model), "404");
        let mistyped = "x-simulate: cut-afer=3\r\n";
        let mistyped = post(addr, CHAT, mistyped, &question(json!({}))).await;
        assert_eq!(status(&mistyped), "400");
        let down = "x-simulate: error-status=503\r\n";
        let down = post(addr, CHAT, down, &question(json!({}))).await;
        assert_eq!(status(&down), "503");
        assert_eq!(server.counts().refused, 5);
    }
}

#[tokio::test]
async fn models_health_and_metrics_pages_are_served() {
    for shape in [Shape::Vllm, Shape::LlamaCpp] {
        let server = bind(Options { models: vec!["m".to_owned()], ..Options::instant(shape) }).await;
        let addr = server.addr();
        post(addr, CHAT, "", &question(json!({}))).await;
        assert_eq!(body(&get(addr, "/v1/models").await)["data"][0]["id"], "m");
        assert_eq!(status(&get(addr, "/health").await), "200");
        let page = get(addr, "/metrics").await;
        let names = match shape {
            Shape::Vllm => [
                "\nvllm:prompt_tokens_total{engine=\"0\",model_name=\"m\"} 9.0\n",
                "\nvllm:generation_tokens_total{engine=\"0\",model_name=\"m\"} 12.0\n",
                "\nvllm:num_requests_running{engine=\"0\",model_name=\"m\"} 0.0\n",
            ],
            Shape::LlamaCpp => [
                "\nllamacpp:prompt_tokens_total 9\n",
                "\nllamacpp:tokens_predicted_total 12\n",
                "\nllamacpp:requests_processing 0\n",
            ],
        };
        for name in names {
            assert!(page.contains(name), "{page}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_runs_on_a_thread_pool() {
    let server = bind(Options::instant(Shape::Vllm)).await;
    let answer = post(server.addr(), CHAT, "", &question(json!({}))).await;
    assert!(answer.ends_with("0\r\n\r\n"));
    server.shutdown().await;
}
