//! Where readings of GPUs come from, which upstream uses which, and what they cost.

use std::time::Duration;

use gpu::{ExporterPlan, Gpus, Prices, SourceChoice, Upstream};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::values::Reader;
use crate::file;
use crate::machine::Machine;
use crate::mistake::Mistake;
use crate::origin::Origin;
use crate::settings::{Form, OFF, Value, setting};
use crate::url::Url;

impl Reader<'_> {
    /// Plans the watch over the GPUs; `None` if there is to be none.
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
            let what =
                format!("`{}` is less than 1: no data centre draws less than its devices", written.text);
            self.mistakes.push(Mistake::at(&written.origin, what, "write 1 or more"));
        }
        let source = source?;
        Some(gpu::Plan {
            source,
            nvml_library: None,
            exporter,
            upstreams: self.shared_out(upstreams, source),
            period,
            stale_periods: periods(stale, period),
            prices,
            tenants: TENANTS + OURS,
            models: models + OURS,
        })
    }

    /// How old a sample may be. Where it is not written it follows the period.
    fn stale(&mut self, period: Duration) -> Duration {
        let stale = self.milliseconds("gpu_stale_ms");
        let origin = self.value("gpu_stale_ms").origin;
        if matches!(origin, Origin::Default) {
            return stale.max(period * 5);
        }
        if stale < period * 2 {
            let (stale, period) = (stale.as_millis(), period.as_millis());
            let what = format!("GPUs are read every {period} ms, and no reading is fresh for {stale} ms");
            let remedy =
                format!("write at least {}, which is two samples, or read them more often", period * 2);
            self.mistakes.push(Mistake::at(&origin, what, remedy));
        }
        stale
    }

    fn source(&mut self, has_exporter: bool) -> Option<SourceChoice> {
        let written = self.value("gpu");
        let name = self.one_of_setting("gpu", &written);
        if name == "exporter" && !has_exporter {
            let what = "the GPUs are to be read from an exporter, and none is named";
            self.mistakes.push(Mistake::at(
                &written.origin,
                what,
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
        match Url::parse(&written.text) {
            Ok(url) => Some(ExporterPlan {
                host: url.host.into(),
                port: url.port,
                path: if url.prefix.is_empty() { "/metrics".to_owned() } else { url.prefix },
                hostname: hostname.filter(|name| !name.is_empty()),
                prefix: self.value("gpu_exporter_prefix").text,
            }),
            Err(refused) => {
                self.mistakes.push(Mistake::at(&written.origin, refused.what, refused.remedy));
                None
            }
        }
    }

    /// One upstream has all devices if nothing is said; of several, each must say which are its own.
    /// Where nobody asked for GPUs, those who say nothing have none.
    fn shared_out(&mut self, upstreams: Vec<Upstream>, source: SourceChoice) -> Vec<Upstream> {
        let several = upstreams.len() > 1;
        let anybody =
            upstreams.iter().any(|upstream| upstream.gpus.is_some()) || source != SourceChoice::Auto;
        let mut shared = Vec::new();
        for upstream in upstreams {
            let unsaid = several && upstream.gpus.is_none();
            if unsaid && anybody {
                self.mistakes.push(Mistake::missing(
                    "upstreams",
                    format!("it is not said which GPUs `{}` uses", upstream.name),
                    "add `gpus` to its entry: indices, UUIDs, all, or [] for none",
                ));
            }
            let gpus = if unsaid { Some(Gpus::These(Vec::new())) } else { upstream.gpus };
            shared.push(Upstream { gpus, ..upstream });
        }
        shared
    }

    /// A decimal number in whole parts of `scale` to one; 0 if there is none.
    fn scaled(&mut self, key: &'static str, scale: u64) -> u64 {
        let Form::Decimal { unit } = setting(key).form else {
            unreachable!("{key} is a decimal in the table")
        };
        let Value { text, origin } = self.value(key);
        if text.is_empty() {
            return 0;
        }
        let parts = file::decimal(&text).filter(|number| !number.is_sign_negative());
        let parts = parts.and_then(|number| number.checked_mul(Decimal::from(scale)));
        match parts {
            Some(parts) if parts.fract().is_zero() && parts.to_u64().is_some() => {
                parts.to_u64().unwrap_or_default()
            }
            _ => {
                let what = format!("`{}` is not a number of {unit}", text.escape_debug());
                let remedy = "write it as in 2.49, with at most six digits before the point and six after";
                self.mistakes.push(Mistake::at(&origin, what, remedy));
                0
            }
        }
    }
}

/// How many periods fit into a time, rounded up.
fn periods(time: Duration, period: Duration) -> u32 {
    u32::try_from(time.as_millis().div_ceil(period.as_millis().max(1))).unwrap_or(u32::MAX)
}

/// Where Kubernetes' downward API is usually told to write the node's name, the first that is there.
const NODE_NAMES: [&str; 2] = ["K8S_NODE_NAME", "NODE_NAME"];

/// Parts of a dollar in which prices are counted.
const PICO: u64 = 1_000_000_000_000;

/// Parts of one in which an effectiveness is counted.
const MICRO: u64 = 1_000_000;

/// Tenants that are told apart, as in the metrics.
const TENANTS: usize = 100;

/// Labels of our own, for which there is always room: `_other` and `_unknown`.
const OURS: usize = 2;

#[cfg(test)]
#[path = "gpu_tests.rs"]
mod tests;
