//! `metrics.md`, generated: the hand-written introduction is below, the rest is the table.
//! `UPDATE_GOLDEN=1` rewrites it.

use std::fmt::Write;

use meter::edges::{CONCURRENCY_NAMES, POSITION_NAMES};
use meter::{Ending, Provenance, Role, TokenType, Weight};
use metrics::{Basis, Format, Kind, LABELS, Metric, ReloadedFile, Verdict, attribute};
use relay::{Dropped, Kind as ServerKind, Passthrough, Refusal, UsageStep};
use scan::Dialect;
use tenant::{Distrust, RuleKind};

use crate::golden::compare;

#[test]
fn the_manual_is_up_to_date() {
    compare("metrics.md", &manual());
}

fn manual() -> String {
    let mut page = INTRODUCTION.to_owned();
    page += "\n## Metrics\n\n| Name | Kind | Unit | Labels | Meaning |\n|---|---|---|---|---|\n";
    for metric in Metric::ALL {
        let entry = metric.entry();
        let labels: Vec<_> = entry.labels.iter().map(|label| format!("`{label}`")).collect();
        let (kind, unit) = (entry.kind.name(), entry.unit.name());
        let labels = labels.join(", ");
        writeln!(page, "| `{}` | {kind} | {unit} | {labels} | {} |", entry.name, entry.meaning).unwrap();
    }
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
        "\nLabels keep their names, but for those of a semantic convention: {}.",
        renamed.join(", ")
    )
    .unwrap();
    page += "\n## Labels\n\n| Label | Meaning | Values |\n|---|---|---|\n";
    for label in LABELS {
        let values: Vec<_> = values(label.name).into_iter().map(|value| format!("`{value}`")).collect();
        writeln!(page, "| `{}` | {}. | {} |", label.name, label.meaning, values.join(" · ")).unwrap();
    }
    for (label, lists) in by_metric() {
        write!(page, "\n`{label}` by metric:\n\n").unwrap();
        for (metric, values) in lists {
            let values: Vec<_> = values.into_iter().map(|value| format!("`{value}`")).collect();
            writeln!(page, "- `{}`: {}", metric.entry().name, values.join(" · ")).unwrap();
        }
    }
    page += "\n## Buckets\n\nUpper edges, inclusive; above the last lies an open bucket.\n\n";
    for metric in Metric::ALL {
        if let Kind::Histogram(edges) = metric.entry().kind {
            let edges: Vec<_> = edges.iter().map(f64::to_string).collect();
            writeln!(page, "- `{}`: {}", metric.entry().name, edges.join(", ")).unwrap();
        }
    }
    page
}

/// The values of a closed label.
fn values(label: &str) -> Vec<&'static str> {
    match label {
        "dialect" => Dialect::ALL.map(Dialect::name).to_vec(),
        "ending" => Ending::ALL.map(Ending::name).to_vec(),
        "type" => TokenType::ALL.map(TokenType::name).to_vec(),
        "step" => UsageStep::ALL.map(UsageStep::name).to_vec(),
        "provenance" => Provenance::ALL.map(Provenance::name).to_vec(),
        "verdict" => Verdict::ALL.map(Verdict::name).to_vec(),
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
            .chain([metrics::LEDGER_ROW, metrics::LEDGER_ENERGY])
            .chain([metrics::ADMIN_CONNECTION])
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
        "source" => vec!["nvml", "dcgm", "rocm", "power"],
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

/// Labels that have another closed list for each metric.
fn by_metric() -> [(&'static str, Lists); 3] {
    let no_first_token = Ending::ALL.map(Ending::name).into_iter().chain([metrics::table::NOT_STREAMED]);
    let reasons = vec![
        (Metric::Passthrough, Passthrough::ALL.map(Passthrough::name).to_vec()),
        (Metric::Refused, Refusal::ALL.map(Refusal::name).to_vec()),
        (Metric::TenantRefused, Refusal::ALL.map(Refusal::name).to_vec()),
        (Metric::UntrustedTokens, Distrust::ALL.map(Distrust::name).to_vec()),
        (Metric::NoFirstToken, no_first_token.collect()),
        (Metric::GpuThrottled, metrics::GPU_THROTTLES.to_vec()),
        (Metric::Unpriced, metrics::UNPRICED.to_vec()),
        (Metric::ShipFailures, metrics::SHIP_FAILURES.to_vec()),
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

const OTLP: &str = "
## In OTLP

The same numbers, by the same names once Prometheus or VictoriaMetrics has translated them (points to underscores,
the unit's word and `_total` appended).

| Name | In OTLP | Unit | Instrument |
|---|---|---|---|
";

const INTRODUCTION: &str = "\
# What tokenmeter measures

<!-- Generated from the table in src/table.rs by tests/page/manual.rs. `UPDATE_GOLDEN=1 cargo test -p tokenmeter-metrics` rewrites it. -->

The page `/metrics` comes in three forms, by `Accept`: OpenMetrics 1.0 text, Prometheus' protobuf, and text 0.0.4
for whoever asks for nothing in particular (`curl`, a browser, older agents). Every metric below is on it from the
start, with its HELP and TYPE; a series appears with its first event, except where a zero says something (nothing
was refused, nothing was lost, a model is there and idle).

## How counts are known

A token count is only as good as its source, so each carries its `provenance`, and no number mixes two:

| Provenance | The count comes from |
|---|---|
| `reported` | the server's final usage, covering every choice |
| `running` | the server's own counter, seen before a cut, or covering only part of the choices |
| `ids` | token ids or log-probability entries in the frames |
| `tokenized` | a local tokenizer's count of the text (`--tokenizers`): an estimate of what was sampled |
| `frames` | one per content frame: an estimate |
| `none` | nothing: the exchange was counted, its tokens are not known |

Bill from `provenance=\"reported\"`; watch the rest. `tokenmeter_usage_provenance_total` says how many exchanges
each source was used for.

The `type`s of `tokenmeter_tokens_total` are disjoint: `input` is without `input_cached`, `output` is without
`output_reasoning`. A sum over `type` counts every token once. Reasoning is split off only where the source of the count
does so: a server's usage may not, while frames of an aborted stream do. Tokens are added when an exchange ends; for
what is generated at this moment use `tokenmeter_live_output_tokens_total`, which is at most a second behind.
When it turns out to have been ahead (the server's final count is smaller than the running one), it stands
still until the truth has caught up; it never decreases.

Endings, times and speeds have a label `upstream`, the server that was asked: sums over it are the model's. Upstreams are
configured, so there are as many values as there are servers, and a model has series only at those where an exchange of
it ended.

`weight` says how the time of single tokens is known: `exact` where each frame's tokens were known, `spread`
where the total was spread over the frames.

The `gen_ai_server_*` series follow OpenTelemetry's semantic convention. Times to and between tokens are of successes only
(`complete` and `length`). The duration is of every ended operation, and `error_type` says how it failed: the server's
status, `client_disconnect`, `stream_truncated` (the answer broke off), `upstream_reset` (before its first byte),
`error_in_band`, `no_output` or `_OTHER`; it is empty for a success. Of a model at a server 24 values have series of their
own, later ones are `_OTHER`. `server_address` and `server_port` are those of the upstream's URL; two upstreams at one address
are one server here. The convention also recommends `gen_ai.response.model`, which is on spans and not on metrics: a server
may name a model with every answer anew.

Our own times and speeds take every exchange in which the thing happened: a client that left after the first token has a time to first
token. Each ended exchange is either in `tokenmeter_time_to_first_token_seconds` or, with the reason, in
`tokenmeter_no_first_token_total`.

## Objectives

An objective (`--objective`, or `objectives` in the settings file) is a promise: a time to the first token, a speed of
one exchange, and the share of exchanges that are to keep both. Each ended exchange under one has a `verdict`; its bounds
are edges of `tokenmeter_time_to_first_token_seconds` and `tokenmeter_request_output_token_rate_per_second`, so that
the histograms tell the same story.

| The exchange | Its verdict |
|---|---|
| a success in frames | by its time to first token (at most the bound) and its speed (at least the bound), `slow_both` if it kept neither; one that did not happen, as the speed of a single token, counts as met |
| a success in one piece | `slow_output` if it took longer than a stream that just keeps both bounds: first token + (tokens per answer - 1) / speed; else `met` |
| cut, an error in the stream, empty, or `proxy_error` | `failed` |
| a status of 500 and above, 408, 424 or 429 | `failed` |
| another status of 400 and above | not counted: the client's own mistake |
| a client that left | `slow_first_token` if it had asked for a stream and waited longer for the first token than the bound; else not counted: why it left is not known |
| embeddings and rankings | not counted: they have no tokens to wait for |

Of several objectives the first that covers the model and the tenant counts. Goodput is what was met: exchanges, and the
output tokens in them. A speed that is exactly the bound is met, and lies in the histogram's bucket below it.

## Token usage by the semantic convention

`gen_ai_client_inference_usage_*` and `gen_ai_client_inference_operation_*` are made of `reported` counts alone and
hold every ended operation, failed ones too; one without a report is a 0 in them, with the modality `unknown`. The
distributions say by `error_type` how an operation failed. `input` includes what was
read from or written to a cache, `output` includes reasoning: the other counters are parts of these two, not more.
They carry no tenant. Embeddings are in `gen_ai_client_embeddings_*` instead.

| `--semconv` | Families beside `gen_ai_server_*` |
|---|---|
| `latest` (the default) | `gen_ai_client_inference_usage_*`, `gen_ai_client_inference_operation_*`, `gen_ai_client_embeddings_*` |
| `client` | those, and `gen_ai_client_inference_duration_seconds`, `…_time_to_first_chunk_seconds`, `…_time_per_output_chunk_seconds` |
| `legacy` | `gen_ai_client_token_usage`, as the convention had it before: reported counts, no zeros |
| `both` | those of `latest` and `legacy` |

The times of `client` are measured here, at the server's door, from the complete request on. The time per chunk is between
frames with tokens, in the buckets of `tokenmeter_chunk_gap_seconds`. What is switched off is on no page and in no export.

## Forms of the page

| Form | Asked for by | Has |
|---|---|---|
| OpenMetrics 1.0 | `application/openmetrics-text` (Prometheus' first choice) | units, exemplars |
| protobuf | `application/vnd.google.protobuf` (Prometheus with `scrape_native_histograms`, or its feature `native-histograms` before 3.8) | units, exemplars, native histograms |
| text 0.0.4 | `text/plain`, `*/*`, nothing, anything we do not have | classic histograms |

All three hold the same numbers. They are compressed where gzip is accepted. Four pages are printed at once, off the
thread that answers probes; a scrape beyond them waits up to five seconds and then gets 503 with `Retry-After`.

**Exemplars** lead from a bucket to a trace. The latest observation of each bucket whose request carried a sampled
`traceparent` is kept with its trace and span (ours if we export spans, else the caller's): in both times to first token
with the time itself, in `tokenmeter_chunk_gap_seconds` and `tokenmeter_inter_token_seconds{weight=\"exact\"}` with the
exchange's longest gap, if a gap of that bucket was among its own. Prometheus keeps them with
`--enable-feature=exemplar-storage`.

**Native histograms** are beside the classic ones of everything that is observed one by one: all histograms but
`tokenmeter_inter_token_seconds` and `tokenmeter_chunk_gap_seconds`, whose gaps are put in the classic buckets while an
exchange runs, and `tokenmeter_otlp_export_seconds`. Their schema is 3: a bucket is 9 % wider than the one below. What is
at most 2^-20 s (a microsecond) is in the zero bucket, what is over 2^12 s (68 minutes) in the last one; of rates,
tokens and joules 2^-11 and 2^21.

## What the server says of itself

Where the inference server has a metrics page of its own, it is read every 15 seconds (`engine_metrics_interval_ms`)
and said here in one vocabulary, whatever the server calls it: the series `tokenmeter_engine_*`. Several models
or engines behind one page are added up; shares are averaged. What a server does not say is absent. All of them
but `tokenmeter_engine_info` vanish while its page cannot be read; then `tokenmeter_engine_up` is 0. It is absent where the page is not asked
for: `engine_metrics: off`, a server without one (Ollama, hosted interfaces), and llama.cpp unless `engine_metrics:
on`, because some gauges of its page are averages since the last reading, so a second reader spoils them for the
first.

The baseline is the first page we read of a server's life; a counter that fell or another start time begins
another life. `tokenmeter_engine_drift_tokens` is the server's count less ours, each since the baseline:

- **0, between requests**: every token the server counted passed through here and was counted the same.
- **positive**: the server did what we did not see. Requests that went past us, warm-up and health requests,
  paths we do not meter, tokens generated after a client had left, the prompt of a stream that was cut before
  the server said how long it was, a prompt counted once per choice (vLLM), and records lost to a full outbox
  (`tokenmeter_dropped_total{what=\"record\"}`).
- **negative**: we counted what the server did not. Tokens of requests that it counts only when they end well
  (text-generation-inference), or another server than the one whose page it is, as behind a load balancer.

Exchanges that run while a page is read are counted by one side and not yet by the other (most servers count
as they generate, we when an exchange ends), also those that ran at the baseline: under load the drift swings
by what is in flight. Look at its trend, or at quiet times.

`tokenmeter_engine_prompt_source_tokens` says where prompt tokens came from: computed (`compute`), held by the server's
own prefix cache (`cache`), fetched from a KV store or another server (`transfer`).

`tokenmeter_engine_hidden_cached_tokens` is above 0 where a server's page shows cached tokens that its usage does not
report: vLLM without `--enable-prompt-tokens-details`, SGLang without `--enable-cache-report`. Such tokens are counted
and priced as computed ones. The number is the least that can be true: cached tokens of the page before, less all prompt
tokens that did not pass through here, less those that were reported. Above a hundredth of all prompt tokens the log and
the live page say so, with the flag to set.

## Accelerators and what they were used for

`hw_*` follows OpenTelemetry's hardware convention; `hw_id` is the device's UUID. What a device does not say is absent,
and while `tokenmeter_gpu_up` is 0 its gauges are too: counters stay. Time that no sample covers is counted in
`tokenmeter_gpu_gap_seconds_total` and not guessed.

Energy, device time and cost are shared out, and nothing is left over. Since the baseline:

- energy: `hw_energy_joules_total` has grown by the sum of `tokenmeter_energy_attributed_joules_total`,
  `…_idle_joules_total`, `…_unattributed_joules_total` and `tokenmeter_energy_pending_joules`;
- device time and cost likewise, by `tokenmeter_gpu_*`. Costs are there where prices are set, by `part`.

`pending` belongs to exchanges that still run or are not settled; it goes over to the others and is no counter.
`tokenmeter_energy_model_joules_total` is the attributed energy a second time, by model: do not add it to the others.

## Tenants and money

A tenant's tokens and exchanges are counted at the same moment and by the same types and endings as its models'. The first
hundred tenants have series of their own, the rest is `_other`, the same ones in every family: sums stay exact. The
ledger has no such cap.

Spend has two bases, which are never added up. `price`: tokens by the price book, once for each ended exchange, in the
book's currency. `gpu`: device hours and energy of settled exchanges, in US dollars; the same money as
`tokenmeter_gpu_cost_usd_total`, by tenant and by model. Sums are kept in whole pico-units (10^-12) and become a float when
the page is printed; a bill is made of the ledger. An exchange without a price is in
`tokenmeter_unpriced_exchanges_total`, with the reason, and in no sum on the basis `price`. One whose response says a
service tier that its price entry does not have is charged by the entry's own prices, which may be less than the tier
costs; it is in `tokenmeter_unpriced_tier_exchanges_total`, and the log names each such tier once.

The currency is in the names: the table says `usd`, and where the price book is in euros the page says
`tokenmeter_tenant_spend_eur_total{basis=\"price\"}`, `tokenmeter_budget_used_eur` and so on. What GPUs cost stays in
dollars, in `tokenmeter_tenant_spend_usd_total{basis=\"gpu\"}`.

Of several budgets of one tenant for one kind of period the one that leaves it the least is shown. The limits, use and
forecasts of tenants under `_other` are added up.

## The ledger

A row is in `tokenmeter_ledger_rows_total` once it is on the disk and no crash can lose it. Until then it waits
(`tokenmeter_ledger_queued_rows`), the oldest for `tokenmeter_ledger_commit_lag_seconds`. Where there was no room for it, it is in
`tokenmeter_ledger_shed_rows_total`, and the ledger has its totals, or in `tokenmeter_ledger_lost_rows_total`; both are in
`tokenmeter_dropped_total{what=\"ledger_row\"}`. There are no series of a ledger, of a central store, of budgets or of files where
there are none. Counts are since the start of the process; a gap, or a file found corrupt, as the process starts makes its
counter begin at 1, which a rate does not see.

## Telemetry about telemetry

Of spans and log records, `made` is `sent`, all that was `dropped_*` and `tokenmeter_otlp_queued_items`, exactly. For
the signal `metric` the items are the data points of exports. What was dropped is in `tokenmeter_dropped_total` too, as
`span`, `log_record` and `metric_export`.

## Label values of our own

- `_other`: the name came after the cap was reached (50 models unless set otherwise, 100 tenants). All its numbers are here,
  so sums stay exact; each exchange counted so adds to `tokenmeter_dropped_total{what=\"label_overflow\"}`. A name that
  has more exchanges under `_other` than the label with the least takes its place, at most one a minute. What the other
  counted goes on under `_other`, which grows by it at once: no series goes down, but `rate` of `_other` sees the step.
  A name that gets a label again counts from zero, which Prometheus takes for a restart. Older exchanges weigh half as
  much every ten minutes, so that a model that is no longer used gives its label back.
- `_unknown`: the request's model is not known yet, was never learned, or named no model that a server has accepted
  (a refused request cannot make a label).

Names longer than 128 bytes are cut between characters. Control characters and a leading `_` are shown as U+FFFD (`�`),
so that a model's name neither orders a terminal nor takes a label that is kept; a model named `_other` or `_unknown`
adds to that series. The ledger keeps every name as it was.

`tokenmeter_usage_steps_total` says, for each request to chat and completions, what was done so that its answer carries
usage. The first that holds counts: `observed` (the policy), `sent_unasked` (this server sends it anyway, or always ends
its completions with it), `refused` (it refuses to be asked), `unreadable` (compressed, sealed by a digest, or not the
JSON it should be), `too_large` (over 8 MiB, or no room), `not_streamed`, `client_asked`, `continuous`, `injected`.

## How to ask

```promql
# Output tokens per second, by model, as users are served now
sum by (model) (rate(tokenmeter_live_output_tokens_total[1m]))

# Tokens of a day, by type, that a bill may rest on
sum by (model, type) (increase(tokenmeter_tokens_total{provenance=\"reported\"}[1d]))

# Time to first token, 99th percentile
histogram_quantile(0.99, sum by (le, model) (rate(tokenmeter_time_to_first_token_seconds_bucket[5m])))

# The speed one user sees, against how many share the server
histogram_quantile(0.5, sum by (le, model, upstream, concurrency) (rate(tokenmeter_request_output_token_rate_per_second_bucket[1h])))

# Share of streams faster than 30 tokens per second (10, 15, 30 and 100 are edges)
1 - sum(rate(tokenmeter_request_output_token_rate_per_second_bucket{le=\"30.0\"}[5m]))
  / sum(rate(tokenmeter_request_output_token_rate_per_second_count[5m]))

# Errors and clients that left, as shares
sum by (model) (rate(tokenmeter_exchanges_total{ending!~\"complete|length|client_abort\"}[5m]))
  / sum by (model) (rate(tokenmeter_exchanges_total[5m]))
sum by (model) (rate(tokenmeter_exchanges_total{ending=\"client_abort\"}[5m]))
  / sum by (model) (rate(tokenmeter_exchanges_total[5m]))

# The share of failures by the semantic convention, by server
1 - sum by (server_address, server_port) (rate(gen_ai_server_request_duration_seconds_count{error_type=\"\"}[5m]))
  / sum by (server_address, server_port) (rate(gen_ai_server_request_duration_seconds_count[5m]))

# Share of exchanges that met their objective, and of tokens in such exchanges
sum by (model, objective) (rate(tokenmeter_goodput_exchanges_total[5m]))
  / sum by (model, objective) (rate(tokenmeter_objective_exchanges_total[5m]))
sum by (model, objective) (rate(tokenmeter_goodput_tokens_total[5m]))
  / sum by (model, objective) (rate(tokenmeter_objective_tokens_total[5m]))

# How fast the error budget burns: 1 is just as fast as the target allows
(1 - sum by (objective) (rate(tokenmeter_objective_exchanges_total{verdict=\"met\"}[1h]))
   / sum by (objective) (rate(tokenmeter_objective_exchanges_total[1h])))
  / (1 - max by (objective) (tokenmeter_objective_target_ratio))

# What each tenant spends in an hour, by price; dollars that its exchanges cost in GPU time and energy
sum by (tenant) (rate(tokenmeter_tenant_spend_usd_total{basis=\"price\"}[1h])) * 3600
sum by (tenant) (rate(tokenmeter_tenant_spend_usd_total{basis=\"gpu\"}[1h])) * 3600

# Does an answer slow down as it grows? Seconds per token by position
sum by (upstream, position) (rate(tokenmeter_output_position_seconds_total[1h]))
  / sum by (upstream, position) (rate(tokenmeter_output_position_tokens_total[1h]))

# Tokens a minute that the server generated and we did not see, smoothed over what is in flight
deriv(tokenmeter_engine_drift_tokens{direction=\"output\"}[30m]) * 60

# Requests that wait although the server's cache has room
tokenmeter_engine_waiting_requests > 0 and tokenmeter_engine_kv_cache_usage_ratio < 0.9

# Who is slow: the server, or the client that reads
rate(tokenmeter_stalled_seconds_total[5m])
rate(tokenmeter_client_wait_seconds_total[5m])
```
";
