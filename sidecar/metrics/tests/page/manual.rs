//! `metrics.md` is generated from the introduction below and from the table. `UPDATE_GOLDEN=1` rewrites it.

use std::fmt::Write;

use meter::edges::{CONCURRENCY_NAMES, POSITION_NAMES};
use meter::{Disagreement, Dropped, Passthrough, Refusal, ServerKind, Stated, UsageStep};
use meter::{Ending, Provenance, Quota, Role, TokenType, Weight};
use meter::{RuleKind, TokenRejection};
use metrics::{Basis, Format, Kind, LABELS, Metric, ReloadedFile, Verdict, attribute};
use scan::Dialect;

use crate::golden::compare;
use crate::meanings;

#[test]
fn manual_is_up_to_date() {
    compare("metrics.md", &manual());
}

fn manual() -> String {
    let mut page = INTRODUCTION.to_owned();
    let anchor = |title: &str| title.to_lowercase().replace(' ', "-");
    let groups = GROUPS.iter().map(|(_, title, _)| format!("[{title}](#{})", anchor(title)));
    writeln!(page, "\n## Metrics\n\n{}.", groups.collect::<Vec<_>>().join(" ·\n")).unwrap();
    for metric in Metric::ALL {
        let entry = metric.entry();
        if let Some((_, title, note)) = GROUPS.iter().find(|(first, ..)| *first == entry.name) {
            write!(page, "\n### {title}\n{note}\n").unwrap();
            page += "| Name | Kind | Unit | Labels | Meaning |\n|---|---|---|---|---|\n";
        }
        let labels: Vec<_> = entry.labels.iter().map(|label| format!("`{label}`")).collect();
        let (kind, unit) = (entry.kind.name(), entry.unit.name());
        let labels = labels.join(", ").replace(GENAI_LABELS, "GenAI labels");
        writeln!(page, "| `{}` | {kind} | {unit} | {labels} | {} |", entry.name, entry.meaning).unwrap();
    }
    page += "\n## Endings\n\n| `ending` | Cause | Caused by | Charged |\n|---|---|---|---|\n";
    for ending in Ending::ALL {
        let [cause, party, charged] = meanings::ending(ending);
        writeln!(page, "| `{}` | {cause} | {party} | {charged} |", ending.name()).unwrap();
    }
    page += "\n## Labels\n\n| Label | Meaning | Values |\n|---|---|---|\n";
    for label in LABELS {
        let values: Vec<_> = values(label.name).into_iter().map(|value| format!("`{value}`")).collect();
        writeln!(page, "| `{}` | {}. | {} |", label.name, label.meaning, values.join(" · ")).unwrap();
    }
    for (label, lists) in by_metric() {
        write!(page, "\n`{label}` by metric:\n\n").unwrap();
        for (metric, values) in lists {
            let name = metric.entry().name;
            if label == "file" {
                let values: Vec<_> = values.into_iter().map(|value| format!("`{value}`")).collect();
                writeln!(page, "- `{name}`: {}", values.join(" · ")).unwrap();
            } else {
                let list = if metric == Metric::TenantRefused { Metric::Refused } else { metric };
                writeln!(page, "- `{name}`: [values](#{label}-of-{})", list.entry().name).unwrap();
            }
        }
    }
    page += "\n## Label values\n";
    for label in ["what", "step", "disagreement", "fault", "stated"] {
        explain(&mut page, &format!("`{label}`"), label, values(label));
        if label == "step" {
            page += STEPS;
        }
    }
    for (label, lists) in by_metric() {
        // A tenant's refusals have the reasons of all; a file explains itself.
        let lists =
            lists.into_iter().filter(|(metric, _)| label != "file" && *metric != Metric::TenantRefused);
        for (metric, values) in lists {
            let name = metric.entry().name;
            explain(&mut page, &format!("`{label}` of `{name}`"), name, values);
        }
    }
    page += QUERIES;
    page += READING;
    page += OTLP;
    for metric in Metric::ALL {
        let entry = metric.entry();
        let (name, unit) = (entry.otlp_name(), entry.otlp_unit());
        writeln!(page, "| `{}` | `{name}` | `{unit}` | {:?} |", entry.name, entry.instrument()).unwrap();
    }
    let renamed = LABELS.iter().filter(|label| attribute(label.name) != label.name);
    let renamed: Vec<_> = renamed.map(|label| format!("`{}`", attribute(label.name))).collect();
    writeln!(
        page,
        "\nLabels keep their names, except those of a semantic convention:\n{}.",
        renamed.chunks(5).map(|line| line.join(", ")).collect::<Vec<_>>().join(",\n")
    )
    .unwrap();
    page += "\n## Buckets\n\nUpper edges, inclusive; an open bucket follows the last edge.\n\n| Edges | Metrics |\n|---|---|\n";
    for (edges, names) in buckets() {
        writeln!(page, "| {edges} | {} |", names.join(", ")).unwrap();
    }
    page
}

/// Returns each list of bucket edges with the histograms that have it, in the order of the table.
fn buckets() -> Vec<(String, Vec<String>)> {
    let mut lists: Vec<(String, Vec<String>)> = Vec::new();
    for entry in Metric::ALL.iter().map(|metric| metric.entry()) {
        let Kind::Histogram(edges) = entry.kind else { continue };
        let edges: Vec<_> = edges.iter().map(f64::to_string).collect();
        let (edges, name) = (edges.join(", "), format!("`{}`", entry.name));
        match lists.iter_mut().find(|(listed, _)| *listed == edges) {
            Some((_, names)) => names.push(name),
            None => lists.push((edges, vec![name])),
        }
    }
    lists
}

/// Appends a table of the values of `list` with their meanings.
fn explain(page: &mut String, title: &str, list: &str, values: Vec<&'static str>) {
    write!(page, "\n### {title}\n\n| Value | Meaning |\n|---|---|\n").unwrap();
    for value in values {
        writeln!(page, "| `{value}` | {} |", meanings::meaning(list, value)).unwrap();
    }
}

/// Returns the values of a closed label.
fn values(label: &str) -> Vec<&'static str> {
    match label {
        "dialect" => Dialect::ALL.map(Dialect::name).to_vec(),
        "ending" => Ending::ALL.map(Ending::name).to_vec(),
        "type" => TokenType::ALL.map(TokenType::name).to_vec(),
        "step" => UsageStep::ALL.map(UsageStep::name).to_vec(),
        "stated" => Stated::ALL.map(Stated::name).to_vec(),
        "disagreement" => Disagreement::ALL.map(Disagreement::name).to_vec(),
        "provenance" => Provenance::ALL.map(Provenance::name).to_vec(),
        "verdict" => Verdict::ALL.map(Verdict::name).to_vec(),
        "quota" => Quota::ALL.map(Quota::name).to_vec(),
        "role" => [Role::Prefill, Role::Decode].map(Role::name).to_vec(),
        "weight" => [Weight::Exact, Weight::Spread].map(Weight::name).to_vec(),
        "concurrency" => CONCURRENCY_NAMES.to_vec(),
        "position" => POSITION_NAMES.to_vec(),
        "kind" => ServerKind::ALL.map(ServerKind::name).to_vec(),
        "direction" => vec!["input", "output"],
        "class" => vec!["stream", "body"],
        "what" => Dropped::ALL
            .map(Dropped::name)
            .into_iter()
            .chain([metrics::table::LABEL_OVERFLOW])
            .chain([metrics::GPU_SAMPLE, metrics::GPU_SHARE])
            .chain(metrics::DROPPED_SIGNALS)
            .chain([metrics::LEDGER_ROW, metrics::LEDGER_ENERGY, metrics::USAGE_EVENT])
            .chain([metrics::ADMIN_CONNECTION, metrics::ADMIN_HANDSHAKE])
            .collect(),
        "gen_ai_token_modality" => vec!["unknown", "text", "audio", "image"],
        "gen_ai_token_type" => vec!["input", "output"],
        "hw_type" => vec!["gpu"],
        "error_type" => [
            &metrics::GPU_ERRORS[..],
            &[
                "client_disconnect",
                "stream_truncated",
                "upstream_reset",
                "error_in_band",
                "no_output",
                "_OTHER",
            ],
        ]
        .concat(),
        "source" => vec!["nvml", "dcgm", "rocm", "power", "compute", "cache", "transfer"],
        "shared" => vec!["true", "false"],
        "unit" => metrics::GPU_UNITS.to_vec(),
        "clock" => metrics::GPU_CLOCKS.to_vec(),
        "part" => metrics::COST_PARTS.to_vec(),
        "rule" => RuleKind::ALL.map(RuleKind::name).to_vec(),
        "basis" => Basis::ALL.map(Basis::name).to_vec(),
        "period" => metrics::BUDGET_PERIODS.to_vec(),
        "limit" => metrics::BUDGET_LIMITS.to_vec(),
        "threshold" => metrics::BUDGET_THRESHOLDS.to_vec(),
        "fault" => metrics::LEDGER_FAULTS.to_vec(),
        "signal" => metrics::SIGNALS.to_vec(),
        "format" => Format::ALL.map(Format::name).to_vec(),
        _ => Vec::new(),
    }
}

/// Each metric's closed list of one label.
type Lists = Vec<(Metric, Vec<&'static str>)>;

/// Returns the labels whose closed list differs by metric.
fn by_metric() -> [(&'static str, Lists); 3] {
    let no_first_token = Ending::ALL.map(Ending::name).into_iter().chain([metrics::table::NOT_STREAMED]);
    let reasons = vec![
        (Metric::Passthrough, Passthrough::ALL.map(Passthrough::name).to_vec()),
        (Metric::Refused, Refusal::ALL.map(Refusal::name).to_vec()),
        (Metric::TenantRefused, Refusal::ALL.map(Refusal::name).to_vec()),
        (Metric::UntrustedTokens, TokenRejection::ALL.map(TokenRejection::name).to_vec()),
        (Metric::NoFirstToken, no_first_token.collect()),
        (Metric::GpuThrottled, metrics::GPU_THROTTLES.to_vec()),
        (Metric::Unpriced, metrics::UNPRICED.to_vec()),
        (Metric::ShipFailures, metrics::SHIP_FAILURES.to_vec()),
        (Metric::EventsFailures, metrics::EVENTS_FAILURES.to_vec()),
    ];
    let outcomes = vec![
        (Metric::BudgetWebhooks, metrics::WEBHOOK_OUTCOMES.to_vec()),
        (Metric::Reloads, metrics::RELOAD_OUTCOMES.to_vec()),
        (Metric::OtlpItems, metrics::OUTCOMES.to_vec()),
    ];
    let read = ReloadedFile::ALL.map(ReloadedFile::name).to_vec();
    let files = vec![
        (Metric::LedgerBytes, metrics::LEDGER_FILES.to_vec()),
        (Metric::ReloadSuccess, read.clone()),
        (Metric::Reloads, read),
    ];
    [("reason", reasons), ("outcome", outcomes), ("file", files)]
}

/// The labels that all metrics of the GenAI convention have.
const GENAI_LABELS: &str = "`gen_ai_operation_name`, `gen_ai_provider_name`, `gen_ai_request_model`, `server_address`, `server_port`";

/// The first metric of each group, the group's title, and the text above its table.
const GROUPS: [(&str, &str, &str); 12] = [
    ("tokenmeter_exchanges_total", "Requests and tokens", ""),
    ("tokenmeter_tenant_tokens_total", "Tenants", ""),
    (
        "gen_ai_server_time_to_first_token_seconds",
        "GenAI convention",
        "
GenAI labels: `gen_ai_operation_name`, `gen_ai_provider_name`, `gen_ai_request_model`, `server_address`, `server_port`.
",
    ),
    (
        "tokenmeter_time_to_first_token_seconds",
        "Latency and speed",
        "
- Sum over the label `upstream` for the values of a model. A model has series only at the upstreams where an exchange of
  it ended.
- The times and speeds cover every exchange in which the event occurred: a client that left after the first token has a
  time to first token.
- Each finished exchange is either in `tokenmeter_time_to_first_token_seconds` or, with the reason, in
  `tokenmeter_no_first_token_total`.
",
    ),
    ("tokenmeter_objective_exchanges_total", "Verdicts and goodput", ""),
    ("tokenmeter_leg_exchanges_total", "Legs", "\nLegs are the prefill and decode parts of [split requests](../../proxy/relay/legs.md).\n"),
    ("tokenmeter_upstream_up", "Inference server", ""),
    ("hw_gpu_utilization_ratio", "GPU and energy", ""),
    ("tokenmeter_tenant_spend_usd_total", "Money and budgets", ""),
    ("tokenmeter_ledger_up", "Ledger and central store", ""),
    ("tokenmeter_config_last_reload_success", "Reloads and export", ""),
    ("tokenmeter_connections", "The process", ""),
];

const OTLP: &str = "
## In OTLP

The same metrics, under the same names after Prometheus or VictoriaMetrics has translated them (dots to underscores,
the unit's word and `_total` appended).

| Name | In OTLP | Unit | Instrument |
|---|---|---|---|
";

const INTRODUCTION: &str = "\
# Metrics of tokenmeter

<!-- Generated from the table in src/table.rs by tests/page/manual.rs.
`UPDATE_GOLDEN=1 cargo test -p tokenmeter-metrics` rewrites it. -->

- Address: `/metrics` at `--admin`, 127.0.0.1:9464 by default.
- [Rules and dashboards](../../helm/tokenmeter/rules/README.md), with a scrape configuration.
- The page has three [formats](#formats-of-the-page), chosen by `Accept`.
- Every enabled metric has HELP and TYPE from the start; `--semconv` disables some of `gen_ai_client_*`.
- A series appears with its first event, or with 0 if a zero is informative (no refusal, no loss, an idle model).

| | Sections |
|---|---|
| Start | [Twelve metrics](#start-with-these-twelve) · [Queries](#queries) · [29 questions with queries](questions.md) |
| Look up | [Metrics](#metrics) · [Endings](#endings) · [Labels](#labels) · [Label values](#label-values) · [Buckets](#buckets) · [In OTLP](#in-otlp) |
| Understand | [Provenance](#provenance-of-token-counts) · [GenAI convention](#the-genai-convention) · [Objectives](#objectives) · [Formats](#formats-of-the-page) · [Reserved values](#reserved-label-values) |
| By topic | [Inference server](#metrics-read-from-the-inference-server) · [GPU](#accelerators-energy-time-and-cost) · [Money](#tenants-and-money) · [Ledger](#the-ledger) · [Export](#accounting-of-the-export) |

## Start with these twelve

| Question | Metric |
|---|---|
| How many requests, and how do they end? | `tokenmeter_exchanges_total` by `ending` ([endings](#endings)) |
| How many are in flight? | `tokenmeter_exchanges_in_flight` |
| How many tokens per second? | `tokenmeter_live_output_tokens_total` |
| How many tokens, of which type, how certain? | `tokenmeter_tokens_total` by `type` and `provenance` |
| How long until the first token? | `tokenmeter_time_to_first_token_seconds` |
| How fast is one response? | `tokenmeter_request_output_token_rate_per_second` |
| How long between tokens? | `tokenmeter_inter_token_seconds` |
| Is the server reachable? | `tokenmeter_upstream_up` |
| Does the server count the same? | `tokenmeter_engine_drift_tokens` |
| What does each tenant spend? | `tokenmeter_tenant_spend_usd_total` |
| Which requests did tokenmeter reject? | `tokenmeter_refused_total` by `reason` |
| What did tokenmeter lose? | `tokenmeter_dropped_total` by `what` |
";

const STEPS: &str = "
`tokenmeter_usage_steps_total` counts, for each request to chat and completions, the step taken to obtain usage in the response. The first that applies counts: `observed`, `sent_unasked`, `refused`, `unreadable`, `too_large`,
`not_streamed`, `client_asked`, `continuous`, `injected`.
";

const QUERIES: &str = "
## Queries

```promql
# Output tokens per second, by model, as they are generated
sum by (model) (rate(tokenmeter_live_output_tokens_total[1m]))

# Tokens of a day that the server itself counted, by type
sum by (model, type) (increase(tokenmeter_tokens_total{provenance=~\"engine|reported\"}[1d]))

# Time to first token, 99th percentile
histogram_quantile(0.99, sum by (le, model) (rate(tokenmeter_time_to_first_token_seconds_bucket[5m])))

# Median speed of one request, by concurrency at the server
histogram_quantile(0.5, sum by (le, model, upstream, concurrency) (rate(tokenmeter_request_output_token_rate_per_second_bucket[1h])))

# Share of streams faster than 30 tokens per second (use a bucket edge, such as 10, 15, 30 or 100)
1 - sum(rate(tokenmeter_request_output_token_rate_per_second_bucket{le=\"30.0\"}[5m]))
  / sum(rate(tokenmeter_request_output_token_rate_per_second_count[5m]))

# Shares of errors and of clients that left
sum by (model) (rate(tokenmeter_exchanges_total{ending!~\"complete|length|client_abort\"}[5m]))
  / sum by (model) (rate(tokenmeter_exchanges_total[5m]))
sum by (model) (rate(tokenmeter_exchanges_total{ending=\"client_abort\"}[5m]))
  / sum by (model) (rate(tokenmeter_exchanges_total[5m]))

# Share of failures by the semantic convention, by server
1 - sum by (server_address, server_port) (rate(gen_ai_server_request_duration_seconds_count{error_type=\"\"}[5m]))
  / sum by (server_address, server_port) (rate(gen_ai_server_request_duration_seconds_count[5m]))

# Share of exchanges that met their objective, and of tokens in such exchanges
sum by (model, objective) (rate(tokenmeter_goodput_exchanges_total[5m]))
  / sum by (model, objective) (rate(tokenmeter_objective_exchanges_total[5m]))
sum by (model, objective) (rate(tokenmeter_goodput_tokens_total[5m]))
  / sum by (model, objective) (rate(tokenmeter_objective_tokens_total[5m]))

# Burn rate of the error budget: 1 is the rate that the target allows
(1 - sum by (objective) (rate(tokenmeter_objective_exchanges_total{verdict=\"met\"}[1h]))
   / sum by (objective) (rate(tokenmeter_objective_exchanges_total[1h])))
  / (1 - max by (objective) (tokenmeter_objective_target_ratio))

# Spend of each tenant per hour: by price, and by GPU time and energy
sum by (tenant) (rate(tokenmeter_tenant_spend_usd_total{basis=\"price\"}[1h])) * 3600
sum by (tenant) (rate(tokenmeter_tenant_spend_usd_total{basis=\"gpu\"}[1h])) * 3600

# Seconds per token by position: a rise means that long responses slow down
sum by (upstream, position) (rate(tokenmeter_output_position_seconds_total[1h]))
  / sum by (upstream, position) (rate(tokenmeter_output_position_tokens_total[1h]))

# Tokens per minute that the server generated and tokenmeter did not see, smoothed over the tokens in flight
deriv(tokenmeter_engine_drift_tokens{direction=\"output\"}[30m]) * 60

# Servers with queued requests and free KV cache
tokenmeter_engine_waiting_requests > 0 and tokenmeter_engine_kv_cache_usage_ratio < 0.9

# Waiting time caused by the server, and by the client
rate(tokenmeter_stalled_seconds_total[5m])
rate(tokenmeter_client_wait_seconds_total[5m])
```
";

const READING: &str = "
## Provenance of token counts

A token count is as reliable as its source. Each count carries its `provenance`, and no number mixes two:

| Provenance | Source of the count |
|---|---|
| `engine` | the engine's own token ids, counted inside its process: exact for every ending |
| `reported` | the server's final usage, covering every choice |
| `running` | the server's running counter, seen before a cut or covering only some of the choices |
| `ids` | token ids or log-probability entries in the frames |
| `tokenized` | a local tokenizer (`--tokenizers`) on the delivered text: close to the server's count, not always equal |
| `frames` | one token per content frame: the only estimate |
| `none` | none: the exchange is counted, its tokens are unknown |

For a bill use the ledger (`tokenmeter spend`): it charges every count, estimates included, and shows their share.
`provenance=~\"engine|reported\"` selects the tokens that the server itself counted, so a sum over them is not the bill.
`tokenmeter_usage_provenance_total` counts the exchanges of each source.

- The `type`s of `tokenmeter_tokens_total` are disjoint: `input` excludes `input_cached`, `output` excludes
  `output_reasoning`. A sum over `type` counts every token once.
- Reasoning is separate only if the source of the count separates it. A server's usage may not; the frames of an aborted
  stream do.
- `tokenmeter_tokens_total` grows when an exchange ends. `tokenmeter_live_output_tokens_total` grows while tokens are
  generated, at most a second late.
- The live counter never decreases. If the server's final count is below its running count, the live counter waits until
  later tokens make up the difference.
- `weight` is `exact` if the tokens of each frame are known, and `spread` if the total is divided over the frames.

## The GenAI convention

`gen_ai_*` follows OpenTelemetry's semantic convention. None of these metrics has a tenant.

| Metrics | Cover |
|---|---|
| `gen_ai_server_time_*` | successes only (`complete` and `length`) |
| `gen_ai_server_request_duration_seconds` | every finished operation |
| `gen_ai_client_inference_usage_*`, `gen_ai_client_inference_operation_*` | every finished operation, with `engine` and `reported` counts only; one without them adds 0, with the modality `unknown` |
| `gen_ai_client_embeddings_*` | every finished operation on embeddings |

- `input` includes tokens read from or written to a cache, and `output` includes reasoning. The counters of cached and
  reasoning tokens are parts of these two.
- `error_type` is empty for a success. Otherwise it is the server's status, as in `503`, or one of:
  `client_disconnect`, `stream_truncated` (the response was cut), `upstream_reset` (before its first byte),
  `error_in_band`, `no_output`, `_OTHER`.
- After 24 values of `error_type` for one model at one server, further ones are `_OTHER`.
- `server_address` and `server_port` come from the upstream's URL. Two upstreams with one address share their series.
- `gen_ai.response.model` is on spans only, because a server may return a new name with every response.

| `--semconv` | Families besides `gen_ai_server_*` |
|---|---|
| `latest` (in force unless `--semconv` or `OTEL_SEMCONV_STABILITY_OPT_IN` says otherwise) | `gen_ai_client_inference_usage_*`, `gen_ai_client_inference_operation_*`, `gen_ai_client_embeddings_*` |
| `client` | those, and `gen_ai_client_inference_duration_seconds`, `…_time_to_first_chunk_seconds`, `…_time_per_output_chunk_seconds` |
| `legacy` | `gen_ai_client_token_usage`, as in the convention until 1.41: `engine` and `reported` counts, no zeros |
| `both` | those of `latest` and `legacy` |

The times of `client` are measured in the proxy, from the complete request on. A chunk is a frame other than a keep-alive
and the end mark, whatever it holds; `tokenmeter_chunk_gap_seconds` has the gaps between frames with tokens. A disabled
family is on no page and in no export.

## Objectives

An objective (`--objective`, or `objectives` in the settings file) states a maximum time to first token, a minimum speed
of one exchange, and the share of exchanges that must meet both. Each finished exchange under an objective has a
`verdict`. The bounds are bucket edges of `tokenmeter_time_to_first_token_seconds` and
`tokenmeter_request_output_token_rate_per_second`, so that verdicts and histograms agree.

| Exchange | Verdict |
|---|---|
| a streamed success | `met` if its time to first token is at most the bound and its speed at least the bound; else `slow_first_token`, `slow_output` or `slow_both` |
| a success that was not streamed | `slow_output` if its duration is above first token + (tokens per choice - 1) / speed, the time of a stream that just meets both bounds; else `met` |
| cut, an error in the stream, empty, or `proxy_error` | `failed` |
| a status of 500 and above, 408, 424 or 429 | `failed` |
| another status of 400 and above | none: a client error |
| a client that left | `slow_first_token` if it asked for a stream and waited longer for the first token than the bound; else none: its reason is unknown |
| embeddings and rankings | none: they have no output tokens |

- A value that does not exist, such as the speed of a single token, counts as met.
- If several objectives cover the model and the tenant, the first one applies.
- Goodput is the number of exchanges that met their objective, and the output tokens in them.
- A speed equal to the bound meets it. The histogram counts it in the bucket that ends at the bound.

## Formats of the page

| Format | `Accept` | Contains |
|---|---|---|
| OpenMetrics 1.0 | `application/openmetrics-text` (Prometheus' first choice) | units, exemplars |
| protobuf | `application/vnd.google.protobuf` (Prometheus with `scrape_native_histograms`, or its feature `native-histograms` before 3.8) | units, exemplars, native histograms |
| text 0.0.4 | `text/plain`, `*/*`, no `Accept`, an unknown type | classic histograms |

All three contain the same numbers. They are compressed if the client accepts gzip. Up to four pages are rendered at
once, on other threads than the probes'; a further scrape waits up to five seconds and then gets 503 with `Retry-After`.

**Exemplars** link a bucket to a trace. Each bucket keeps its latest observation whose request carried a sampled
`traceparent`, with trace and span (the proxy's own span if it exports spans, else the caller's). The exemplar of a time
to first token is that time. `tokenmeter_chunk_gap_seconds` and `tokenmeter_inter_token_seconds{weight=\"exact\"}` have
the longest gap of the exchange. Prometheus stores exemplars with `--enable-feature=exemplar-storage`.

**Native histograms** accompany every classic one except `tokenmeter_inter_token_seconds`,
`tokenmeter_chunk_gap_seconds` and `gen_ai_client_inference_time_per_output_chunk_seconds`, whose gaps are counted in
classic buckets while an exchange runs, and `tokenmeter_otlp_export_seconds`. Their schema is 3: each bucket is 9 % wider than the one below. The zero bucket ends
at 2^-20 s (a microsecond) and the last one begins at 2^12 s (68 minutes); for rates, tokens and joules the bounds are
2^-11 and 2^21.

## Metrics read from the inference server

If the inference server has a metrics page, tokenmeter reads it every 15 seconds (`engine_metrics_interval_ms`) and
exports it as `tokenmeter_engine_*`, under the same names for every server. Several models or engines on one page are
summed; shares are averaged. A value that the server does not report is absent.

| `tokenmeter_engine_up` | When |
|---|---|
| 1 | The last read succeeded. |
| 0 | It failed. All other `tokenmeter_engine_*` except `tokenmeter_engine_info` are absent. |
| absent | The page is not read: `engine_metrics: off`; a server without a page (Ollama, hosted interfaces); llama.cpp unless `engine_metrics: on`, because a second reader distorts those gauges of its page that are averages since the last read. |

The baseline is the first page read since the server's start; a counter that fell or a new start time sets a new
baseline. `tokenmeter_engine_drift_tokens` is the server's count minus tokenmeter's, each since the baseline:

- **0, between requests**: every token the server counted passed through tokenmeter and was counted the same.
- **positive**: the server did work that tokenmeter did not see: requests that bypass it, warm-up and health requests,
  unmetered paths, tokens generated after a client left, the prompt of a stream that was cut before the server reported
  its length, and a prompt counted once per choice (vLLM).
- **negative**: tokenmeter counted tokens that the server did not: requests that the server counts only if they succeed
  (text-generation-inference), or requests to another server than the one that served the page, as behind a load
  balancer.

Exchanges in flight during a read are counted by one side only (most servers count while they generate, tokenmeter when
an exchange ends), also those in flight at the baseline. Under load the drift varies by the tokens in flight: look at
its trend, or at times without traffic.

`tokenmeter_engine_prompt_source_tokens` counts prompt tokens by origin: computed (`compute`), held by the server's own
prefix cache (`cache`), fetched from a KV store or another server (`transfer`).

`tokenmeter_engine_hidden_cached_tokens` is above 0 if a server's page shows cached tokens that its usage does not
report: vLLM without `--enable-prompt-tokens-details`, SGLang without `--enable-cache-report`. Such tokens are counted
and priced as computed ones. The number is a lower bound: the server's cached tokens at the previous reading, minus the
reported ones, minus all prompt tokens that bypassed tokenmeter. If it exceeds 1 % of all prompt tokens, the log and the
live page name the flag to set.

## Accelerators: energy, time and cost

`hw_*` follows OpenTelemetry's hardware convention; `hw_id` is the device's UUID. A value that a device does not report
is absent. While `tokenmeter_gpu_up` is 0 the gauges of the device are absent too; its counters stay. Time that no
sample covers is counted in `tokenmeter_gpu_gap_seconds_total` and not estimated.

Energy, device time and cost are attributed completely. Since the baseline:

- energy: `hw_energy_joules_total` has grown by the sum of `tokenmeter_energy_attributed_joules_total`,
  `…_idle_joules_total`, `…_unattributed_joules_total` and `tokenmeter_energy_pending_joules`;
- device time and cost likewise, by `tokenmeter_gpu_*`. Costs exist where prices are configured, by `part`.

`pending` belongs to exchanges in flight or not settled. It moves to the other three and is a gauge.
`tokenmeter_energy_model_joules_total` is the attributed energy again, by model: do not add it to the others.

## Tenants and money

A tenant's tokens and exchanges are counted at the same moment and by the same types and endings as those of its models.
The first hundred tenants have series of their own; the others share `_other`, in every family the same tenants, so that
sums are exact. The ledger has no such cap.

Spend has two bases, which are never added up:

| `basis` | Spend | Currency |
|---|---|---|
| `price` | tokens by the price book, once per finished exchange | the price book's |
| `gpu` | device hours and energy of settled exchanges: the money of `tokenmeter_gpu_cost_usd_total`, by tenant and by model | US dollars |

- Sums are kept in whole pico-units (10^-12) and converted to a float when the page is rendered. Bill from the ledger.
- An exchange without a price is in `tokenmeter_unpriced_exchanges_total`, with the reason, and in no sum on the basis
  `price`.
- A response may state a service tier that its price entry lacks. The exchange is charged at the entry's base prices,
  which may be less than the tier costs. It is in `tokenmeter_unpriced_tier_exchanges_total`, and the log names each
  such tier once.

Names contain the currency. This page writes `usd`; with a price book in euros `/metrics` has
`tokenmeter_tenant_spend_eur_total{basis=\"price\"}`, `tokenmeter_budget_used_eur` and so on. GPU costs are always in US
dollars, in `tokenmeter_tenant_spend_usd_total{basis=\"gpu\"}`.

If a tenant has several budgets for one kind of period, the metrics show the one with the least remaining. Limits, use
and forecasts of the tenants under `_other` are summed.

## The ledger

| A row is | Metric |
|---|---|
| waiting for its commit | `tokenmeter_ledger_queued_rows`; the age of the oldest is `tokenmeter_ledger_commit_lag_seconds` |
| durable on the disk | `tokenmeter_ledger_rows_total` |
| kept in the ledger's totals only | `tokenmeter_ledger_shed_rows_total` |
| lost with its totals, because the queue was full or the writer failed | `tokenmeter_ledger_lost_rows_total` |

The last two are in `tokenmeter_dropped_total{what=\"ledger_row\"}` too. Counts begin at the start of the process. A gap
or a corrupt file found at the start makes its counter begin at 1, which `rate` and `increase` do not see: alert on the
value.

A process without a ledger, a central store, budgets or reloaded files has no series of them.

## Accounting of the export

For spans and log records, `made` = `sent` + all `dropped_*` + `tokenmeter_otlp_queued_items`, exactly. For the signal
`metric` the items are the data points of exports. Dropped items are in `tokenmeter_dropped_total` too, as `span`,
`log_record` and `metric_export`.

## Reserved label values

- `_other` has the numbers of all names after the cap (50 models by default, 100 tenants), so that sums are exact. Each
  such exchange adds to `tokenmeter_dropped_total{what=\"label_overflow\"}`.
- When a name under `_other` has more exchanges than the least used label, it takes that label, at most one per minute.
  The weight of older exchanges halves every ten minutes, so that an unused model loses its label.
- The counts of the replaced label move to `_other`, which grows at once. No series decreases, but `rate` of `_other`
  shows the step. A name that gets a label again counts from zero, which Prometheus treats as a restart.
- `_unknown`: the request's model is not known yet, could not be determined, or was accepted by no server. A rejected
  request cannot create a label.

Names longer than 128 bytes are cut at a character boundary. Control characters and a leading `_` become U+FFFD (`�`),
so that a model name can neither control a terminal nor use a reserved label; a model named `_other` or `_unknown` adds
to that series. The ledger keeps every name unchanged.
";

#[test]
fn names_in_the_introduction_are_metrics() {
    let known: Vec<_> = Metric::ALL.iter().map(|metric| metric.entry().name).collect();
    let text = [INTRODUCTION, STEPS, QUERIES, READING].concat();
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let names: Vec<_> =
        words.filter(|word| word.starts_with("tokenmeter_") && !word.ends_with('_')).collect();
    assert!(names.len() > 30, "{names:?}");
    for name in names {
        // Histograms have `_bucket`, `_count` and `_sum`; currencies have their own names.
        let plain =
            ["_bucket", "_count", "_sum"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        let plain = plain.replace("_eur", "_usd");
        assert!(known.contains(&name) || known.contains(&&*plain), "{name} is no metric");
    }
}
