//! Other shapes of requests: several choices, no stream, unknown paths.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use faults::{Handle, Options, Server, Shape};

use crate::proxy::Proxy;

async fn in_front_of(shape: Shape) -> (Handle, Proxy) {
    let server = Server::bind("127.0.0.1:0".parse().expect("an address"), Options::instant(shape))
        .await
        .expect("it listens");
    let proxy = Proxy::start(server.addr(), &[]);
    (server, proxy)
}

fn ask(to: SocketAddr, method: &str, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(to).expect("the port is open");
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: sim\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
    .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("UTF-8");
    answer
}

fn body_of(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").expect("a head and a body").1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_unstreamed_answers_need_usage_that_covers_both() {
    for (shape, reported, uncounted) in [(Shape::Vllm, 16.0, 0.0), (Shape::LlamaCpp, 0.0, 1.0)] {
        let (_server, proxy) = in_front_of(shape).await;
        let body = r#"{"model":"sim","n":2,"max_tokens":8,"messages":[{"role":"user","content":"hi"}]}"#;
        let (direct, proxied) = tokio::task::block_in_place(|| {
            let path = "/v1/chat/completions";
            (ask(_server.addr(), "POST", path, body), ask(proxy.data, "POST", path, body))
        });
        assert_eq!(body_of(&direct), body_of(&proxied));
        let page = proxy.page_when("counted", |page| page.sum("tokenmeter_exchanges_total", &[]) == 1.0);
        let of = |labels: &[_]| page.sum("tokenmeter_tokens_total", labels);
        assert_eq!(of(&[("type", "output"), ("provenance", "reported")]) + 0.0, reported, "{shape:?}");
        assert_eq!(of(&[("type", "output")]) + 0.0, reported, "{shape:?}: and by no other source");
        assert_eq!(page.sum("tokenmeter_tenant_uncounted_prompts_total", &[]), uncounted, "{shape:?}");
        let reason = [("reason", "not_streamed")];
        assert_eq!(page.sum("tokenmeter_no_first_token_total", &reason), 1.0, "{shape:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_paths_are_forwarded_and_counted() {
    let (server, proxy) = in_front_of(Shape::Vllm).await;
    tokio::task::block_in_place(|| {
        for path in ["/v1/models", "/health", "/metrics", "/v1/nope"] {
            let (direct, proxied) = (ask(server.addr(), "GET", path, ""), ask(proxy.data, "GET", path, ""));
            assert_eq!(direct.lines().next(), proxied.lines().next(), "{path}");
            if path != "/metrics" {
                assert_eq!(body_of(&direct), body_of(&proxied), "{path}");
            }
        }
    });
    let page = proxy.page();
    assert_eq!(page.sum("tokenmeter_passthrough_total", &[("reason", "path")]), 4.0);
    assert_eq!(page.sum("tokenmeter_exchanges_total", &[]), 0.0);
}
