//! Nothing of a prompt, an answer or a key leaves the process: canaries are put wherever a client
//! can write, and looked for wherever an operator can read.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use simulator::server::{Options, Server, Shape};

use crate::meter_page::get;
use crate::proxy::Proxy;

const CANARY: &str = "zq7canary";

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
            // A cut answer may end in a reset.
            let _ = socket.read_to_end(&mut answer);
            answers.push_str(&String::from_utf8_lossy(&answer));
        }
        answers
    });
    let metrics =
        proxy.page_when("four exchanges", |page| page.sum("tokenmeter_exchanges_total", &[]) == 4.0);
    let page = get(proxy.admin, "/").expect("the page answers");
    // The access lines follow within a moment.
    let end = Instant::now() + Duration::from_secs(5);
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
        assert!(place != "log" || !text.contains(answer_word), "the log tells an answer: {text}");
    }
}
