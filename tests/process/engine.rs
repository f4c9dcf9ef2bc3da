//! The server's own counters beside ours: nothing drifts while everything passes through the
//! proxy, and what goes past it is seen to the token.

use simulator::load::{Load, Pace};
use simulator::server::{Handle, Options, Server, Shape};

use crate::meter_page::Page;
use crate::proxy::Proxy;

const EVERY_SECOND: [&str; 4] = ["--engine-metrics", "on", "--engine-metrics-interval-ms", "1000"];

async fn server(shape: Shape) -> Handle {
    let address = "127.0.0.1:0".parse().expect("an address");
    Server::bind(address, Options::instant(shape)).await.expect("it listens")
}

async fn ask(address: std::net::SocketAddr, requests: u64) {
    let mut load = Load::new(address);
    load.requests = requests;
    load.pace = Pace::Closed { concurrency: 4 };
    load.model = Some("sim".to_owned());
    let report = simulator::load::run(&load).await.expect("the load can run");
    assert_eq!(report.completed, requests, "{report:?}");
}

fn drift(page: &Page, direction: &str) -> f64 {
    page.sum("tokenmeter_engine_drift_tokens", &[("direction", direction)])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drift_is_what_went_past_us() {
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
            // Our own count may be a moment behind.
            proxy.page_when("what went through, and no drift", |page| {
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
            proxy.page_when("what went past us", |page| {
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
