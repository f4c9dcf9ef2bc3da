//! Plans the GPUs: the source of their readings, the upstream of each, and their prices.

use std::time::Duration;

use connect::TlsFiles;
use gpu::{ExporterPlan, Gpus, Prices, SourceChoice, Upstream};
use origin::{Diagnostic, Origin};
use scrape::Fetcher;

use super::values::{Reader, pico};
use crate::plan::machine::Machine;
use crate::plan::tls::ROOTS_REMEDY;
use crate::plan::url::Url;
use crate::settings::{Form, OFF, Value, setting};

impl Reader<'_> {
    /// Plans the GPU readings; `None` if they are off.
    pub(super) fn gpu(
        &mut self,
        machine: &dyn Machine,
        upstreams: Vec<Upstream>,
        models: usize,
    ) -> Option<gpu::Plan> {
        let exporter = self.exporter(machine);
        let source = self.source(exporter.is_some());
        let period = self.milliseconds("gpu_sample_ms");
        let stale = self.stale(period);
        let prices = Prices {
            hour_pico: self.scaled("gpu_hour_usd", PICO),
            kwh_pico: self.scaled("kwh_usd", PICO),
            pue_micro: self.scaled("pue", MICRO),
        };
        if (1..MICRO).contains(&prices.pue_micro) {
            let written = self.value("pue");
            let problem = format!(
                "`{}` is less than 1: a data centre draws at least what its devices draw",
                written.text
            );
            self.errors.push(Diagnostic::at(&written.origin, problem, "write 1 or more"));
        }
        let source = source?;
        Some(gpu::Plan {
            source,
            nvml_library: None,
            exporter,
            upstreams: self.assign(upstreams, source),
            period,
            stale_periods: periods(stale, period),
            prices,
            tenants: TENANTS + RESERVED_LABELS,
            models: models + RESERVED_LABELS,
        })
    }

    /// Returns the maximum age of a sample; the default depends on the period.
    fn stale(&mut self, period: Duration) -> Duration {
        let stale = self.milliseconds("gpu_stale_ms");
        let origin = self.value("gpu_stale_ms").origin;
        if matches!(origin, Origin::Default) {
            return stale.max(period * 5);
        }
        if stale < period * 2 {
            let (stale, period) = (stale.as_millis(), period.as_millis());
            let problem =
                format!("GPUs are read every {period} ms, so {stale} ms span less than two samples");
            let remedy = format!("write at least {}, or lower gpu_sample_ms", period * 2);
            self.errors.push(Diagnostic::at(&origin, problem, remedy));
        }
        stale
    }

    fn source(&mut self, has_exporter: bool) -> Option<SourceChoice> {
        let written = self.value("gpu");
        let name = self.one_of_setting("gpu", &written);
        if name == "exporter" && !has_exporter {
            let problem = "`gpu: exporter` needs the exporter's address";
            self.errors.push(Diagnostic::at(
                &written.origin,
                problem,
                "write gpu_exporter: http://HOST:PORT/metrics",
            ));
        }
        match name {
            OFF => None,
            "nvml" => Some(SourceChoice::Nvml),
            "exporter" => Some(SourceChoice::Exporter),
            _ => Some(SourceChoice::Auto),
        }
    }

    fn exporter(&mut self, machine: &dyn Machine) -> Option<ExporterPlan> {
        let written = self.value("gpu_exporter");
        if written.text.is_empty() {
            return None;
        }
        let Value { text: hostname, origin } = self.value("gpu_exporter_hostname");
        let hostname = match origin {
            Origin::Default => {
                NODE_NAMES.iter().filter_map(|name| machine.variable(name)).find(|name| !name.is_empty())
            }
            _ => Some(hostname),
        };
        let url = match Url::parse(&written.text) {
            Ok(url) => url,
            Err(refused) => {
                self.errors.push(Diagnostic::at(&written.origin, refused.problem, refused.remedy));
                return None;
            }
        };
        match url.target(&TlsFiles::default(), None) {
            Ok(target) => Some(ExporterPlan {
                fetcher: Fetcher { target, prefix: "".into() },
                path: if url.prefix.is_empty() { "/metrics".to_owned() } else { url.prefix },
                hostname: hostname.filter(|name| !name.is_empty()),
                prefix: self.value("gpu_exporter_prefix").text,
            }),
            Err(error) => {
                self.errors.push(Diagnostic::at(&written.origin, error.to_string(), ROOTS_REMEDY));
                None
            }
        }
    }

    /// Assigns GPUs to upstreams. A single upstream without `gpus` has all of them. Of several, each needs `gpus` if one
    /// of them has it, or if `gpu` names a source; otherwise they have none.
    fn assign(&mut self, upstreams: Vec<Upstream>, source: SourceChoice) -> Vec<Upstream> {
        let several = upstreams.len() > 1;
        let is_required =
            upstreams.iter().any(|upstream| upstream.gpus.is_some()) || source != SourceChoice::Auto;
        let mut assigned = Vec::new();
        for upstream in upstreams {
            let is_missing = several && upstream.gpus.is_none();
            if is_missing && is_required {
                self.errors.push(Diagnostic::missing(
                    "upstreams",
                    format!("the upstream `{}` has no `gpus`", upstream.name),
                    "add `gpus` to its entry: indices, UUIDs, all, or [] for none",
                ));
            }
            let gpus = if is_missing { Some(Gpus::These(Vec::new())) } else { upstream.gpus };
            assigned.push(Upstream { gpus, ..upstream });
        }
        assigned
    }

    /// Returns a decimal number multiplied by `scale`, exactly; 0 if it is not set.
    fn scaled(&mut self, key: &'static str, scale: u64) -> u64 {
        let Form::Decimal { unit } = setting(key).form else {
            unreachable!("{key} is a decimal in the table")
        };
        let Value { text, origin } = self.value(key);
        if text.is_empty() {
            return 0;
        }
        let part = i128::from(PICO / scale);
        let parts =
            pico(&text).filter(|pico| pico % part == 0).and_then(|pico| u64::try_from(pico / part).ok());
        parts.unwrap_or_else(|| {
            let problem = format!("`{}` is not a number of {unit}", text.escape_debug());
            let remedy = "write it as in 2.49, with at most six digits before the point and six after";
            self.errors.push(Diagnostic::at(&origin, problem, remedy));
            0
        })
    }
}

/// Returns the number of periods in a time, rounded up.
fn periods(time: Duration, period: Duration) -> u32 {
    u32::try_from(time.as_millis().div_ceil(period.as_millis().max(1))).unwrap_or(u32::MAX)
}

/// Variables to which manifests commonly assign the node's name by Kubernetes' downward API; the first that is set applies.
const NODE_NAMES: [&str; 2] = ["K8S_NODE_NAME", "NODE_NAME"];

/// Pico-dollars in a dollar.
const PICO: u64 = 1_000_000_000_000;

/// The scale of a power usage effectiveness.
const MICRO: u64 = 1_000_000;

/// Tenants with labels of their own, as in the metrics.
const TENANTS: usize = 100;

/// The labels `_other` and `_unknown`.
const RESERVED_LABELS: usize = 2;

#[cfg(test)]
#[path = "gpu_tests.rs"]
mod tests;
