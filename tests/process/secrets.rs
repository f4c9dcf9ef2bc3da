//! Nothing of a prompt, a response or a key leaves the process: the test puts canaries wherever a client can write, and
//! searches everything that an operator can read.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use collector::faithful::{Collector, Seen};
use faults::{Options, Server, Shape};

use crate::meter_page::get;
use crate::proxy::{DEADLINE, Proxy};
use crate::scripted;

pub(crate) const CANARY: &str = "zq7canary";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn canaries_are_found_nowhere() {
    let server = Server::bind("127.0.0.1:0".parse().expect("an address"), Options::instant(Shape::Vllm))
        .await
        .expect("it listens");
    let proxy = Proxy::start(server.addr(), &["--log-level", "trace", "--access-log"]);
    let answers = tokio::task::block_in_place(|| {
        let mut answers = String::new();
        for (path, stream, fault) in [
            ("/v1/chat/completions", true, "ping-every=1s"),
            ("/v1/chat/completions", false, "ping-every=1s"),
            ("/v1/chat/completions", true, "error-in-band-after=2"),
            ("/v1/chat/completions", true, "cut-after=2"),
            ("/v1/nowhere", false, "ping-every=1s"),
            ("//[bad", false, "ping-every=1s"),
        ] {
            let body = format!(
                r#"{{"model":"sim","stream":{stream},"max_tokens":9,"user":"{CANARY}","messages":[{{"role":"user","content":"{CANARY}"}}]}}"#
            );
            let mut socket = TcpStream::connect(proxy.data).expect("the data port is open");
            write!(
                socket,
                "POST {path}?key={CANARY} HTTP/1.1\r\nHost: sim\r\nAuthorization: Bearer {CANARY}\r\n\
                 Cookie: id={CANARY}\r\nX-Api-Key: {CANARY}\r\nX-{CANARY}: 1\r\nContent-Length: {}\r\n\
                 Connection: close\r\nx-simulate: {fault}\r\n\r\n{body}",
                body.len()
            )
            .expect("it reads");
            let mut answer = Vec::new();
            // A cut answer may end with a reset.
            let _ = socket.read_to_end(&mut answer);
            answers.push_str(&String::from_utf8_lossy(&answer));
        }
        answers
    });
    let metrics =
        proxy.page_when("four exchanges", |page| page.sum("tokenmeter_exchanges_total", &[]) == 4.0);
    let page = numbers(&proxy);
    // The access log's lines follow within a moment.
    let end = Instant::now() + DEADLINE;
    while proxy.log().matches("\"message\":\"exchange\"").count() < 4 {
        assert!(Instant::now() < end, "four exchanges, and the log has: {}", proxy.log());
        std::thread::sleep(Duration::from_millis(10));
    }
    let answer_word = answers
        .split("\"content\":\"")
        .filter_map(|rest| rest.split('"').next())
        .find(|word| word.trim().len() > 3)
        .expect("some text was answered")
        .trim();
    for (place, text) in [("metrics", &metrics.text), ("page", &page), ("log", &proxy.log())] {
        assert!(text.len() > 100, "{place} is empty: {text}");
        assert!(!text.contains(CANARY), "{place} tells: {text}");
        assert!(place != "log" || !text.contains(answer_word), "the log contains an answer: {text}");
    }
}

/// A different canary for each place, so that a leaked one identifies its source.
pub(crate) fn canary(place: &str) -> String {
    format!("{CANARY}-{place}-")
}

/// The kind of request in `x-ask`, and the end of its exchange.
pub(crate) const ASKED: [(&str, &str); 5] = [
    ("stream", "complete"),
    ("body", "complete"),
    ("refusal", "error_status"),
    ("error", "error_in_band"),
    ("cut", "upstream_cut"),
];

/// Returns the numbers of the live page.
fn numbers(proxy: &Proxy) -> String {
    let paths = ["/api/now", "/api/curve", "/api/history?scope=all"];
    paths.map(|path| get(proxy.admin, path).expect("the page answers")).concat()
}

#[test]
fn no_telemetry_contains_a_canary() {
    for protocol in ["http/protobuf", "grpc"] {
        let collector = Collector::new();
        let endpoint = format!("http://{}", collector.address);
        let environment = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol),
            ("OTEL_METRIC_EXPORT_INTERVAL", "100"),
        ];
        let mut options = vec!["--otlp-signals", "metrics,traces,logs", "--drain-delay-ms", "0"];
        options.extend(["--log-level", "trace", "--access-log"]);
        let mut proxy = Proxy::start_with(scripted::server(answer), &options, &environment);
        for (asked, _) in ASKED {
            ask(&proxy, asked);
        }
        let all = ASKED.len();
        let metrics =
            proxy.page_when("all ended", |page| page.sum("tokenmeter_exchanges_total", &[]) == all as f64);
        for (asked, ending) in ASKED {
            let ended = metrics.sum("tokenmeter_exchanges_total", &[("ending", ending)]);
            assert!(ended >= 1.0, "{asked} is not {ending}: {}", metrics.text);
        }
        let page = numbers(&proxy);
        drop(collector.once(|seen| !seen.metrics.is_empty()));
        proxy.terminate();
        assert!(proxy.ended(Duration::from_secs(15)).success(), "{}", proxy.log());

        let seen = collector.seen();
        assert_eq!((seen.spans().len(), seen.log_records().len()), (2 * all, all), "{protocol}");
        let told = telemetry(&seen);
        assert!(told.contains("tokenmeter.tokens") && told.contains("chat sim"), "{protocol}: {told}");
        for (place, text) in
            [("telemetry", &told), ("metrics", &metrics.text), ("page", &page), ("log", &proxy.log())]
        {
            let out = text.find(CANARY).map(|at| text[at..].split('-').nth(1));
            assert_eq!(out, None, "{protocol}: {place} tells: {text:?}");
        }
    }
}

/// Every byte of every request: heads and bodies.
fn telemetry(seen: &Seen) -> String {
    let heads = seen.heads.iter().map(|(path, fields, _)| format!("{path} {fields:?}"));
    let bodies = seen.bodies.iter().map(|body| String::from_utf8_lossy(body).into_owned());
    heads.chain(bodies).collect::<Vec<_>>().join("\n")
}

pub(crate) fn ask(proxy: &Proxy, asked: &str) {
    let [prompt, user, offered] = ["prompt", "user", "offered"].map(canary);
    let tool = format!(r#"{{"type":"function","function":{{"name":"{offered}","parameters":{{}}}}}}"#);
    let body = format!(
        r#"{{"model":"sim","stream":{},"user":"{user}","tools":[{tool}],"messages":[{{"role":"user","content":"{prompt}"}}]}}"#,
        asked != "body"
    );
    let mut socket = TcpStream::connect(proxy.data).expect("the data port is open");
    write!(
        socket,
        "POST /v1/chat/completions?key={} HTTP/1.1\r\nHost: sim\r\nAuthorization: Bearer {}\r\n\
         Cookie: id={}\r\nX-Api-Key: {}\r\nUser-Agent: {}\r\nx-ask: {asked}\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        canary("query"),
        canary("authorization"),
        canary("cookie"),
        canary("key"),
        canary("agent"),
        body.len()
    )
    .expect("it reads");
    let mut answer = Vec::new();
    // A cut answer may end with a reset.
    let _ = socket.read_to_end(&mut answer);
    assert!(String::from_utf8_lossy(&answer).contains(CANARY), "{asked}: the client receives all of it");
}

pub(crate) fn answer(head: &str) -> Vec<u8> {
    let asked = head.lines().find_map(|line| line.strip_prefix("x-ask: ")).expect("every request asks");
    let [word, reasoning, arguments, message] = ["answer", "reasoning", "arguments", "message"].map(canary);
    let call = format!(
        r#"{{"index":0,"id":"call-1","type":"function","function":{{"name":"f","arguments":"{{\"a\":\"{arguments}\"}}"}}}}"#
    );
    let said = format!(r#""reasoning_content":"{reasoning}","content":"{word}","tool_calls":[{call}]"#);
    let envelope = r#""id":"chatcmpl-1","model":"sim""#;
    let usage = r#""usage":{"prompt_tokens":3,"completion_tokens":5,"total_tokens":8}"#;
    let error = format!(r#"{{"error":{{"message":"{message}","type":"{message}","code":"{message}"}}}}"#);
    let frame = |choice: &str| format!("data: {{{envelope},\"choices\":[{choice}]}}\n\n");
    let frames = frame(&format!(r#"{{"index":0,"delta":{{{said}}}}}"#)).repeat(3);
    let finish = frame(r#"{"index":0,"delta":{},"finish_reason":"tool_calls"}"#);
    let (status, kind, body) = match asked {
        "stream" => {
            let last = format!("data: {{{envelope},\"choices\":[],{usage}}}\n\ndata: [DONE]\n\n");
            ("200 OK", "text/event-stream", frames + &finish + &last)
        }
        "error" => ("200 OK", "text/event-stream", format!("{frames}data: {error}\n\ndata: [DONE]\n\n")),
        "cut" => ("200 OK", "text/event-stream", frames),
        "refusal" => ("500 Internal Server Error", "application/json", error),
        "body" => {
            let choice = format!(r#"{{"index":0,"message":{{{said}}},"finish_reason":"tool_calls"}}"#);
            ("200 OK", "application/json", format!("{{{envelope},\"choices\":[{choice}],{usage}}}"))
        }
        other => panic!("no request for {other}"),
    };
    // More than is sent, so that the body is cut.
    let length = body.len() + usize::from(asked == "cut");
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         X-Told: {message}\r\nConnection: close\r\n\r\n"
    );
    (head + &body).into_bytes()
}
