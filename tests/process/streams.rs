//! A thousand slow streams on one proxy: no error; the memory of each is printed.

use std::time::Duration;

use chance::Side;
use faults::{Counts, Options, Server, Shape};
use simulator::load::Load;
use simulator::speed::Model;

use crate::proxy::Proxy;

/// The memory of one stream: scanner and meter (3 KiB), two sockets, headers. The bound detects leaks and is no target.
const MOST_PER_STREAM: u64 = 128 * 1024;

const STREAMS: u64 = 1_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_slow_streams() {
    let reason = "the bound is of streams without TLS, and one bridge takes as long as they last";
    if Side::Clients.excludes(reason) || Side::Upstreams.excludes(reason) {
        return;
    }
    // On a busy machine the first streams of a fast server end before the last ones begin.
    for step_ms in [150, 600, 2_400] {
        if run_at_once(Duration::from_millis(step_ms)).await {
            return;
        }
    }
    panic!("the streams never ran all at once");
}

/// Checks that many streams with this time between two tokens; returns false if they did not all run at one time.
async fn run_at_once(step_base: Duration) -> bool {
    let speed = Model {
        step_base,
        step_per_sequence: Duration::ZERO,
        max_num_seqs: 2_000,
        prefill_tokens_per_second: 1e9,
        ..Model::default()
    };
    let options = Options { shape: Shape::Vllm, speed, ..Options::default() };
    let server = Server::bind("127.0.0.1:0".parse().expect("an address"), options).await.expect("it listens");
    let proxy = Proxy::start(server.addr(), &["--workers", "1"]);
    let mut load = Load::new(proxy.data);
    load.concurrency = STREAMS as u32;
    load.requests = STREAMS;
    load.output_tokens = 60;
    let idle = proxy.resident();
    let running = tokio::spawn(async move { simulator::load::run(&load).await });

    let begun = |counts: &Counts| counts.running == STREAMS || counts.completed > 0;
    let counts = server.until(Duration::from_secs(600), begun).await.expect("the streams begin");
    let per_stream = (proxy.resident().saturating_sub(idle)) / STREAMS;

    let report = running.await.expect("no panic").expect("the load can run");
    assert_eq!((report.completed, report.failures.len()), (STREAMS, 0), "{:?}", report.failures);
    let page =
        proxy.page_when("all ended", |page| page.sum("tokenmeter_exchanges_total", &[]) == STREAMS as f64);
    assert_eq!(
        page.sum("tokenmeter_tokens_total", &[("type", "output"), ("provenance", "reported")]),
        server.counts().generated_tokens as f64
    );
    assert_eq!(page.sum("tokenmeter_dropped_total", &[]), 0.0);

    if counts.running < STREAMS {
        return false;
    }
    println!(
        "memory per stream: {:.1} KiB (idle {:.1} MiB)",
        per_stream as f64 / 1024.0,
        idle as f64 / 1_048_576.0
    );
    assert!(per_stream < MOST_PER_STREAM, "{per_stream} bytes a stream");
    true
}
