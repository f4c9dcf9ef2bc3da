//! The standard variables, made into a plan. The laws: every mistake is found at once and said with
//! its remedy; an explicit setting wins over a variable; a variable's value is never repeated in a
//! message, since headers and addresses hold secrets; an empty variable is one that is not set.

mod header_list;
mod reader;
mod resource;
mod target;
pub(crate) mod variables;

use std::time::Duration;

pub use reader::Mistake;

use crate::limits::{QUEUE_ITEMS, TEXT_BYTES};
use crate::plan::{EventName, Histograms, Periodic, Plan, Protocol, Queued, Signal};
use reader::Reader;
use variables::Queue;

/// What was said explicitly; `None` leaves it to the variables.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// The collector's base address, for all signals.
    pub endpoint: Option<String>,
    /// What is spoken, for all signals.
    pub protocol: Option<Protocol>,
    /// Whether metrics are sent.
    pub metrics: Option<bool>,
    /// Whether spans are sent.
    pub spans: Option<bool>,
    /// Whether log records are sent.
    pub logs: Option<bool>,
    /// How histograms are written.
    pub histograms: Option<Histograms>,
}

/// What the variables come to.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What is sent; `None` if nothing is.
    pub plan: Option<Plan>,
    /// Which of the conventions' vintages the metrics follow.
    pub semconv: Semconv,
    /// Whether `traceparent` and `tracestate` are passed on (`OTEL_PROPAGATORS`); `baggage` always is.
    pub trace_context: bool,
    /// Which exchanges have spans.
    pub sampler: Sampler,
    /// What is wrong with what was said. A value that is none of its variable's words stands for the
    /// default, as the specification wants it; a signal whose way is not clear is not sent.
    pub mistakes: Vec<Mistake>,
    /// What works otherwise than someone may think, in whole sentences.
    pub warnings: Vec<String>,
}

/// `OTEL_SEMCONV_STABILITY_OPT_IN`, as far as it is about generative AI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Semconv {
    /// The newest names.
    #[default]
    Latest,
    /// `gen_ai.client.token.usage` in place of what followed it.
    Legacy,
    /// Both.
    Both,
}

/// `OTEL_TRACES_SAMPLER`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    /// Whether a caller's own decision is followed where there is a caller.
    pub follow_parent: bool,
    /// The share of the other traces that is kept, 0 to 1.
    pub ratio: f64,
}

impl Default for Sampler {
    fn default() -> Self {
        Self { follow_parent: true, ratio: 1.0 }
    }
}

/// Makes a plan of variables and explicit settings, and says everything that is wrong with them. The
/// variables are every program's in a pod, and what others may do with one is no reason for us not to
/// serve: so there is always a plan, of what could be understood.
///
/// Nothing is sent unless an endpoint is set, explicitly or by any `OTEL_EXPORTER_OTLP_…`.
pub fn resolve(lookup: &dyn Fn(&str) -> Option<String>, overrides: &Overrides) -> Settings {
    let mut reader = Reader::new(lookup);
    let reader = &mut reader;
    let disabled = reader.truth("OTEL_SDK_DISABLED", false);
    let mut settings = Settings {
        plan: None,
        semconv: semconv(reader),
        trace_context: trace_context(reader),
        sampler: sampler(reader),
        mistakes: Vec::new(),
        warnings: Vec::new(),
    };
    let on = signals(reader, overrides);
    let on: [bool; 3] =
        std::array::from_fn(|at| on[at] && target::is_addressed(reader, overrides, Signal::ALL[at]));
    let configured = overrides.endpoint.is_some() || target::any_variable(reader);
    if configured {
        let plan = plan(reader, overrides, on);
        let any = plan.metrics.is_some() || plan.spans.is_some() || plan.logs.is_some();
        if disabled {
            settings.trace_context = false;
            reader.warn("OTEL_SDK_DISABLED is true: nothing is sent, whatever else is set");
        }
        settings.plan = (any && !disabled).then_some(plan);
    } else if Signal::ALL.iter().any(|signal| reader.has(&format!("OTEL_{}_EXPORTER", signal.word()))) {
        reader.warn(&format!(
            "an exporter is named, but no address: nothing is sent until {} is set",
            variables::ENDPOINT.general
        ));
    }
    settings.warnings = std::mem::take(&mut reader.warnings);
    settings.mistakes = std::mem::take(&mut reader.mistakes);
    settings
}

fn plan(reader: &mut Reader<'_>, overrides: &Overrides, [metrics, spans, logs]: [bool; 3]) -> Plan {
    if reader.text(variables::TEMPORALITY).is_some_and(|word| !word.eq_ignore_ascii_case("cumulative")) {
        reader.mistake(
            variables::TEMPORALITY,
            "asks for something else than cumulative temporality, the only one there is",
            "remove it, and let the collector make differences (its cumulativetodelta processor)",
        );
    }
    Plan {
        resource: resource::resource(reader),
        text_limit: text_limit(reader),
        metrics: metrics.then(|| periodic(reader, overrides)).flatten(),
        spans: spans.then(|| queued(reader, overrides, Signal::Span, &variables::SPANS)).flatten(),
        logs: logs.then(|| queued(reader, overrides, Signal::Log, &variables::LOGS)).flatten(),
        event: EventName::default(),
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
    let capacity = reader.count(queue, capacity, QUEUE_ITEMS);
    let mut items = reader.count(batch, capacity.min(items), QUEUE_ITEMS);
    if items > capacity {
        reader.mistake(batch, &format!("is more than {queue}"), "make it at most as large");
        items = capacity;
    }
    let ((delay, default_delay), (within, default_within)) = (names.delay, names.within);
    let delay = reader.time(delay, default_delay);
    let within = reader.time(within, default_within);
    let target = target::target(reader, overrides, signal)?;
    // An exchange has two spans.
    Some(Queued { target, capacity: capacity.max(2), batch: items, delay, within })
}

/// Which of the three are sent. Log records are only sent if someone asks for them.
fn signals(reader: &mut Reader<'_>, overrides: &Overrides) -> [bool; 3] {
    Signal::ALL.map(|signal| {
        let (explicit, default) = match signal {
            Signal::Metric => (overrides.metrics, true),
            Signal::Span => (overrides.spans, true),
            Signal::Log => (overrides.logs, false),
        };
        let variable = format!("OTEL_{}_EXPORTER", signal.word());
        let said = match reader.text(&variable).as_deref() {
            None => default,
            Some("otlp") => true,
            Some("none") => false,
            Some("prometheus") if signal == Signal::Metric => {
                reader.warn("OTEL_METRICS_EXPORTER is prometheus: the metrics page is always there, and nothing is sent");
                false
            }
            Some(_) => {
                reader.mistake(&variable, "names an exporter there is not", "set it to otlp or to none");
                false
            }
        };
        explicit.unwrap_or(said)
    })
}

fn text_limit(reader: &mut Reader<'_>) -> usize {
    reader.count("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", TEXT_BYTES, usize::MAX).min(TEXT_BYTES)
}

fn semconv(reader: &mut Reader<'_>) -> Semconv {
    let variable = "OTEL_SEMCONV_STABILITY_OPT_IN";
    let mut semconv = Semconv::Latest;
    for word in reader.list(variable) {
        semconv = match word.as_str() {
            "gen_ai_latest_experimental" => Semconv::Latest,
            "gen_ai_legacy" => Semconv::Legacy,
            "gen_ai/dup" | "gen_ai_latest_experimental/dup" => Semconv::Both,
            // Other conventions' words are none of our business, and one variable serves all programs.
            word if !word.starts_with("gen_ai") => semconv,
            _ => {
                reader.mistake(
                    variable,
                    "has a word about gen_ai that is not known",
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
        let remedy = "use tracecontext and baggage, or none alone";
        reader.mistake(variable, "names a propagator there is not", remedy);
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
            reader.mistake(argument, "is not a share", "set it to a number from 0 to 1");
            1.0
        }
    });
    Sampler { follow_parent, ratio }
}

#[cfg(test)]
mod tests;
