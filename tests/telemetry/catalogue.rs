//! What an expression may name: the table of metrics, the recorded series, and what Prometheus adds.
//! Values of closed labels are those that the manual, which is made from the code, lists.

use std::collections::{BTreeMap, BTreeSet};

use metrics::{Kind, Metric};

use crate::expressions;

/// Rows that are agreed on and that the table does not have yet: name, whether it is a histogram,
/// labels. A row that the table has must not be here; when all are there this is empty.
pub(crate) const NOT_YET: &[(&str, bool, &[&str])] = &[
    ("gen_ai_client_inference_usage_input_tokens_total", false, GEN_AI_COUNTER),
    ("gen_ai_client_inference_usage_output_tokens_total", false, GEN_AI_COUNTER),
    ("gen_ai_client_inference_usage_cache_read_input_tokens_total", false, GEN_AI_COUNTER),
    ("gen_ai_client_inference_usage_cache_write_input_tokens_total", false, GEN_AI_COUNTER),
    ("gen_ai_client_inference_usage_reasoning_output_tokens_total", false, GEN_AI_COUNTER),
    ("gen_ai_client_inference_operation_input_tokens", true, GEN_AI),
    ("gen_ai_client_inference_operation_output_tokens", true, GEN_AI),
    ("hw_gpu_utilization_ratio", false, &["hw_id"]),
    ("hw_gpu_memory_usage_bytes", false, &["hw_id"]),
    ("hw_gpu_memory_limit_bytes", false, &["hw_id"]),
    ("hw_gpu_memory_utilization_ratio", false, &["hw_id"]),
    ("hw_power_watts", false, &["hw_id", "hw_type"]),
    ("hw_energy_joules_total", false, &["hw_id", "hw_type"]),
    ("hw_temperature_celsius", false, &["hw_id", "hw_type"]),
    ("hw_errors_total", false, &["hw_id", "hw_type", "error_type"]),
    (
        "tokenmeter_gpu_info",
        false,
        &["hw_id", "hw_name", "hw_vendor", "hw_driver_version", "hw_parent", "source", "upstream", "shared"],
    ),
    ("tokenmeter_gpu_up", false, &["hw_id"]),
    ("tokenmeter_gpu_activity_ratio", false, &["hw_id", "unit"]),
    ("tokenmeter_gpu_clock_hertz", false, &["hw_id", "clock"]),
    ("tokenmeter_gpu_power_limit_watts", false, &["hw_id"]),
    ("tokenmeter_gpu_throttled_seconds_total", false, &["hw_id", "reason"]),
    ("tokenmeter_gpu_processes", false, &["hw_id"]),
    ("tokenmeter_gpu_resets_total", false, &["hw_id"]),
    ("tokenmeter_gpu_gap_seconds_total", false, &["hw_id"]),
    ("tokenmeter_energy_attributed_joules_total", false, &["tenant"]),
    ("tokenmeter_energy_idle_joules_total", false, &["hw_id"]),
    ("tokenmeter_energy_unattributed_joules_total", false, &["hw_id"]),
    ("tokenmeter_energy_pending_joules", false, &["hw_id"]),
    ("tokenmeter_energy_model_joules_total", false, &["model"]),
    ("tokenmeter_gpu_attributed_seconds_total", false, &["tenant"]),
    ("tokenmeter_gpu_idle_seconds_total", false, &["hw_id"]),
    ("tokenmeter_gpu_unattributed_seconds_total", false, &["hw_id"]),
    ("tokenmeter_gpu_pending_seconds", false, &["hw_id"]),
    ("tokenmeter_gpu_cost_usd_total", false, &["tenant", "part"]),
    ("tokenmeter_gpu_idle_cost_usd_total", false, &["hw_id", "part"]),
    ("tokenmeter_gpu_unattributed_cost_usd_total", false, &["hw_id", "part"]),
    ("tokenmeter_request_energy_per_output_token_joules", true, &["model"]),
    ("tokenmeter_otlp_items_total", false, &["signal", "outcome"]),
    ("tokenmeter_otlp_queued_items", false, &["signal"]),
    ("tokenmeter_otlp_up", false, &["signal"]),
    ("tokenmeter_otlp_export_seconds", true, &["signal"]),
    ("tokenmeter_scrapes_total", false, &["format"]),
    ("tokenmeter_objective_exchanges_total", false, &["model", "objective", "verdict"]),
    ("tokenmeter_goodput_exchanges_total", false, &["model", "objective"]),
    ("tokenmeter_goodput_tokens_total", false, &["model", "objective"]),
    ("tokenmeter_objective_tokens_total", false, &["model", "objective"]),
    ("tokenmeter_tenant_objective_exchanges_total", false, &["tenant", "objective", "verdict"]),
    ("tokenmeter_objective_first_token_seconds", false, &["objective"]),
    ("tokenmeter_objective_output_token_rate_per_second", false, &["objective"]),
    ("tokenmeter_objective_target_ratio", false, &["objective"]),
];

const GEN_AI: &[&str] = &["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model"];
const GEN_AI_COUNTER: &[&str] =
    &["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "gen_ai_token_modality"];

/// Label values that are agreed on and not in the manual yet; goes with [`NOT_YET`].
pub(crate) const VALUES_NOT_YET: &[(&str, &[&str])] = &[("what", &["span", "log_record", "metric_export"])];

/// Each series' labels by its name.
pub(crate) fn series() -> BTreeMap<String, BTreeSet<String>> {
    let mut known = BTreeMap::new();
    for metric in Metric::ALL {
        let entry = metric.entry();
        add(&mut known, entry.name, matches!(entry.kind, Kind::Histogram(_)), entry.labels);
    }
    for (name, is_histogram, labels) in NOT_YET {
        add(&mut known, name, *is_histogram, labels);
    }
    add(&mut known, "up", false, &[]);
    for path in expressions::rule_files() {
        for rule in expressions::rules(&path).into_iter().filter(|rule| !rule.is_alert) {
            let level = rule.name.split(':').next().expect("a level");
            let mut labels: BTreeSet<String> = level.split('_').map(str::to_owned).collect();
            labels.insert("job".to_owned());
            labels.extend(rule.labels.into_iter().map(|(label, _)| label));
            known.entry(rule.name).or_insert(labels);
        }
    }
    known
}

fn add(known: &mut BTreeMap<String, BTreeSet<String>>, name: &str, is_histogram: bool, labels: &[&str]) {
    // Prometheus adds where it scraped.
    let mut labels: BTreeSet<String> = labels.iter().map(|label| (*label).to_owned()).collect();
    labels.extend(["job".to_owned(), "instance".to_owned()]);
    if is_histogram {
        known.insert(format!("{name}_sum"), labels.clone());
        known.insert(format!("{name}_count"), labels.clone());
        labels.insert("le".to_owned());
        known.insert(format!("{name}_bucket"), labels);
    } else {
        known.insert(name.to_owned(), labels);
    }
}

/// The values of a closed label on a metric, by the manual; none if it is open.
pub(crate) fn values(manual: &str, metric: &str, label: &str) -> Option<BTreeSet<String>> {
    let listed = |text: &str| -> Option<BTreeSet<String>> {
        let values: BTreeSet<String> = text.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        (!values.is_empty()).then_some(values)
    };
    let by_metric = || {
        let start = format!("`{label}` by metric:");
        let list = manual.split(&start).nth(1)?.split("\n\n").nth(1)?;
        let line = list.lines().find_map(|line| line.strip_prefix(&format!("- `{metric}`: ")))?;
        listed(line)
    };
    let of_label = || {
        let labels = manual.split("## Labels").nth(1).expect("the manual lists labels");
        let row = labels.lines().find(|line| line.starts_with(&format!("| `{label}` |")))?;
        listed(row.trim_end_matches(['|', ' ']).rsplit(" | ").next()?)
    };
    let mut values = by_metric().or_else(of_label)?;
    for (of, more) in VALUES_NOT_YET {
        if *of == label {
            values.extend(more.iter().map(|value| (*value).to_owned()));
        }
    }
    Some(values)
}
