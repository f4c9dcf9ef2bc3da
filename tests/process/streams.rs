//! A thousand slow streams on one proxy: no error; the memory of each is printed.

use std::time::Duration;

use chance::Side;
use faults::{Options, Server, Shape};
use simulator::load::Load;
use simulator::speed::Model;

use crate::proxy::Proxy;

/// The memory of one stream: scanner and meter (3 KiB), two sockets' hyper connections with their buffers, headers. The
/// measured value is about a third of this; the bound detects leaks and is no target.
const MOST_PER_STREAM: u64 = 128 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_slow_streams() {
    const STREAMS: u64 = 1_000;
    let speed = Model {
        step_base: Duration::from_millis(150),
        step_per_sequence: Duration::ZERO,
        max_num_seqs: 2_000,
        prefill_tokens_per_second: 1e9,
        ..Model::default()
    };
    let options = Options { shape: Shape::Vllm, speed, ..Options::default() };
    let reason = "the bound is of streams without TLS, and one bridge takes as long as they last";
    if Side::Clients.excludes(reason) || Side::Upstreams.excludes(reason) {
        return;
    }
    let server = Server::bind("127.0.0.1:0".parse().expect("an address"), options).await.expect("it listens");
    let proxy = Proxy::start(server.addr(), &["--workers", "1"]);
    let mut load = Load::new(proxy.data);
    load.concurrency = STREAMS as u32;
    load.requests = STREAMS;
    load.output_tokens = 60;
    let idle = proxy.resident();
    let running = tokio::spawn(async move { simulator::load::run(&load).await });

    let all = server.until(Duration::from_secs(60), |counts| counts.running == STREAMS).await;
    all.expect("all streams run at once");
    let per_stream = (proxy.resident().saturating_sub(idle)) / STREAMS;
    println!(
        "memory per stream: {:.1} KiB (idle {:.1} MiB)",
        per_stream as f64 / 1024.0,
        idle as f64 / 1_048_576.0
    );
    assert!(per_stream < MOST_PER_STREAM, "{per_stream} bytes a stream");

    let report = running.await.expect("no panic").expect("the load can run");
    assert_eq!((report.completed, report.failures.len()), (STREAMS, 0), "{:?}", report.failures);
    let page =
        proxy.page_when("all ended", |page| page.sum("tokenmeter_exchanges_total", &[]) == STREAMS as f64);
    assert_eq!(
        page.sum("tokenmeter_tokens_total", &[("type", "output"), ("provenance", "reported")]),
        server.counts().generated_tokens as f64
    );
    assert_eq!(page.sum("tokenmeter_dropped_total", &[]), 0.0);
}
