//! The plan from the standard variables. Invariants: all errors are reported together, each with its remedy; an
//! explicit setting overrides a variable; a message never contains a variable's value, since headers and addresses
//! contain secrets; an empty variable counts as unset.

mod header_list;
mod reader;
mod resource;
mod target;
pub(crate) mod variables;

use std::time::Duration;

pub use reader::Diagnostic;

use crate::limits::{QUEUE_MAX_ITEMS, TEXT_MAX_BYTES};
use crate::plan::{Detail, EventName, Histograms, Periodic, Plan, Protocol, Queued, Signal};
use reader::Reader;
use variables::Queue;

/// Explicit settings; `None` leaves the value to the variables.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// The collector's base address, for all signals.
    pub endpoint: Option<String>,
    /// The protocol, for all signals.
    pub protocol: Option<Protocol>,
    /// True to export metrics.
    pub metrics: Option<bool>,
    /// True to export spans.
    pub spans: Option<bool>,
    /// True to export log records.
    pub logs: Option<bool>,
    /// The encoding of histograms.
    pub histograms: Option<Histograms>,
}

/// The settings resulting from variables and overrides.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The export plan; `None` if nothing is exported.
    pub plan: Option<Plan>,
    /// The version of the semantic convention of the metrics.
    pub semconv: Semconv,
    /// True if `traceparent` and `tracestate` are propagated (`OTEL_PROPAGATORS`); `baggage` always is.
    pub trace_context: bool,
    /// The sampler of spans.
    pub sampler: Sampler,
    /// Errors in the variables and overrides. An invalid value is replaced by the default, as the specification
    /// requires; a signal without a valid target is not exported.
    pub errors: Vec<Diagnostic>,
    /// Settings with a surprising effect, as sentences.
    pub warnings: Vec<String>,
}

/// The part of `OTEL_SEMCONV_STABILITY_OPT_IN` for generative AI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Semconv {
    /// The current names.
    #[default]
    Latest,
    /// `gen_ai.client.token.usage` instead of its successors.
    Legacy,
    /// Both.
    Both,
}

/// `OTEL_TRACES_SAMPLER`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    /// True if the decision of a caller, if there is one, is followed.
    pub follow_parent: bool,
    /// The sampled share of the other traces, 0 to 1.
    pub ratio: f64,
}

impl Default for Sampler {
    fn default() -> Self {
        Self { follow_parent: true, ratio: 1.0 }
    }
}

/// Resolves variables and explicit settings, and reports all errors. The variables apply to every program of a pod,
/// so an error in one must not prevent the start: the valid part of the settings always takes effect.
///
/// Nothing is exported unless an endpoint is set, explicitly or by any `OTEL_EXPORTER_OTLP_…`.
pub fn resolve(lookup: &dyn Fn(&str) -> Option<String>, overrides: &Overrides) -> Settings {
    let mut reader = Reader::new(lookup);
    let reader = &mut reader;
    let disabled = reader.truth("OTEL_SDK_DISABLED", false);
    let mut settings = Settings {
        plan: None,
        semconv: semconv(reader),
        trace_context: trace_context(reader),
        sampler: sampler(reader),
        errors: Vec::new(),
        warnings: Vec::new(),
    };
    let on = signals(reader, overrides);
    let on: [bool; 3] =
        std::array::from_fn(|at| on[at] && target::has_address(reader, overrides, Signal::ALL[at]));
    let configured = overrides.endpoint.is_some() || target::any_variable(reader);
    if configured {
        let plan = plan(reader, overrides, on);
        let any = plan.metrics.is_some() || plan.spans.is_some() || plan.logs.is_some();
        if disabled {
            settings.trace_context = false;
            reader.warn("OTEL_SDK_DISABLED is true: nothing is exported");
        }
        settings.plan = (any && !disabled).then_some(plan);
    } else if Signal::ALL.iter().any(|signal| reader.has(&format!("OTEL_{}_EXPORTER", signal.word()))) {
        reader.warn(&format!(
            "an exporter is set without an endpoint: nothing is exported until {} is set",
            variables::ENDPOINT.general
        ));
    }
    settings.warnings = std::mem::take(&mut reader.warnings);
    settings.errors = std::mem::take(&mut reader.errors);
    settings
}

fn plan(reader: &mut Reader<'_>, overrides: &Overrides, [metrics, spans, logs]: [bool; 3]) -> Plan {
    if reader.text(variables::TEMPORALITY).is_some_and(|word| !word.eq_ignore_ascii_case("cumulative")) {
        reader.error(
            variables::TEMPORALITY,
            "is not cumulative, the only supported temporality",
            "remove it, and use the collector's cumulativetodelta processor",
        );
    }
    Plan {
        resource: resource::resource(reader),
        text_limit: text_limit(reader),
        metrics: metrics.then(|| periodic(reader, overrides)).flatten(),
        spans: spans.then(|| queued(reader, overrides, Signal::Span, &variables::SPANS)).flatten(),
        logs: logs.then(|| queued(reader, overrides, Signal::Log, &variables::LOGS)).flatten(),
        event: EventName::default(),
        detail: Detail::default(),
        upstreams: Vec::new(),
    }
}

fn periodic(reader: &mut Reader<'_>, overrides: &Overrides) -> Option<Periodic> {
    let aggregation = [
        ("explicit_bucket_histogram", Histograms::Explicit),
        ("base2_exponential_bucket_histogram", Histograms::Exponential),
    ];
    let histograms = reader.choice(variables::HISTOGRAMS, &aggregation);
    let every = reader.time(variables::INTERVAL, Duration::from_secs(60));
    let within = reader.time(variables::WITHIN, Duration::from_secs(30));
    let histograms = overrides.histograms.or(histograms).unwrap_or_default();
    let target = target::target(reader, overrides, Signal::Metric)?;
    Some(Periodic { target, every, within, histograms })
}

fn queued(reader: &mut Reader<'_>, overrides: &Overrides, signal: Signal, names: &Queue) -> Option<Queued> {
    let ((queue, capacity), (batch, items)) = (names.capacity, names.batch);
    let capacity = reader.count(queue, capacity, QUEUE_MAX_ITEMS);
    let mut items = reader.count(batch, capacity.min(items), QUEUE_MAX_ITEMS);
    if items > capacity {
        reader.error(batch, &format!("exceeds {queue}"), "set it to at most the same value");
        items = capacity;
    }
    let ((delay, default_delay), (within, default_within)) = (names.delay, names.within);
    let delay = reader.time(delay, default_delay);
    let within = reader.time(within, default_within);
    let target = target::target(reader, overrides, signal)?;
    // An exchange has two spans.
    Some(Queued { target, capacity: capacity.max(2), batch: items, delay, within })
}

/// Returns true for each enabled signal. Log records are disabled by default.
fn signals(reader: &mut Reader<'_>, overrides: &Overrides) -> [bool; 3] {
    Signal::ALL.map(|signal| {
        let (explicit, default) = match signal {
            Signal::Metric => (overrides.metrics, true),
            Signal::Span => (overrides.spans, true),
            Signal::Log => (overrides.logs, false),
        };
        let variable = format!("OTEL_{}_EXPORTER", signal.word());
        let from_variable = match reader.text(&variable).as_deref() {
            None => default,
            Some("otlp") => true,
            Some("none") => false,
            Some("prometheus") if signal == Signal::Metric => {
                reader.warn("OTEL_METRICS_EXPORTER is prometheus: the metrics page is always served, and metrics are not exported");
                false
            }
            Some(_) => {
                reader.error(&variable, "names an unknown exporter", "set it to otlp or none");
                false
            }
        };
        explicit.unwrap_or(from_variable)
    })
}

fn text_limit(reader: &mut Reader<'_>) -> usize {
    reader.count("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", TEXT_MAX_BYTES, usize::MAX).min(TEXT_MAX_BYTES)
}

fn semconv(reader: &mut Reader<'_>) -> Semconv {
    let variable = "OTEL_SEMCONV_STABILITY_OPT_IN";
    let mut semconv = Semconv::Latest;
    for word in reader.list(variable) {
        semconv = match word.as_str() {
            "gen_ai_latest_experimental" => Semconv::Latest,
            "gen_ai_legacy" => Semconv::Legacy,
            "gen_ai/dup" | "gen_ai_latest_experimental/dup" => Semconv::Both,
            // The variable is shared by all programs, so words of other conventions are ignored.
            word if !word.starts_with("gen_ai") => semconv,
            _ => {
                reader.error(
                    variable,
                    "has an unknown word for gen_ai",
                    "use gen_ai_latest_experimental, gen_ai_legacy or gen_ai_latest_experimental/dup",
                );
                semconv
            }
        };
    }
    semconv
}

fn trace_context(reader: &mut Reader<'_>) -> bool {
    let variable = "OTEL_PROPAGATORS";
    let words = reader.list(variable);
    let known = |word: &String| matches!(word.as_str(), "tracecontext" | "baggage");
    if words != ["none"] && !words.iter().all(known) {
        let remedy = "use tracecontext and baggage, or only none";
        reader.error(variable, "names an unknown propagator", remedy);
    }
    words.is_empty() || words.iter().any(|word| word == "tracecontext")
}

fn sampler(reader: &mut Reader<'_>) -> Sampler {
    let (variable, argument) = ("OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG");
    let kinds = [
        ("always_on", (false, Some(1.0))),
        ("always_off", (false, Some(0.0))),
        ("traceidratio", (false, None)),
        ("parentbased_always_on", (true, Some(1.0))),
        ("parentbased_always_off", (true, Some(0.0))),
        ("parentbased_traceidratio", (true, None)),
    ];
    let Some((follow_parent, ratio)) = reader.choice(variable, &kinds) else { return Sampler::default() };
    let ratio = ratio.unwrap_or_else(|| match reader.text(argument).map(|text| text.parse::<f64>()) {
        None => 1.0,
        Some(Ok(ratio)) if (0.0..=1.0).contains(&ratio) => ratio,
        Some(_) => {
            reader.error(argument, "is not a ratio", "set it to a number from 0 to 1");
            1.0
        }
    });
    Sampler { follow_parent, ratio }
}

#[cfg(test)]
mod tests;
