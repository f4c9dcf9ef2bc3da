//! What the control plane says and the page shows, beside what the workers count. The law: names
//! that came with requests are labels here, capped as they are at the workers.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::attribution::{AttributionReading, ModelShare, TenantShare};
use crate::budget::Budgets;
use crate::cell::Count;
use crate::format::Format;
use crate::gpu::GpuReading;
use crate::histogram::{Distribution, Histogram};
use crate::ledger::{LedgerReading, ShipReading};
use crate::reload::Reloads;
use crate::spend::Spend;
use crate::table::{ENERGY_PER_TOKEN_J, Metric};
use crate::telemetry::TelemetryReading;

/// The last that was said.
#[derive(Debug, Default)]
pub(crate) struct Control {
    /// By identity, sorted.
    pub(crate) gpus: Vec<GpuReading>,
    /// Samples that could not be taken or were refused.
    pub(crate) gpu_samples_lost: u64,
    /// Under labels, sorted by them.
    pub(crate) shares: AttributionReading,
    per_token: BTreeMap<Arc<str>, Histogram<{ ENERGY_PER_TOKEN_J.len() + 1 }>>,
    pub(crate) telemetry: TelemetryReading,
    /// Under labels.
    pub(crate) spend: Spend,
    /// Under labels.
    pub(crate) budgets: Budgets,
    pub(crate) ledger: Option<LedgerReading>,
    pub(crate) ship: Option<ShipReading>,
    pub(crate) reloads: Reloads,
    /// In the order of [`Format::ALL`].
    pub(crate) scrapes: [Count; Format::ALL.len()],
}

impl Control {
    pub(crate) fn set_gpus(&mut self, mut readings: Vec<GpuReading>, samples_lost: u64) {
        self.gpu_samples_lost = samples_lost;
        readings.sort_by(|a, b| a.id.cmp(&b.id));
        // Two of one identity would be two samples of one series, which no scraper takes.
        readings.dedup_by(|a, b| a.id == b.id);
        self.gpus = readings;
    }

    /// The names in it are labels already.
    pub(crate) fn set_shares(&mut self, reading: AttributionReading) {
        let mut tenants: BTreeMap<Arc<str>, TenantShare> = BTreeMap::new();
        for share in reading.tenants {
            let new = || TenantShare { tenant: Arc::clone(&share.tenant), ..TenantShare::default() };
            tenants.entry(Arc::clone(&share.tenant)).or_insert_with(new).share.add(&share.share);
        }
        let mut by_label: BTreeMap<Arc<str>, ModelShare> = BTreeMap::new();
        for share in reading.models {
            let new = || ModelShare { model: Arc::clone(&share.model), energy_joules: 0.0 };
            by_label.entry(Arc::clone(&share.model)).or_insert_with(new).energy_joules += share.energy_joules;
        }
        let mut devices = reading.devices;
        devices.sort_by(|a, b| a.id.cmp(&b.id));
        devices.dedup_by(|a, b| a.id == b.id);
        let (tenants, models) = (tenants.into_values().collect(), by_label.into_values().collect());
        self.shares = AttributionReading { tenants, models, devices, lost: reading.lost };
    }

    pub(crate) fn energy_per_token(&mut self, label: Arc<str>, joules: f64) {
        self.per_token.entry(label).or_default().joules(Metric::EnergyPerToken, joules);
    }

    /// Energy for each output token, by model.
    pub(crate) fn energies(&self) -> Vec<(Arc<str>, Distribution)> {
        self.per_token.iter().map(|(model, of)| (Arc::clone(model), of.read())).collect()
    }
}
