//! A real Prometheus scrapes a real tokenmeter in each of the three formats: it accepts every page, stores its values,
//! and evaluates the rules.

use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use collector::{Collector, Fault};
use metrics::{Kind, Metric};
use serde_json::Value;

use crate::card::Card;
use crate::daemon::Daemon;
use crate::exposition::{self, Samples};
use crate::expressions;
use crate::http;
use crate::programs::program;
use crate::traffic::Line;

/// One scrape job for each format: its name, and Prometheus' name of the format.
const FORMS: [(&str, &str); 3] = [
    ("openmetrics", "OpenMetricsText1.0.0"),
    ("protobuf", "PrometheusProto"),
    ("text", "PrometheusText0.0.4"),
];

/// Families that a scrape itself changes.
const RESTLESS: [&str; 2] = ["process_", "tokenmeter_scrapes_total"];

/// A Prometheus that scrapes `target` each second in every format, with the rules of the chart.
fn start(target: SocketAddr) -> Daemon {
    // A setting from 3.8 on, before that a feature flag.
    let (setting, feature) = if version() >= (3, 8) {
        ("  scrape_native_histograms: true\n", "exemplar-storage")
    } else {
        ("", "exemplar-storage,native-histograms")
    };
    let rules = concat!(env!("CARGO_MANIFEST_DIR"), "/../../helm/tokenmeter/rules/*.yaml");
    let mut settings = format!(
        "global:\n  scrape_interval: 1s\n  scrape_timeout: 1s\n  evaluation_interval: 1s\n{setting}\
         rule_files: ['{rules}']\nscrape_configs:\n"
    );
    for (job, protocol) in FORMS {
        settings += &format!(
            "- {{ job_name: {job}, scrape_protocols: [{protocol}], always_scrape_classic_histograms: true, \
             static_configs: [{{ targets: ['{target}'] }}] }}\n"
        );
    }
    let feature = format!("--enable-feature={feature}");
    let arguments = [
        "--config.file=prometheus.yaml",
        "--storage.tsdb.path=data",
        "--web.listen-address=127.0.0.1:0",
        feature.as_str(),
    ];
    let signs = ["msg=\"Listening on\"", "ready to receive web requests"];
    Daemon::start("prometheus", &arguments, signs, |folder| {
        std::fs::write(folder.join("prometheus.yaml"), settings).expect("it can be written");
    })
}

fn version() -> (u32, u32) {
    let output = Command::new(program("prometheus")).arg("--version").output().expect("it runs");
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let numbers = said.split("version ").nth(1).unwrap_or_else(|| panic!("no version in {said}"));
    let mut numbers = numbers.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok());
    (numbers.next().expect("a version"), numbers.next().expect("a version"))
}

/// Queries until there is an answer; fails the test after half a minute.
fn when<T>(what: &str, prometheus: &Daemon, ask: impl Fn() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "{what}: not within half a minute; Prometheus:\n{}", prometheus.log());
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn query(prometheus: &Daemon, expression: &str) -> Value {
    http::api(prometheus.address, "/api/v1/query", &[("query", expression)])
}

/// The single value of an expression.
fn number(prometheus: &Daemon, expression: &str) -> Option<f64> {
    query(prometheus, expression)["result"][0]["value"][1].as_str()?.parse().ok()
}

/// Waits until each format was scraped with this many exchanges on the page.
fn scraped(prometheus: &Daemon, exchanges: u64) {
    for (job, _) in FORMS {
        when(&format!("{job}: a scrape"), prometheus, || {
            let sum = number(prometheus, &format!("sum(tokenmeter_exchanges_total{{job=\"{job}\"}})"))?;
            (sum == exchanges as f64).then_some(())
        });
    }
}

fn at_rest(samples: &mut Samples) {
    samples.retain(|(name, _), _| !RESTLESS.iter().any(|restless| name.starts_with(restless)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs tests/telemetry/install"]
async fn every_format_is_accepted_and_stored_unchanged() {
    let line = Line::start(&["--objective", "floor"], &[]).await;
    line.ask(40, &[]).await;
    let prometheus = start(line.proxy.admin);
    scraped(&prometheus, 40);
    let targets = http::api(prometheus.address, "/api/v1/targets", &[]);
    let targets = targets["activeTargets"].as_array().expect("targets");
    assert_eq!(targets.len(), FORMS.len());
    for target in targets {
        assert_eq!((&target["health"], &target["lastError"]), (&"up".into(), &"".into()), "{target}");
    }
    for (job, _) in FORMS {
        assert_eq!(number(&prometheus, &format!("up{{job=\"{job}\"}}")), Some(1.0));
        let asked = format!("tokenmeter_scrapes_total{{job=\"{job}\", format=\"{job}\"}}");
        when(&format!("a page in {job}"), &prometheus, || {
            number(&prometheus, &asked).filter(|pages| *pages >= 1.0)
        });
        let mut ours = exposition::of_page(&line.page());
        at_rest(&mut ours);
        assert!(ours.len() > 300, "only {} constant series", ours.len());
        let all = format!("{{job=\"{job}\", __name__=~\"(tokenmeter|gen_ai|hw)_.*\", __name__!~\".*:.*\"}}");
        let mut theirs = exposition::of_vector(&query(&prometheus, &all), &["job", "instance"]);
        at_rest(&mut theirs);
        let difference = exposition::difference(&ours, &theirs);
        assert!(difference.is_empty(), "{job}:\n{}", difference.join("\n"));
    }
    let log = prometheus.log();
    let complaints: Vec<&str> =
        log.lines().filter(|line| line.contains("level=WARN") || line.contains("level=ERROR")).collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs tests/telemetry/install"]
async fn every_family_has_its_type_and_help() {
    let line = Line::start(&["--semconv", "client"], &[]).await;
    line.ask(4, &[]).await;
    let prometheus = start(line.proxy.admin);
    scraped(&prometheus, 4);
    let page = exposition::of_page(&line.page());
    for (job, _) in FORMS {
        let target = format!("{{job=\"{job}\"}}");
        let told = http::api(prometheus.address, "/api/v1/targets/metadata", &[("match_target", &target)]);
        let told = told.as_array().expect("families");
        let mut missing = Vec::new();
        for metric in Metric::ALL.iter().filter(|metric| **metric != Metric::ClientTokenUsage) {
            let entry = metric.entry();
            // OpenMetrics names a counter's family without `_total`.
            let names = [entry.name, entry.name.strip_suffix("_total").unwrap_or(entry.name)];
            let kind = entry.kind.name();
            let family = told.iter().find(|family| names.iter().any(|name| family["metric"] == *name));
            match family {
                Some(family) => {
                    assert_eq!(
                        (&family["type"], &family["help"]),
                        (&kind.into(), &entry.meaning.into()),
                        "{job}: {family}"
                    );
                }
                // Protobuf has no family without a series.
                None if job == "protobuf" && !page.keys().any(|(name, _)| name.starts_with(entry.name)) => {}
                None => missing.push(entry.name),
            }
        }
        assert!(missing.is_empty(), "{job}: {missing:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs tests/telemetry/install"]
async fn rules_run_and_no_alert_fires() {
    let line = Line::start(&["--objective", "floor"], &[]).await;
    let prometheus = start(line.proxy.admin);
    when("a first scrape", &prometheus, || {
        number(&prometheus, "up{job=\"openmetrics\"}").filter(|up| *up == 1.0)
    });
    // A rate needs a series before the change: its first value is not part of it.
    line.ask(20, &[]).await;
    scraped(&prometheus, 20);
    line.ask(40, &[]).await;
    scraped(&prometheus, 60);
    let all_well = || {
        let groups = http::api(prometheus.address, "/api/v1/rules", &[]);
        let groups = groups["groups"].as_array().expect("groups").clone();
        let rules: Vec<Value> =
            groups.iter().flat_map(|group| group["rules"].as_array().expect("rules").clone()).collect();
        for rule in &rules {
            assert!(rule["lastError"].is_null() || rule["lastError"] == "", "{rule}");
            assert!(rule["state"] != "firing", "an alert: {rule}");
        }
        (rules.len() > 60 && rules.iter().all(|rule| rule["health"] == "ok")).then_some(())
    };
    when("every rule evaluated", &prometheus, all_well);
    for recorded in [
        "job_model:tokenmeter_live_output_tokens:rate5m",
        "job_model:tokenmeter_exchanges:rate5m",
        "job_model:tokenmeter_time_to_first_token_seconds:p95_rate5m",
        "job_model:tokenmeter_request_output_token_rate_per_second:p50_rate5m",
        "job_model_objective:tokenmeter_goodput_exchanges:ratio_rate5m",
    ] {
        let asked = format!("{recorded}{{job=\"openmetrics\", model=\"sim\"}}");
        when(recorded, &prometheus, || number(&prometheus, &asked).filter(|value| *value > 0.0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs tests/telemetry/install"]
async fn native_histograms_come_with_protobuf() {
    let line = Line::start(&[], &[]).await;
    line.ask(40, &[]).await;
    let prometheus = start(line.proxy.admin);
    scraped(&prometheus, 40);
    let asked = |job: &str| format!("tokenmeter_time_to_first_token_seconds{{job=\"{job}\"}}");
    let native = query(&prometheus, &asked("protobuf"));
    let native = native["result"].as_array().expect("a vector");
    let counts = native.iter().map(|series| {
        let count =
            series["histogram"][1]["count"].as_str().unwrap_or_else(|| panic!("not native: {series}"));
        count.parse::<f64>().expect("a number")
    });
    assert_eq!(counts.sum::<f64>(), 40.0, "one observation for each exchange");
    for (job, _) in FORMS.iter().filter(|(job, _)| *job != "protobuf") {
        assert_eq!(
            query(&prometheus, &asked(job))["result"],
            Value::Array(Vec::new()),
            "{job} cannot represent them"
        );
    }
    // The two kinds of buckets agree: the native quantile lies in the classic bucket.
    let quantile = |series: &str| {
        let expression = format!("histogram_quantile(0.5, sum{series})");
        number(&prometheus, &expression).unwrap_or_else(|| panic!("no {expression}"))
    };
    let fine = quantile("(tokenmeter_time_to_first_token_seconds{job=\"protobuf\"})");
    let coarse = quantile(" by (le) (tokenmeter_time_to_first_token_seconds_bucket{job=\"protobuf\"})");
    let Kind::Histogram(edges) = Metric::FirstToken.entry().kind else { panic!("a histogram") };
    // A native bucket may lie across an edge; they are 10 % wide.
    let bucket = |value: f64| edges.iter().position(|edge| value <= *edge).unwrap_or(edges.len());
    let near = [fine * 0.9, fine, fine * 1.1].map(bucket);
    assert!(near.contains(&bucket(coarse)), "{fine} by native buckets, {coarse} by classic ones");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs tests/telemetry/install"]
async fn exemplars_link_to_the_sampled_trace() {
    const SAMPLED: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const UNSAMPLED: &str = "0af7651916cd43dd8448eb211c80319c";
    let line = Line::start(&[], &[]).await;
    line.ask(5, &[("traceparent", &format!("00-{UNSAMPLED}-00f067aa0ba902b7-00"))]).await;
    line.ask(5, &[("traceparent", &format!("00-{SAMPLED}-00f067aa0ba902b7-01"))]).await;
    let prometheus = start(line.proxy.admin);
    scraped(&prometheus, 10);
    let exemplars = |job: &str| -> Vec<Value> {
        let series = format!("tokenmeter_time_to_first_token_seconds_bucket{{job=\"{job}\"}}");
        let span = [("query", series.as_str()), ("start", "0"), ("end", "9999999999")];
        let found = http::api(prometheus.address, "/api/v1/query_exemplars", &span);
        let series = found.as_array().expect("series").iter();
        series.flat_map(|series| series["exemplars"].as_array().expect("exemplars").clone()).collect()
    };
    for job in ["openmetrics", "protobuf"] {
        let found = when(&format!("{job}: exemplars"), &prometheus, || {
            Some(exemplars(job)).filter(|found| !found.is_empty())
        });
        for exemplar in found {
            assert_eq!(exemplar["labels"]["trace_id"], SAMPLED, "{job}: {exemplar}");
            assert_eq!(exemplar["labels"]["span_id"].as_str().map(str::len), Some(16), "{job}: {exemplar}");
            let value: f64 =
                exemplar["value"].as_str().and_then(|value| value.parse().ok()).expect("a number");
            assert!(value > 0.0 && value < 60.0, "{job}: {exemplar}");
        }
    }
    assert_eq!(exemplars("text"), Vec::<Value>::new(), "0.0.4 cannot represent them");
}

/// Queries without an answer here, although there is traffic of every kind, a card, an objective and a collector: part
/// of the query, and the reason.
const UNANSWERED: &[(&str, &str)] = &[
    ("tokenmeter_upstream_queue_seconds", "the simulated server reports no times of its own"),
    ("tokenmeter_upstream_prefill_seconds", "nor this one"),
    ("tokenmeter_upstream_decode_seconds", "nor this one"),
    ("tokenmeter_upstream_draft_tokens", "nor drafts"),
    ("tokenmeter_engine_kv_cache_usage_ratio", "its page does not have its cache"),
    ("tokenmeter_engine_prefix_cache_hit_ratio", "nor its lookups"),
    ("tokenmeter_engine_preemptions", "nor its preemptions"),
    ("tokenmeter_engine_admission_rejections", "nor its rejections"),
    ("tokenmeter_engine_prompt_source_tokens", "nor the sources of prompts"),
    ("tokenmeter_engine_hidden_cached_tokens", "nor its cache hits"),
    ("tokenmeter_leg_", "no server prefills only"),
    ("tokenmeter_rate_limit", "the simulated server has no rate limits"),
    ("tokenmeter_retry_after_seconds", "nor asks clients to wait"),
    ("concurrency:tokenmeter_concurrency:below", "no stream is slower than the objective"),
    ("tokenmeter_gpu_processes", "an exporter does not report it"),
    ("increase(tokenmeter_ledger_shed_rows_total[30d])", "a complete ledger has no gap"),
    ("tokenmeter_budget_forecast", "a budget of thirty days has no forecast in its first day and a half"),
    ("tokenmeter_budget_webhooks_total", "no webhook is configured"),
    ("tokenmeter_ship_", "there is no central store"),
    ("tokenmeter_usage_events_", "there is no receiver of usage events"),
    ("tokenmeter_unknown_usage_total", "the simulated server reports no unknown count"),
    ("tokenmeter_unpriced_tier_exchanges_total", "the simulated server reports no tiers"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs tests/telemetry/install"]
async fn every_query_has_an_answer() {
    let card = Card::start().await;
    let collector = Collector::start(Fault::None).expect("a port");
    let endpoint = collector.url();
    let environment =
        [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()), ("OTEL_METRIC_EXPORT_INTERVAL", "1000")];
    let flags = ["--otlp-signals", "metrics,traces,logs", "--max-models", "1"];
    let line = Line::start_full(&card, &flags, &environment).await;
    let prometheus = start(line.proxy.admin);
    // Rates need every series before and after, also that of late energy.
    let first = line.ask_everything().await;
    scraped(&prometheus, first);
    when("energy attributed", &prometheus, || {
        number(&prometheus, "sum(tokenmeter_energy_attributed_joules_total)").filter(|sum| *sum > 0.0)
    });
    let second = line.ask_everything().await;
    scraped(&prometheus, first + second);
    when("more of it", &prometheus, || {
        number(&prometheus, "sum(rate(tokenmeter_energy_attributed_joules_total[5m]))")
            .filter(|sum| *sum > 0.0)
    });
    let has_number = |expression: &str| {
        let answer = query(&prometheus, expression);
        // A quantile of no observations is NaN.
        let is_number = |series: &Value| series["value"][1] != "NaN";
        answer["result"].as_array().is_some_and(|all| all.iter().any(is_number))
    };
    let mut answered = 0;
    for expression in expressions::all() {
        let text = &expression.text;
        let what = format!("{}: {text}", expression.place);
        // A query with `or vector(0)` has an answer.
        let excused = |(part, _): &&(&str, &str)| {
            text.contains(part) && !["or vector(0)", "* 0"].iter().any(|zero| text.contains(zero))
        };
        if expression.place.contains("alerts.yaml") {
            // It evaluates; whether it fires is not checked here, where faults are deliberate.
            query(&prometheus, text);
        } else if let Some((part, _)) = UNANSWERED.iter().find(excused) {
            assert!(!has_number(text), "{what}: has an answer after all: {part}");
        } else {
            // Recorded series follow with the next evaluation of their rules.
            when(&what, &prometheus, || has_number(text).then_some(()));
            answered += 1;
        }
    }
    assert!(answered > 200, "only {answered} queries");
}
