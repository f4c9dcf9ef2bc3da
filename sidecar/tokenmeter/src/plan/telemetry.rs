//! Plans the export to a collector. tokenmeter's settings precede OpenTelemetry's standard variables.

use std::collections::BTreeMap;

use metrics::Semconv;
use origin::{Diagnostic, Origin};
use otlp::settings::{Overrides, Settings, resolve};
use otlp::{Detail, EventName, Protocol, Signal};
use relay::{Draw, Sampler, Tracing};

use super::values::Reader;
use crate::plan::machine::Machine;
use crate::settings::{AUTO, ON, Value};

/// The export of metrics, spans and log records.
#[derive(Clone, Debug, Default)]
pub struct Telemetry {
    /// The export; `None` if nothing is exported.
    pub otlp: Option<otlp::Plan>,
    /// The version of the GenAI convention, on the metrics page, too.
    pub semconv: Semconv,
    /// The addresses of the upstreams, for `server.address` and `server.port`.
    pub upstreams: Vec<metrics::Upstream>,
    /// The tracing of exchanges, if spans are exported.
    pub trace: Option<Tracing>,
    /// Values of settings that a standard variable sets, by key.
    pub standard: BTreeMap<&'static str, Value>,
}

impl Telemetry {
    /// Returns notes on a non-default convention and on each exported signal. They hold neither headers
    /// nor queries, which may be secret.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.semconv != Semconv::default() {
            notes.push(format!("metrics by the GenAI convention: {:?}", self.semconv).to_lowercase());
        }
        notes.extend(self.exports());
        notes
    }

    /// Returns a line per exported signal: the signal, its collector and the protocol.
    pub(crate) fn exports(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let Some(otlp) = &self.otlp else { return lines };
        let targets = [
            ("metrics", otlp.metrics.as_ref().map(|metrics| &metrics.target)),
            ("traces", otlp.spans.as_ref().map(|spans| &spans.target)),
            ("logs", otlp.logs.as_ref().map(|logs| &logs.target)),
        ];
        for (signal, target) in targets {
            let Some(target) = target else { continue };
            let protocol = match target.protocol {
                Protocol::Http => "http/protobuf",
                Protocol::Grpc => "grpc",
            };
            let (scheme, host) = (target.uri.scheme_str(), target.uri.authority());
            let (scheme, host) = (scheme.unwrap_or_default(), host.map_or("", |host| host.as_str()));
            lines.push(format!("{signal} go to {scheme}://{host}{} by {protocol}", target.uri.path()));
        }
        lines
    }
}

impl Reader<'_> {
    /// Plans the export; spans and metrics name `upstreams`.
    pub(super) fn telemetry(
        &mut self,
        machine: &dyn Machine,
        upstreams: Vec<metrics::Upstream>,
    ) -> Telemetry {
        let overrides = self.overrides(machine);
        let headers = self.value("trace_headers");
        let propagate = self.one_of_setting("trace_headers", &headers) == ON;
        let semconv = self.semconv();
        let detail = self.detail();
        let settings = resolve(&|name| machine.variable(name), &overrides);
        for error in settings.errors {
            let standard = error.variable.starts_with("OTEL_");
            let diagnostic = Diagnostic::missing(&error.variable, error.message, error.remedy);
            // The standard variables may be set for other programs, too, so an error in one must not
            // prevent the start.
            if standard { self.warnings.push(diagnostic) } else { self.errors.push(diagnostic) }
        }
        for warning in &settings.warnings {
            self.warnings.push(Diagnostic::missing(
                "OpenTelemetry",
                warning.as_str(),
                "see sidecar/otlp/otlp.md",
            ));
        }
        let Settings { plan, trace_context, sampler, .. } = settings;
        let standard = self.standard(machine, plan.as_ref());
        let draw = match sampler.ratio {
            ratio if ratio >= 1.0 => Draw::Always,
            ratio if ratio <= 0.0 => Draw::Never,
            ratio => Draw::Ratio(ratio),
        };
        let sampler = Sampler { heeds_caller: sampler.follow_parent, draw };
        let traced = plan.as_ref().is_some_and(|plan| plan.spans.is_some());
        let semconv = semconv.unwrap_or(match settings.semconv {
            otlp::settings::Semconv::Latest => Semconv::Latest,
            otlp::settings::Semconv::Legacy => Semconv::Legacy,
            otlp::settings::Semconv::Both => Semconv::Both,
        });
        let event = match semconv {
            Semconv::Client => EventName::OperationDetails,
            Semconv::Latest | Semconv::Legacy | Semconv::Both => EventName::Exchange,
        };
        Telemetry {
            otlp: plan.map(|plan| otlp::Plan { upstreams: upstreams.clone(), event, detail, ..plan }),
            upstreams,
            semconv,
            trace: traced.then_some(Tracing { sampler, propagate: propagate && trace_context }),
            standard,
        }
    }

    /// Returns the settings that a standard variable sets in place of a default. The general endpoint comes
    /// without its query, which may hold a key; a signal's own endpoint has no setting, only a note.
    fn standard(&self, machine: &dyn Machine, plan: Option<&otlp::Plan>) -> BTreeMap<&'static str, Value> {
        let variable = |name: &str| machine.variable(name).filter(|text| !text.trim().is_empty());
        let mut found = BTreeMap::new();
        let mut add = |key: &'static str, text: String, variable: &str| {
            if self.written.values.get(key).is_none_or(|value| value.text.is_empty() || value.text == AUTO) {
                found.insert(key, Value { text, origin: Origin::Env(variable.to_owned()) });
            }
        };
        if let Some(word) = variable(SEMCONV_OPT_IN).filter(|word| word.contains("gen_ai")) {
            let both = word.contains("/dup");
            let legacy = word.contains("gen_ai_legacy");
            add(
                "semconv",
                if both {
                    "both"
                } else if legacy {
                    "legacy"
                } else {
                    "latest"
                }
                .to_owned(),
                SEMCONV_OPT_IN,
            );
        }
        let Some(plan) = plan else { return found };
        if let Some(endpoint) = variable(ENDPOINT).filter(|text| !text.contains('@')) {
            let end = endpoint.find(['?', '#']).unwrap_or(endpoint.len());
            add("otlp_endpoint", endpoint[..end].trim().to_owned(), ENDPOINT);
        }
        if let Some(protocol) = variable(PROTOCOL) {
            add("otlp_protocol", protocol.trim().to_owned(), PROTOCOL);
        }
        let sent = [plan.metrics.is_some(), plan.spans.is_some(), plan.logs.is_some()];
        let exporters = Signal::ALL.map(|signal| format!("OTEL_{}_EXPORTER", signal.word()));
        let named: Vec<&str> =
            exporters.iter().map(String::as_str).filter(|name| variable(name).is_some()).collect();
        if !named.is_empty() {
            let names = SIGNALS.into_iter().zip(sent).filter_map(|(name, sent)| sent.then_some(name));
            add("otlp_signals", names.collect::<Vec<_>>().join(","), &named.join(", "));
        }
        found
    }

    /// Returns the values that precede the standard variables.
    fn overrides(&mut self, machine: &dyn Machine) -> Overrides {
        let endpoint = self.value("otlp_endpoint");
        if !endpoint.text.is_empty()
            && machine.variable(ENDPOINT).is_some_and(|text| !text.is_empty() && text != endpoint.text)
        {
            let problem = format!("precedes {ENDPOINT}, which has another value");
            self.warnings.push(Diagnostic::at(&endpoint.origin, problem, "remove one of the two"));
        }
        let protocol = self.value("otlp_protocol");
        let protocol = match self.one_of_setting("otlp_protocol", &protocol) {
            "grpc" => Some(Protocol::Grpc),
            "http/protobuf" => Some(Protocol::Http),
            _ => None,
        };
        let [metrics, spans, logs] = self.signals();
        Overrides {
            endpoint: Some(endpoint.text).filter(|text| !text.is_empty()),
            protocol,
            metrics,
            spans,
            logs,
            histograms: None,
        }
    }

    /// Returns for each signal whether it is exported; `None` if the setting is empty.
    fn signals(&mut self) -> [Option<bool>; Signal::ALL.len()] {
        let Value { text, origin } = self.value("otlp_signals");
        let named: Vec<&str> = text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        if let Some(odd) = named.iter().find(|name| !SIGNALS.contains(name)) {
            let problem = format!("`{}` is not a signal", odd.escape_debug());
            self.errors.push(Diagnostic::at(&origin, problem, "write some of metrics, traces, logs"));
        }
        SIGNALS.map(|name| (!named.is_empty()).then_some(named.contains(&name)))
    }

    fn detail(&mut self) -> Detail {
        let written = self.value("otlp_detail");
        if self.one_of_setting("otlp_detail", &written) == "full" { Detail::Full } else { Detail::Standard }
    }

    fn semconv(&mut self) -> Option<Semconv> {
        let written = self.value("semconv");
        match self.one_of_setting("semconv", &written) {
            AUTO => None,
            "legacy" => Some(Semconv::Legacy),
            "both" => Some(Semconv::Both),
            "client" => Some(Semconv::Client),
            _ => Some(Semconv::Latest),
        }
    }
}

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
const SEMCONV_OPT_IN: &str = "OTEL_SEMCONV_STABILITY_OPT_IN";

/// The signals by their names in the settings, in the order of [`Signal::ALL`].
const SIGNALS: [&str; Signal::ALL.len()] = ["metrics", "traces", "logs"];

#[cfg(test)]
#[path = "telemetry_tests.rs"]
mod tests;
