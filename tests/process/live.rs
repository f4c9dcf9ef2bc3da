//! The live counter lags a stream by at most a second, even if the stream stalls.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use faults::{Options, Server, Shape};

use crate::proxy::{DEADLINE, Proxy};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_show_before_the_stream_ends() {
    let server = Server::bind("127.0.0.1:0".parse().expect("an address"), Options::instant(Shape::Vllm))
        .await
        .expect("it listens");
    let proxy = Proxy::start(server.addr(), &[]);
    let body = r#"{"model":"sim","stream":true,"max_tokens":50,"messages":[{"role":"user","content":"hi"}]}"#;
    let mut stream = TcpStream::connect(proxy.data).expect("the data port is open");
    write!(
        stream,
        "POST /v1/chat/completions HTTP/1.1\r\nHost: sim\r\nContent-Length: {}\r\n\
         x-simulate: hang-after=12\r\n\r\n{body}",
        body.len()
    )
    .expect("it reads");
    tokio::task::block_in_place(|| {
        // The client has the twelfth token; the page must follow within a second.
        let mut seen = 0;
        for line in BufReader::new(stream.try_clone().expect("a socket")).lines() {
            seen += usize::from(line.expect("UTF-8").contains("\"content\":\""));
            if seen >= 12 {
                break;
            }
        }
        let began = Instant::now();
        let page = proxy.page_when("twelve live tokens", |page| {
            page.sum("tokenmeter_live_output_tokens_total", &[("model", "sim")]) >= 12.0
        });
        assert!(began.elapsed() < Duration::from_secs(1));
        assert_eq!(page.sum("tokenmeter_exchanges_in_flight", &[("model", "sim")]), 1.0);
        assert_eq!(page.sum("tokenmeter_tokens_total", &[]), 0.0, "the final counter waits for the ending");
    });
    drop(stream);
    proxy.page_when("the ending", |page| {
        page.sum("tokenmeter_exchanges_total", &[("ending", "client_abort")]) == 1.0
    });
    server.until(DEADLINE, |counts| counts.running == 0).await.expect("generation stops");
}
