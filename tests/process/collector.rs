//! Export under load to a collector with each of ten faults: no request fails, memory stays bounded, and every
//! span and log record is counted as sent or dropped.

use std::time::Duration;

use collector::{Collector, Fault};
use faults::{Handle, Options, Server, Shape};
use simulator::load::{Load, Report};
use simulator::speed::Model;

use crate::meter_page::Page;
use crate::proxy::Proxy;

/// Requests of one load; each is two spans and one log record.
const REQUESTS: u64 = 600;
/// Queue limits far below that, so that a collector that accepts nothing fills them.
const QUEUE: &str = "100";
/// The memory that telemetry may hold besides its queues: a connection, an export and its reply.
const MOST_MEMORY: u64 = 16 * 1024 * 1024;
/// Time to exit: nothing to drain, and the exporter's last flush has its deadline.
const TO_END: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn working_collector_gets_everything() {
    let (proxy, collector, _server, report) = under_load(Fault::None).await;
    assert_eq!((report.completed, report.failures.len()), (REQUESTS, 0), "{:?}", report.failures);
    let page = proxy.page_when("all is sent", |page| {
        items(page, "span", "sent") == 2 * REQUESTS && items(page, "log", "sent") == REQUESTS
    });
    assert_accounted(&page, Fault::None);
    for signal in ["span", "log"] {
        assert_eq!(dropped(&page, signal), 0, "{signal}");
    }
    assert!(collector.requests() > 3);
}

/// One at a time, so that each has the machine to itself, and its memory is its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn collector_faults_never_affect_traffic() {
    let mut ending = Vec::new();
    for fault in Fault::ALL {
        let (proxy, collector, _server, report) = under_load(fault).await;
        let name = fault.name();
        assert_eq!((report.completed, report.failures.len()), (REQUESTS, 0), "{name}: {:?}", report.failures);
        let page = proxy.page_when("all is made", |page| {
            items(page, "span", "made") == 2 * REQUESTS && items(page, "log", "made") == REQUESTS
        });
        assert_accounted(&page, fault);
        match fault {
            // An unreadable answer is still a 200, so the items count as accepted.
            Fault::Bomb | Fault::Garbage | Fault::Huge => {}
            _ => assert_eq!(items(&page, "span", "sent"), 0, "{name}"),
        }
        assert_eq!(collector.redirected(), 0, "{name}: a redirection was followed");
        proxy.terminate();
        ending.push((name, proxy, collector));
    }
    // Each last flush may take its whole deadline; they run in parallel.
    for (name, mut proxy, _collector) in ending {
        assert!(proxy.ended(TO_END).success(), "{name}: {}", proxy.log());
    }
}

async fn under_load(fault: Fault) -> (Proxy, Collector, Handle, Report) {
    let speed = Model {
        step_base: Duration::from_millis(1),
        step_per_sequence: Duration::ZERO,
        prefill_tokens_per_second: 1e9,
        ..Model::default()
    };
    let options = Options { shape: Shape::Vllm, speed, ..Options::default() };
    let server = Server::bind("127.0.0.1:0".parse().expect("an address"), options).await.expect("it listens");
    let collector = Collector::start(fault).expect("a port");
    let url = collector.url();
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()),
        ("OTEL_METRIC_EXPORT_INTERVAL", "100"),
        ("OTEL_BSP_SCHEDULE_DELAY", "50"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", QUEUE),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "50"),
        ("OTEL_BLRP_SCHEDULE_DELAY", "50"),
        ("OTEL_BLRP_MAX_QUEUE_SIZE", QUEUE),
        ("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", "50"),
    ];
    let environment = match fault {
        // Large queues: this one must get everything.
        Fault::None => &environment[..3],
        _ => &environment[..8],
    };
    let signals = ["--otlp-signals", "metrics,traces,logs", "--drain-delay-ms", "0"];
    let proxy = Proxy::start_with(server.addr(), &signals, environment);
    let idle = proxy.resident();
    let mut load = Load::new(proxy.data);
    load.concurrency = 16;
    load.requests = REQUESTS;
    load.output_tokens = 10;
    let report = simulator::load::run(&load).await.expect("the load can run");
    let grown = proxy.resident().saturating_sub(idle);
    assert!(grown < MOST_MEMORY, "{}: {grown} bytes more", fault.name());
    (proxy, collector, server, report)
}

fn items(page: &Page, signal: &str, outcome: &str) -> u64 {
    page.sum("tokenmeter_otlp_items_total", &[("signal", signal), ("outcome", outcome)]) as u64
}

fn dropped(page: &Page, signal: &str) -> u64 {
    ["full", "refused", "unreachable", "shutdown"]
        .iter()
        .map(|why| items(page, signal, &format!("dropped_{why}")))
        .sum()
}

fn assert_accounted(page: &Page, fault: Fault) {
    for signal in ["span", "log"] {
        let made = items(page, signal, "made");
        let queued = page.sum("tokenmeter_otlp_queued_items", &[("signal", signal)]) as u64;
        let gone = items(page, signal, "sent") + dropped(page, signal);
        assert_eq!(made, gone + queued, "{}: {signal}", fault.name());
    }
    let told = page.sum("tokenmeter_dropped_total", &[("what", "span")]) as u64;
    assert_eq!(told, dropped(page, "span"), "{}", fault.name());
}
