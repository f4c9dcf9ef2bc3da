//! The readings of the control plane. Invariant: names from requests are stored as labels, with the same caps as in
//! the workers.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::attribution::{AttributionReading, ModelShare, OverflowShares, Share, TenantShare};
use crate::budget::Budgets;
use crate::cell::{Count, Merge};
use crate::format::Format;
use crate::gpu::GpuReading;
use crate::histogram::{Distribution, Histogram};
use crate::names::OTHER;
use crate::part::Parts;
use crate::reload::Reloads;
use crate::resources::ResourceReading;
use crate::spend::Spend;
use crate::table::{ENERGY_PER_TOKEN_J, Metric};
use crate::telemetry::TelemetryReading;

/// The latest readings of the control plane.
#[derive(Debug, Default)]
pub(crate) struct Control {
    /// By identity, sorted.
    pub(crate) gpus: Vec<GpuReading>,
    /// Samples that could not be taken or were refused.
    pub(crate) gpu_samples_lost: u64,
    /// Under labels, sorted by them.
    pub(crate) shares: AttributionReading,
    overflow_tenants: OverflowShares,
    overflow_models: OverflowShares,
    per_token: BTreeMap<Arc<str>, Histogram<{ ENERGY_PER_TOKEN_J.len() + 1 }>>,
    pub(crate) telemetry: TelemetryReading,
    /// Under labels.
    pub(crate) spend: Spend,
    /// Under labels.
    pub(crate) budgets: Budgets,
    pub(crate) parts: Parts,
    pub(crate) reloads: Reloads,
    pub(crate) resources: Option<ResourceReading>,
    /// Evicted connections to the admin address.
    pub(crate) admin_evicted: u64,
    /// In the order of [`Format::ALL`].
    pub(crate) scrapes: [Count; Format::ALL.len()],
}

impl Control {
    pub(crate) fn set_gpus(&mut self, mut readings: Vec<GpuReading>, samples_lost: u64) {
        self.gpu_samples_lost = samples_lost;
        readings.sort_by(|a, b| a.id.cmp(&b.id));
        // Two readings of one device would be two samples of one series, which scrapers reject.
        readings.dedup_by(|a, b| a.id == b.id);
        self.gpus = readings;
    }

    /// Replaces the attribution, under the current labels. A share that was once counted under `_other` stays there.
    pub(crate) fn set_shares(
        &mut self,
        reading: &AttributionReading,
        tenant_label: impl Fn(&str) -> Arc<str>,
        model_label: impl Fn(&str) -> Arc<str>,
    ) {
        let mut tenants: BTreeMap<Arc<str>, Share> = BTreeMap::new();
        for TenantShare { tenant, share } in &reading.tenants {
            let label = tenant_label(tenant);
            let (own, others) = self.overflow_tenants.split(tenant, &label, share);
            if let Some(others) = others {
                tenants.entry(OTHER.into()).or_default().add(&others);
            }
            tenants.entry(label).or_default().add(&own);
        }
        let mut models: BTreeMap<Arc<str>, Share> = BTreeMap::new();
        for ModelShare { model, energy_joules } in &reading.models {
            let (label, share) =
                (model_label(model), Share { energy_joules: *energy_joules, ..Share::default() });
            let (own, others) = self.overflow_models.split(model, &label, &share);
            if let Some(others) = others {
                models.entry(OTHER.into()).or_default().add(&others);
            }
            models.entry(label).or_default().add(&own);
        }
        let mut devices = reading.devices.clone();
        devices.sort_by(|a, b| a.id.cmp(&b.id));
        devices.dedup_by(|a, b| a.id == b.id);
        let tenants = tenants.into_iter().map(|(tenant, share)| TenantShare { tenant, share }).collect();
        let energy = |(model, share): (_, Share)| ModelShare { model, energy_joules: share.energy_joules };
        let models = models.into_iter().map(energy).collect();
        self.shares = AttributionReading { tenants, models, devices, lost: reading.lost };
    }

    /// Moves everything counted under an evicted model label to `_other`.
    pub(crate) fn evict_model(&mut self, label: &Arc<str>) {
        self.spend.evict_model(label);
        if let Some(energies) = self.per_token.remove(label) {
            self.per_token.entry(OTHER.into()).or_default().merge(&energies);
        }
    }

    /// Moves everything counted under an evicted tenant label to `_other`.
    pub(crate) fn evict_tenant(&mut self, label: &Arc<str>) {
        self.spend.evict_tenant(label);
        self.budgets.evict(label);
    }

    pub(crate) fn energy_per_token(&mut self, label: Arc<str>, joules: f64) {
        self.per_token.entry(label).or_default().joules(Metric::EnergyPerToken, joules);
    }

    /// Returns the energy per output token, by model.
    pub(crate) fn energies(&self) -> Vec<(Arc<str>, Distribution)> {
        self.per_token.iter().map(|(model, of)| (Arc::clone(model), of.read())).collect()
    }
}
