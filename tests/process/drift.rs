//! The server's own counters beside tokenmeter's: no drift while all requests use the proxy, and the exact number of
//! tokens that bypass it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use faults::{Handle, Options, Server, Shape};
use simulator::load::Load;

use crate::meter_page::Page;
use crate::proxy::Proxy;
use crate::scripted;

const EVERY_SECOND: [&str; 4] = ["--engine-metrics", "on", "--engine-metrics-interval-ms", "1000"];

async fn server(shape: Shape) -> Handle {
    let address = "127.0.0.1:0".parse().expect("an address");
    Server::bind(address, Options::instant(shape)).await.expect("it listens")
}

async fn ask(address: std::net::SocketAddr, requests: u64) {
    let mut load = Load::new(address);
    load.requests = requests;
    load.concurrency = 4;
    load.model = Some("sim".to_owned());
    let report = simulator::load::run(&load).await.expect("the load can run");
    assert_eq!(report.completed, requests, "{report:?}");
}

fn drift(page: &Page, direction: &str) -> f64 {
    page.sum("tokenmeter_engine_drift_tokens", &[("direction", direction)])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drift_equals_tokens_that_bypass_the_proxy() {
    for (shape, kind) in [(Shape::Vllm, "vllm"), (Shape::LlamaCpp, "llama_cpp")] {
        let server = server(shape).await;
        let proxy = Proxy::start(server.addr(), &EVERY_SECOND);
        tokio::task::block_in_place(|| {
            proxy.page_when("the baseline", |page| page.sum("tokenmeter_engine_up", &[]) == 1.0)
        });
        let asked = server.counts();
        assert_eq!((asked.generated_tokens, asked.prompt_tokens), (0, 0), "asking generates nothing");

        ask(proxy.data, 20).await;
        let through = server.counts();
        let prompt = through.prompt_tokens + through.cached_tokens;
        let counted = |page: &Page| {
            let names = ["tokenmeter_engine_prompt_tokens", "tokenmeter_engine_generation_tokens"];
            names.map(|name| page.sum(name, &[])) == [prompt as f64, through.generated_tokens as f64]
        };
        let page = tokio::task::block_in_place(|| {
            // The proxy's own count may be a moment behind.
            proxy.page_when("the proxied tokens, and no drift", |page| {
                counted(page) && (drift(page, "input"), drift(page, "output")) == (0.0, 0.0)
            })
        });
        assert_eq!(page.sum("tokenmeter_engine_info", &[("kind", kind)]), 1.0);
        assert_eq!(page.sum("tokenmeter_engine_running_requests", &[]), 0.0);

        ask(server.addr(), 5).await;
        let all = server.counts();
        let input = all.prompt_tokens + all.cached_tokens - prompt;
        let output = all.generated_tokens - through.generated_tokens;
        assert!(input > 0 && output > 0);
        tokio::task::block_in_place(|| {
            proxy.page_when("the tokens that bypass the proxy", |page| {
                (drift(page, "input"), drift(page, "output")) == (input as f64, output as f64)
            })
        });
        drop(server);
        let page = tokio::task::block_in_place(|| {
            proxy.page_when("its end", |page| {
                page.text.contains("tokenmeter_engine_up{") && page.sum("tokenmeter_engine_up", &[]) == 0.0
            })
        });
        assert!(!page.text.contains("tokenmeter_engine_drift_tokens{"), "{}", page.text);
    }
}

/// vLLM without `--enable-prompt-tokens-details`: its page counts cache hits that its usage does not report.
#[test]
fn hidden_cached_tokens_are_logged_once() {
    let served = Arc::new(Mutex::new(0_u64));
    let server = scripted::server(move |head| {
        let mut served = served.lock().expect("no test has panicked");
        let (kind, body) = if head.starts_with("GET /metrics ") {
            let (prompt, cached, output) = (*served * 1000, *served * 600, *served * 10);
            let computed = prompt - cached;
            let page = format!(
                "# TYPE vllm:prompt_tokens counter\nvllm:prompt_tokens_total {prompt}.0\n\
                 vllm:generation_tokens_total {output}.0\n\
                 vllm:prompt_tokens_by_source_total{{source=\"local_compute\"}} {computed}.0\n\
                 vllm:prompt_tokens_by_source_total{{source=\"local_cache_hit\"}} {cached}.0\n"
            );
            ("text/plain; version=0.0.4", page)
        } else {
            *served += u64::from(head.starts_with("POST "));
            let usage = r#"{"choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":10,"prompt_tokens_details":null}}"#;
            ("application/json", usage.to_owned())
        };
        answer(kind, &body)
    });
    let proxy = Proxy::start(server, &[&EVERY_SECOND[..], &["--kind", "vllm"]].concat());
    proxy.page_when("the baseline", |page| page.sum("tokenmeter_engine_up", &[]) == 1.0);
    assert!(!proxy.log().contains(HIDDEN), "no prompt is cached yet");
    chat(&proxy);
    let line = proxy.log_line(HIDDEN);
    assert!(line.contains("WARN") && line.contains("600"), "{line}");
    assert!(line.contains("start it with --enable-prompt-tokens-details"), "{line}");
    chat(&proxy);
    proxy.page_when("the second one", |page| page.sum("tokenmeter_engine_prompt_tokens", &[]) == 2000.0);
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert_eq!(proxy.log().matches(HIDDEN).count(), 1, "{}", proxy.log());
}

const HIDDEN: &str = "the server's page shows cached prompt tokens that its usage does not report";

/// A chat of one request, answered 200.
fn chat(proxy: &Proxy) {
    let mut client = TcpStream::connect(proxy.data).expect("it listens");
    let head =
        "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 2\r\n\r\n";
    client.write_all(format!("{head}{{}}").as_bytes()).expect("it reads");
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("it answers");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

fn answer(kind: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close");
    format!("{head}\r\n\r\n{body}").into_bytes()
}

#[test]
fn access_log_has_the_servers_own_times() {
    let server = scripted::server(|_| {
        answer(
            "application/json",
            r#"{"choices":[{"index":0,"message":{}}],"usage":{"prompt_tokens":7,"completion_tokens":2},"metrics":{"queue_time_ms":12.5,"speculative_decoding":{"num_draft_tokens":129,"num_accepted_draft_tokens":10}}}"#,
        )
    });
    let proxy = Proxy::start(server, &["--access-log"]);
    chat(&proxy);
    let line = proxy.log_line("\"target\":\"access\"");
    for member in ["\"queue_ms\":12.5", "\"draft_tokens\":129", "\"accepted_draft_tokens\":10"] {
        assert!(line.contains(member), "{member}: {line}");
    }
    assert!(!line.contains("decode_ms"), "{line}");
}
