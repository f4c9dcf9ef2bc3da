//! The names of metrics and labels in OTLP. Invariant: translated to Prometheus by OpenTelemetry's rules
//! (dots to underscores, the unit's word and `_total` appended), every name equals the one on the page, so
//! that a query works for both paths. The tests translate each.
//!
//! A name is derived from the page's: the unit's word and `_total` are removed, and the first underscore
//! becomes a dot. Only the names of a semantic convention, which has dots of its own, are listed.

use std::borrow::Cow;
use std::sync::LazyLock;

use super::{Entry, Kind, Metric, Unit};
use crate::currency::Currency;

/// The kind of instrument in OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instrument {
    /// Only grows.
    Counter,
    /// Goes up and down; sums over its labels are meaningful.
    UpDownCounter,
    /// Goes up and down.
    Gauge,
    /// A distribution.
    Histogram,
}

impl Entry {
    /// Returns the metric's name in OTLP.
    pub fn otlp_name(&self) -> &'static str {
        let at = Metric::ALL.iter().position(|metric| metric.entry().name == self.name);
        // An entry outside the table keeps its own name.
        at.map_or(self.name, |at| NAMES[at].as_str())
    }

    /// Returns the metric's unit in OTLP, in UCUM.
    pub fn otlp_unit(&self) -> &'static str {
        let counted = COUNTED.iter().find(|(name, _)| *name == self.name);
        match (counted, self.unit) {
            (Some((_, unit)), _) => unit,
            (_, Unit::Seconds) => "s",
            (_, Unit::Bytes) => "By",
            (_, Unit::Joules) => "J",
            (_, Unit::Watts) => "W",
            (_, Unit::Celsius) => "Cel",
            (_, Unit::Hertz) => "Hz",
            // The name already contains the currency; a unit without braces would be appended to it.
            (_, Unit::Usd | Unit::Money) => "{USD}",
            (_, Unit::PerSecond) => "{token}/s",
            (_, Unit::Tokens) => "{token}",
            (_, Unit::Characters) => "{character}",
            (_, Unit::Exchanges) => "{exchange}",
            (_, Unit::Requests) => "{request}",
            (_, Unit::Things) => "{thing}",
            (_, Unit::Ratio) => "1",
            // `1` would make the translated name end in `_ratio`.
            (_, Unit::Truth) => "{truth}",
        }
    }

    /// Returns the name in OTLP for a price book in this currency.
    pub fn otlp_name_in(&self, currency: Currency) -> Cow<'static, str> {
        self.in_currency(self.otlp_name(), currency)
    }

    /// Returns the unit in OTLP for a price book in this currency.
    pub fn otlp_unit_in(&self, currency: Currency) -> Cow<'static, str> {
        match self.unit {
            Unit::Money => Cow::Owned(format!("{{{}}}", currency.code())),
            _ => Cow::Borrowed(self.otlp_unit()),
        }
    }

    /// Returns the kind of instrument in OTLP.
    pub fn instrument(&self) -> Instrument {
        match self.kind {
            Kind::Counter => Instrument::Counter,
            Kind::Histogram(_) => Instrument::Histogram,
            Kind::Gauge if SUMMABLE.contains(&self.name) => Instrument::UpDownCounter,
            Kind::Gauge => Instrument::Gauge,
        }
    }
}

/// Returns the name of a label in OTLP: that of the semantic convention if it has one, else the same.
pub fn attribute(label: &'static str) -> &'static str {
    match label {
        "gen_ai_operation_name" => "gen_ai.operation.name",
        "gen_ai_provider_name" => "gen_ai.provider.name",
        "gen_ai_request_model" => "gen_ai.request.model",
        "gen_ai_token_modality" => "gen_ai.token.modality",
        "gen_ai_token_type" => "gen_ai.token.type",
        "hw_id" => "hw.id",
        "hw_type" => "hw.type",
        "hw_name" => "hw.name",
        "hw_vendor" => "hw.vendor",
        "hw_driver_version" => "hw.driver_version",
        "hw_parent" => "hw.parent",
        "error_type" => "error.type",
        "server_address" => "server.address",
        "server_port" => "server.port",
        other => other,
    }
}

/// Gauges whose sum over their labels is meaningful.
const SUMMABLE: &[&str] = &[
    "tokenmeter_exchanges_in_flight",
    "hw_gpu_memory_usage_bytes",
    "hw_gpu_memory_limit_bytes",
    "tokenmeter_ledger_bytes",
];

/// Units of counts that the table does not state. Without a line here, [`Unit::Things`] is exported as `{thing}`.
const COUNTED: &[(&str, &str)] = &[
    ("tokenmeter_visible_characters_rate_per_second", "{character}/s"),
    ("tokenmeter_connections", "{connection}"),
    ("tokenmeter_connections_limit", "{connection}"),
    ("tokenmeter_upstream_connections", "{connection}"),
    ("tokenmeter_upstream_connections_limit", "{connection}"),
    // Requests or tokens, by the label `quota`.
    ("tokenmeter_rate_limit", "{item}"),
    ("tokenmeter_rate_limit_remaining", "{item}"),
    ("tokenmeter_stalls_total", "{stall}"),
    ("tokenmeter_untrusted_tenant_headers_total", "{header}"),
    ("tokenmeter_budget_alerts_total", "{alert}"),
    ("tokenmeter_budget_webhooks_total", "{message}"),
    ("tokenmeter_ledger_rows_total", "{row}"),
    ("tokenmeter_ledger_queued_rows", "{row}"),
    ("tokenmeter_ledger_shed_rows_total", "{row}"),
    ("tokenmeter_ledger_lost_rows_total", "{row}"),
    ("tokenmeter_ledger_gaps_total", "{gap}"),
    ("tokenmeter_ledger_quarantined_total", "{file}"),
    ("tokenmeter_ledger_faults_total", "{fault}"),
    ("tokenmeter_ship_rows_total", "{row}"),
    ("tokenmeter_ship_pending_rows", "{row}"),
    ("tokenmeter_ship_failures_total", "{failure}"),
    ("tokenmeter_usage_events_sent_total", "{event}"),
    ("tokenmeter_usage_events_pending", "{row}"),
    ("tokenmeter_usage_events_failures_total", "{failure}"),
    ("tokenmeter_config_reloads_total", "{reload}"),
    ("tokenmeter_engine_preemptions", "{preemption}"),
    ("hw_errors_total", "{error}"),
    ("tokenmeter_gpu_processes", "{process}"),
    ("tokenmeter_gpu_resets_total", "{reset}"),
    ("tokenmeter_otlp_items_total", "{item}"),
    ("tokenmeter_otlp_queued_items", "{item}"),
    ("tokenmeter_scrapes_total", "{scrape}"),
    ("tokenmeter_dropped_total", "{item}"),
    ("process_open_fds", "{file_descriptor}"),
];

/// The names in OTLP, in the order of the table.
static NAMES: LazyLock<Vec<String>> =
    LazyLock::new(|| Metric::ALL.iter().map(|metric| name(metric.entry())).collect());

fn name(entry: &Entry) -> String {
    let conventional = CONVENTIONAL.iter().find(|(name, _)| *name == entry.name);
    if let Some((_, otlp)) = conventional {
        return (*otlp).to_owned();
    }
    let family = entry.family();
    // OTLP's translation appends no currency, so the currency stays in the name.
    let suffix = entry.unit.suffix().filter(|_| ![Unit::Usd, Unit::Money].contains(&entry.unit));
    let unit = suffix.and_then(|unit| family.strip_suffix(unit)?.strip_suffix('_'));
    unit.unwrap_or(family).replacen('_', ".", 1)
}

/// Names given by a semantic convention: on the page, and in OTLP.
const CONVENTIONAL: &[(&str, &str)] = &[
    ("gen_ai_server_time_to_first_token_seconds", "gen_ai.server.time_to_first_token"),
    ("gen_ai_server_time_per_output_token_seconds", "gen_ai.server.time_per_output_token"),
    ("gen_ai_server_request_duration_seconds", "gen_ai.server.request.duration"),
    ("gen_ai_client_inference_usage_input_tokens_total", "gen_ai.client.inference.usage.input_tokens"),
    ("gen_ai_client_inference_usage_output_tokens_total", "gen_ai.client.inference.usage.output_tokens"),
    (
        "gen_ai_client_inference_usage_cache_read_input_tokens_total",
        "gen_ai.client.inference.usage.cache_read.input_tokens",
    ),
    (
        "gen_ai_client_inference_usage_cache_write_input_tokens_total",
        "gen_ai.client.inference.usage.cache_write.input_tokens",
    ),
    (
        "gen_ai_client_inference_usage_reasoning_output_tokens_total",
        "gen_ai.client.inference.usage.reasoning.output_tokens",
    ),
    ("gen_ai_client_inference_operation_input_tokens", "gen_ai.client.inference.operation.input_tokens"),
    ("gen_ai_client_inference_operation_output_tokens", "gen_ai.client.inference.operation.output_tokens"),
    ("gen_ai_client_inference_duration_seconds", "gen_ai.client.inference.duration"),
    ("gen_ai_client_inference_time_to_first_chunk_seconds", "gen_ai.client.inference.time_to_first_chunk"),
    (
        "gen_ai_client_inference_time_per_output_chunk_seconds",
        "gen_ai.client.inference.time_per_output_chunk",
    ),
    ("gen_ai_client_embeddings_duration_seconds", "gen_ai.client.embeddings.duration"),
    ("gen_ai_client_embeddings_operation_input_tokens", "gen_ai.client.embeddings.operation.input_tokens"),
    ("gen_ai_client_token_usage", "gen_ai.client.token.usage"),
    ("hw_gpu_utilization_ratio", "hw.gpu.utilization"),
    ("hw_gpu_memory_usage_bytes", "hw.gpu.memory.usage"),
    ("hw_gpu_memory_limit_bytes", "hw.gpu.memory.limit"),
    ("hw_gpu_memory_utilization_ratio", "hw.gpu.memory.utilization"),
];
