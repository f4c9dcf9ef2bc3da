//! A real VictoriaMetrics receives tokenmeter's metrics by OTLP, translates their names as Prometheus does, and then
//! has exactly the series and values of the scrape page.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::card::Card;
use crate::daemon::Daemon;
use crate::exposition::{self, Samples, Series};
use crate::http;
use crate::traffic::Line;

/// An empty store that translates OTLP's names.
fn start() -> Daemon {
    let arguments = [
        "-httpListenAddr=127.0.0.1:0",
        "-storageDataPath=data",
        "-opentelemetry.usePrometheusNaming",
        "-retentionPeriod=1d",
        "-loggerFormat=default",
    ];
    let sign = "started server at http://";
    Daemon::start("victoria-metrics", &arguments, [sign, sign], |_| {})
}

/// Labels of the sender, which each series has.
fn is_of_the_sender(label: &str) -> bool {
    let senders = ["service_", "telemetry_", "host_", "os_", "process_", "scope_", "k8s_", "container_"];
    ["job", "instance"].contains(&label) || senders.iter().any(|start| label.starts_with(start))
}

/// The last value of every series in the store.
fn stored(store: &Daemon) -> Samples {
    // The newest values wait in memory for a second or so.
    http::get(store.address, "/internal/force_flush", "*/*");
    let lines = http::get(store.address, "/api/v1/export?match%5B%5D=%7B__name__%21%3D%22%22%7D", "*/*");
    let series = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line is JSON"));
    series
        .map(|series| {
            let last = series["values"].as_array().and_then(|values| values.last()).and_then(Value::as_f64);
            (exposition::of_object(&series["metric"], is_of_the_sender), last.expect("a series has a value"))
        })
        .collect()
}

/// The page, without the values that change between two moments.
fn at_rest(samples: &mut Samples) {
    let restless = [
        "process_",
        "tokenmeter_scrapes_total",
        "tokenmeter_otlp_",
        "hw_",
        "tokenmeter_gpu_",
        "tokenmeter_energy_",
    ];
    samples.retain(|(name, _), _| !restless.iter().any(|start| name.starts_with(start)));
}

/// Compares page and store until they agree; fails the test after half a minute.
fn agree(line: &Line, store: &Daemon) {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let (mut page, mut theirs) = (exposition::of_page(&line.page()), stored(store));
        // Changing series must be on both sides, too; only their values may differ.
        let (here, there) = (series(&page), series(&theirs));
        at_rest(&mut page);
        at_rest(&mut theirs);
        let difference = exposition::difference(&page, &theirs);
        if difference.is_empty() && here == there {
            assert!(page.len() > 300, "only {} series at rest", page.len());
            return;
        }
        assert!(
            Instant::now() < end,
            "page and store differ:\n{}\nseries on one side:\n{:#?}\nstore:\n{}\ntokenmeter:\n{}",
            difference.join("\n"),
            here.symmetric_difference(&there).collect::<Vec<_>>(),
            complaints(store),
            line.proxy.log()
        );
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// Unusual lines of the store's log.
fn complaints(store: &Daemon) -> String {
    let log = store.log();
    log.lines().filter(|line| !line.contains("\tinfo\t")).collect::<Vec<_>>().join("\n")
}

/// Name and labels of every series.
fn series(samples: &Samples) -> BTreeSet<Series> {
    samples.keys().cloned().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs tests/telemetry/install"]
async fn store_returns_what_it_received() {
    // A test of the test: the page itself is imported, in Prometheus' own format.
    let line = Line::start(&[], &[]).await;
    line.ask(10, &[]).await;
    let store = start();
    let page = http::get(line.proxy.admin, "/metrics", "text/plain");
    http::post(store.address, "/api/v1/import/prometheus", &page);
    agree(&line, &store);
}

/// The settings by which tokenmeter sends its metrics to `endpoint` twice a second.
fn environment(endpoint: &str) -> [(&str, &str); 4] {
    [
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", endpoint),
        ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/protobuf"),
        ("OTEL_METRICS_EXPORTER", "otlp"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "500"),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs tests/telemetry/install"]
async fn exported_series_equal_scraped_ones() {
    let card = Card::start().await;
    let store = start();
    let endpoint = format!("http://{}/opentelemetry/v1/metrics", store.address);
    let line = Line::start_full(&card, &[], &environment(&endpoint)).await;
    line.ask(40, &[]).await;
    agree(&line, &store);
    let stored = stored(&store);
    let sum = |wanted: &str| -> f64 {
        stored.iter().filter(|((name, _), _)| name == wanted).map(|(_, value)| value).sum()
    };
    for counted in
        ["tokenmeter_exchanges_total", "tokenmeter_objective_exchanges_total", "tokenmeter_usage_steps_total"]
    {
        assert_eq!(sum(counted), 40.0, "{counted}");
    }
    assert!(sum("hw_energy_joules_total") > 0.0, "and the card");
    assert!(sum("tokenmeter_engine_generation_tokens") > 0.0, "the server's own page is exported too");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs tests/telemetry/install"]
async fn exponential_histograms_match_the_page() {
    let store = start();
    let endpoint = format!("http://{}/opentelemetry/v1/metrics", store.address);
    let aggregation =
        ("OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION", "base2_exponential_bucket_histogram");
    let mut environment = environment(&endpoint).to_vec();
    environment.push(aggregation);
    let line = Line::start(&[], &environment).await;
    line.ask(40, &[]).await;
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let (mut page, mut theirs) = (exposition::of_page(&line.page()), stored(&store));
        let ranges = theirs.keys().filter(|(_, labels)| labels.contains_key("vmrange")).count();
        // The store converts them to buckets of its own.
        for samples in [&mut page, &mut theirs] {
            at_rest(samples);
            samples.retain(|(name, _), _| !name.ends_with("_bucket"));
        }
        let difference = exposition::difference(&page, &theirs);
        if difference.is_empty() && ranges > 20 {
            return;
        }
        let differ = difference.join("\n");
        assert!(Instant::now() < end, "{ranges} ranges; {differ}\nstore:\n{}", complaints(&store));
        std::thread::sleep(Duration::from_millis(300));
    }
}
