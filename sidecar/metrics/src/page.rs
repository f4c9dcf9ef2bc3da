//! The interface of the crate to the control plane and to scrapes. Invariant: a scrape never blocks a worker while it
//! sums or renders.

use std::sync::Arc;

use crate::attribution::Share;
use crate::budget::{BudgetReading, WEBHOOK_OUTCOMES};
use crate::currency::Currency;
use crate::engine::EngineReading;
use crate::format::Format;
use crate::objective::Objective;
use crate::part::{Part, Samples};
use crate::reading::Reading;
use crate::registry::Registry;
use crate::reload::ReloadedFile;
use crate::semconv::Semconv;
use crate::snapshot::Snapshot;
use crate::spend::Basis;
use crate::upstream::Upstream;
use crate::worker::WorkerCells;

/// The configuration of [`Metrics`].
#[derive(Clone, Debug)]
pub struct Options {
    /// Maximum number of models with a label of their own; further ones are counted as `_other`.
    pub models: usize,
    /// The enabled families of the GenAI convention.
    pub semconv: Semconv,
    /// The upstreams and their addresses.
    pub upstreams: Vec<Upstream>,
    /// The `version` of `tokenmeter_build_info`.
    pub version: String,
    /// The objectives; the first that covers an exchange applies.
    pub objectives: Vec<Objective>,
    /// The currency of the price book; it is part of metric names.
    pub currency: Currency,
}

impl Default for Options {
    fn default() -> Self {
        // A page of fifty busy models has some twenty thousand lines, which is still acceptable for a scrape.
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self {
            models: 50,
            semconv: Semconv::default(),
            upstreams: Vec::new(),
            version,
            objectives: Vec::new(),
            currency: Currency::USD,
        }
    }
}

/// All metrics of this process. Clones share their state.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<Registry>,
}

impl Metrics {
    /// Returns metrics without observations.
    pub fn new(options: Options) -> Self {
        Self { registry: Arc::new(Registry::new(options)) }
    }

    /// Adds a worker and returns its cells. They stay on the page after the worker has ended.
    pub fn worker(&self) -> WorkerCells {
        WorkerCells::new(Arc::clone(&self.registry))
    }

    /// Sets if an upstream is reachable.
    pub fn set_upstream_up(&self, name: &str, up: bool) {
        self.registry.set_upstream_up(name, up);
    }

    /// Sets if the certificate of an upstream with TLS is verified.
    pub fn set_upstream_verified(&self, name: &str, verified: bool) {
        self.registry.set_upstream_verified(name, verified);
    }

    /// Replaces the reading of an upstream's metrics page.
    pub fn engine(&self, upstream: &str, reading: EngineReading) {
        self.registry.set_engine(upstream, reading);
    }

    /// Returns the label under which the workers currently count a model's exchanges. A caller that sums by model
    /// sums by this label, with one look-up per exchange.
    pub fn model_label(&self, model: &str) -> Arc<str> {
        self.registry.label(model)
    }

    /// Replaces the attribution of energy, device time and money: the shares of tenants, and the joules of models'
    /// labels, as of [`Metrics::model_label`]. Several of one name are summed. The numbers of [`Part::Gpus`] are replaced
    /// with them, so that all shares of a reading are of one moment.
    pub fn attribution<'a>(
        &self,
        tenants: impl Iterator<Item = (&'a Arc<str>, Share)>,
        models: impl Iterator<Item = (&'a Arc<str>, f64)>,
        gpus: Arc<dyn Samples>,
    ) {
        let models =
            models.map(|(model, energy_joules)| (model, Share { energy_joules, ..Share::default() }));
        self.registry.set_shares(tenants, models, gpus);
    }

    /// Adds the energy of one settled exchange per output token, in joules.
    pub fn energy_per_output_token(&self, model: &str, joules: f64) {
        let mut control = self.registry.control();
        let label = self.registry.label(model);
        control.energy_per_token(label, joules);
    }

    /// Returns the label of a tenant, which gets one of its own until the cap is reached. A caller that sums by tenant
    /// sums by this label, with one look-up per exchange.
    pub fn tenant_label(&self, tenant: &str) -> Arc<str> {
        self.registry.tenant_label(tenant)
    }

    /// Adds the cost of one exchange on one basis: pico-units of the price book's currency, or of the US dollar on the
    /// basis [`Basis::Gpu`]. A negative cost counts as 0.
    pub fn charge(&self, tenant: &str, model: &str, basis: Basis, pico: i128) {
        let mut control = self.registry.control();
        let (tenant, model) = (self.registry.tenant_label(tenant), self.registry.label(model));
        control.spend.charge(tenant, model, basis, pico);
    }

    /// Adds an exchange without a price; the reason is one of [`UNPRICED`](crate::UNPRICED).
    pub fn unpriced(&self, model: &str, reason: &'static str) {
        let mut control = self.registry.control();
        let model = self.registry.label(model);
        control.spend.unpriced(model, reason);
    }

    /// Adds an exchange of a service tier without prices in the price book, charged at base prices.
    pub fn unpriced_tier(&self, model: &str) {
        let mut control = self.registry.control();
        let model = self.registry.label(model);
        control.spend.unpriced_tier(model);
    }

    /// Replaces the states of all budgets.
    pub fn budgets(&self, mut readings: Vec<BudgetReading>) {
        let mut control = self.registry.control();
        for reading in &mut readings {
            reading.tenant = self.registry.tenant_label(&reading.tenant);
        }
        control.budgets.set(readings);
    }

    /// Counts a threshold of a budget that was reached: one of [`BUDGET_THRESHOLDS`](crate::BUDGET_THRESHOLDS).
    pub fn budget_alert(&self, tenant: &str, period: &str, threshold: &str) {
        let mut control = self.registry.control();
        let tenant = self.registry.tenant_label(tenant);
        control.budgets.alert(tenant, period, threshold);
    }

    /// Replaces the outcomes of webhook messages, in the order of [`WEBHOOK_OUTCOMES`](crate::WEBHOOK_OUTCOMES).
    pub fn budget_webhooks(&self, outcomes: [u64; WEBHOOK_OUTCOMES.len()]) {
        self.registry.control().budgets.webhooks = Some(outcomes);
    }

    /// Replaces the numbers of a part. Until its first call, the part has no series.
    pub fn set(&self, part: Part, samples: Arc<dyn Samples>) {
        self.registry.control().parts.set(part, Some(samples));
    }

    /// Removes the numbers of a part.
    pub fn unset(&self, part: Part) {
        self.registry.control().parts.set(part, None);
    }

    /// Counts a read of a file, the first or a later one, and its outcome.
    pub fn reloaded(&self, file: ReloadedFile, accepted: bool) {
        self.registry.control().reloads.add(file, accepted);
    }

    /// Counts a scrape and returns its reading.
    pub fn scrape(&self, format: Format) -> Reading {
        self.registry.control().scrapes[format as usize].add(1);
        self.reading()
    }

    /// Returns all samples at one moment; every export is rendered from them.
    pub fn reading(&self) -> Reading {
        self.registry.reading()
    }

    /// Returns the page in OpenMetrics text.
    pub fn text(&self) -> String {
        let mut page = Vec::with_capacity(PAGE_INITIAL_BYTES);
        self.reading().write(Format::OpenMetrics, &mut page).expect("a Vec takes any bytes");
        String::from_utf8(page).expect("names are strings, and all else is ASCII")
    }

    /// Returns the sums of the live page at one moment, which cost a small part of a reading.
    pub fn snapshot(&self) -> Snapshot {
        self.registry.snapshot()
    }

    /// Returns the labels under which tenants are shown, the most important tenant first: its own name if it has a label
    /// or the cap has room for it, else `_other`. Unlike [`Metrics::tenant_label`] it creates none.
    pub fn shown_tenants<'a>(&self, tenants: impl Iterator<Item = &'a str>) -> Vec<Arc<str>> {
        self.registry.shown_tenants(tenants)
    }
}

/// Initial capacity of a page: the size for two busy models, which avoids most reallocations.
const PAGE_INITIAL_BYTES: usize = 64 * 1024;
