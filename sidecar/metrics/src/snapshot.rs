//! The sums of the live page, read from the same cells as the metrics page, so that the two agree. Only the cells that
//! the live page shows are read: it is sampled every second.

use std::sync::Arc;
use std::time::SystemTime;

use meter::{Ending, Provenance, TokenType};

use crate::bucket_counts::BucketCounts;
use crate::budget::BudgetReading;
use crate::cell::Count;
use crate::currency::Currency;
use crate::engine::EngineReading;
use crate::lazy::Lazy;
use crate::model::ModelCells;
use crate::objective::{Objective, Verdict};
use crate::process;
use crate::proxy::ProxyCells;
use crate::reading::{Sample, Value};
use crate::registry::Registry;
use crate::spend::{Basis, Sums};
use crate::table::Metric;
use crate::tenant::TenantCells;

/// The sums at one moment; counts are since the start of the process.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Time of the snapshot.
    pub at: SystemTime,
    /// The start of all counters, which is the start of the process.
    pub since: SystemTime,
    /// One for each label, sorted; `_other` and `_unknown` included.
    pub models: Vec<ModelSnapshot>,
    /// One for each label, sorted; `_other` and `_unknown` included.
    pub tenants: Vec<TenantSnapshot>,
    /// The objectives, as configured.
    pub objectives: Arc<[Objective]>,
    /// The currency of the price book.
    pub currency: Currency,
    /// The budgets, by label and period.
    pub budgets: Vec<BudgetReading>,
    /// The latest readings of upstreams' metrics pages, by name.
    pub engines: Vec<(Arc<str>, EngineReading)>,
    /// Upstreams with TLS, by name; false if their certificate is not verified.
    pub verified: Vec<(Arc<str>, bool)>,
    /// Requests forwarded unmetered.
    pub passthrough: u64,
    /// Requests that the proxy itself answered with an error.
    pub refused: u64,
    /// Losses of every kind; exchanges under a capped label are none.
    pub dropped: u64,
    /// Processing time of the proxy in one exchange, seconds.
    pub overhead: BucketCounts,
    /// Energy of settled exchanges.
    pub attributed_joules: f64,
    /// The samples of the parts of the process.
    pub parts: Vec<(Metric, Sample)>,
    /// Resident memory of this process.
    pub memory_bytes: Option<u64>,
    /// User and system CPU time of this process.
    pub cpu_seconds: Option<f64>,
}

/// One model at one moment; counts are since the start of the process.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSnapshot {
    /// The model's label.
    pub model: Arc<str>,
    /// Finished exchanges.
    pub exchanges: u64,
    /// Finished exchanges by ending, in the order of [`Ending::ALL`].
    pub endings: [u64; Ending::ALL.len()],
    /// Exchanges in flight.
    pub in_flight: u64,
    /// Tokens of finished exchanges by provenance, then by type, each in the order of its `ALL`.
    pub tokens: [[u64; TokenType::ALL.len()]; Provenance::ALL.len()],
    /// Generated tokens of finished exchanges.
    pub output_tokens: u64,
    /// Generated tokens, those of exchanges in flight included.
    pub live_output_tokens: u64,
    /// Seconds to the first token.
    pub first_token: BucketCounts,
    /// Output tokens per second of one exchange.
    pub output_rate: BucketCounts,
    /// The verdicts of objectives.
    pub verdicts: Verdicts,
    /// Cost by the price book in pico-units; `None` without a charge.
    pub spend_pico: Option<i128>,
    /// Exchanges without a price.
    pub unpriced: u64,
}

/// One tenant at one moment; counts are since the start of the process.
#[derive(Clone, Debug, PartialEq)]
pub struct TenantSnapshot {
    /// The tenant's label.
    pub tenant: Arc<str>,
    /// Finished exchanges by ending, in the order of [`Ending::ALL`].
    pub endings: [u64; Ending::ALL.len()],
    /// Tokens of finished exchanges, in the order of [`TokenType::ALL`].
    pub tokens: [u64; TokenType::ALL.len()],
    /// The verdicts of objectives.
    pub verdicts: Verdicts,
    /// Cost by the price book in pico-units; `None` without a charge.
    pub spend_pico: Option<i128>,
}

/// Exchanges by the verdict of their objective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// Exchanges with a verdict.
    pub judged: u64,
    /// Those that met their objective.
    pub met: u64,
}

impl Registry {
    /// Returns the sums of the live page at one moment.
    pub(crate) fn snapshot(&self) -> Snapshot {
        // Under both locks, so that an eviction is entirely before or entirely after. The order is the same everywhere.
        let control = self.control();
        let (spend, budgets, parts) =
            (control.spend.clone(), control.budgets.readings.clone(), control.parts.clone());
        let attributed_joules =
            control.tenant_shares.by_label.values().map(|share| share.energy_joules).sum();
        let (workers, models, tenants, engines) = self.blocks();
        drop(control);
        let parts: Vec<_> = parts.write().into_samples().collect();
        let stat = process::stat();
        let mut snapshot = Snapshot {
            at: SystemTime::now(),
            since: self.since,
            models: models.iter().map(|(label, blocks)| ModelSnapshot::of(label, blocks)).collect(),
            tenants: tenants.iter().map(|(label, blocks)| TenantSnapshot::of(label, blocks)).collect(),
            objectives: Arc::clone(&self.objectives),
            currency: self.currency,
            budgets,
            engines,
            verified: self.verified(),
            passthrough: 0,
            refused: 0,
            dropped: dropped(&parts),
            overhead: BucketCounts::empty(Metric::Overhead),
            attributed_joules,
            parts,
            memory_bytes: process::memory_bytes(),
            cpu_seconds: process::cpu_seconds(&stat),
        };
        workers.iter().for_each(|worker| snapshot.add(worker));
        let of = |sums: &Sums, label: &Arc<str>| sums.get(label).and_then(|sums| sums[Basis::Price as usize]);
        for model in &mut snapshot.models {
            model.spend_pico = of(&spend.models, &model.model);
            let unpriced = spend.unpriced.iter().filter(|((label, _), _)| *label == model.model);
            model.unpriced = unpriced.map(|(_, n)| *n).fold(0, u64::saturating_add);
        }
        for tenant in &mut snapshot.tenants {
            tenant.spend_pico = of(&spend.tenants, &tenant.tenant);
        }
        snapshot
    }
}

impl Snapshot {
    fn add(&mut self, worker: &ProxyCells) {
        self.passthrough = self.passthrough.saturating_add(sum(&worker.passthrough));
        self.refused = self.refused.saturating_add(sum(&worker.refused));
        self.dropped = self.dropped.saturating_add(sum(&worker.dropped));
        worker.overhead.iter().for_each(|overhead| self.overhead.read(overhead));
    }
}

impl ModelSnapshot {
    /// Returns a model without exchanges.
    pub fn empty(label: &Arc<str>) -> Self {
        Self {
            model: Arc::clone(label),
            exchanges: 0,
            endings: [0; Ending::ALL.len()],
            in_flight: 0,
            tokens: [[0; TokenType::ALL.len()]; Provenance::ALL.len()],
            output_tokens: 0,
            live_output_tokens: 0,
            first_token: BucketCounts::empty(Metric::FirstToken),
            output_rate: BucketCounts::empty(Metric::OutputRate),
            verdicts: Verdicts::default(),
            spend_pico: None,
            unpriced: 0,
        }
    }

    fn of(label: &Arc<str>, blocks: &[Arc<ModelCells>]) -> Self {
        let mut model = Self::empty(label);
        blocks.iter().for_each(|cells| model.add(cells));
        model.exchanges = model.endings.iter().copied().fold(0, u64::saturating_add);
        let output = TokenType::ALL.into_iter().filter(|kind| !kind.is_input());
        let output = output.flat_map(|kind| model.tokens.iter().map(move |types| types[kind as usize]));
        model.output_tokens = output.fold(0, u64::saturating_add);
        model
    }

    fn add(&mut self, cells: &ModelCells) {
        self.in_flight = self.in_flight.saturating_add(cells.in_flight.get());
        self.live_output_tokens = self.live_output_tokens.saturating_add(cells.live_tokens.get());
        for (mine, types) in self.tokens.iter_mut().zip(&cells.tokens) {
            if let Some(types) = types.get() {
                add(mine, types);
            }
        }
        for (_, upstream) in cells.upstreams.iter() {
            upstream.exchanges.iter().for_each(|(_, endings)| add(&mut self.endings, endings));
            for loaded in upstream.by_concurrency.iter().filter_map(Lazy::get) {
                self.first_token.read(&loaded.first_token);
                self.output_rate.read(&loaded.output_rate);
            }
        }
        cells.objectives.iter().for_each(|(_, objective)| self.verdicts.add(&objective.verdicts));
    }
}

impl TenantSnapshot {
    /// Returns a tenant without exchanges.
    pub fn empty(label: &Arc<str>) -> Self {
        Self {
            tenant: Arc::clone(label),
            endings: [0; Ending::ALL.len()],
            tokens: [0; TokenType::ALL.len()],
            verdicts: Verdicts::default(),
            spend_pico: None,
        }
    }

    fn of(label: &Arc<str>, blocks: &[Arc<TenantCells>]) -> Self {
        let mut tenant = Self::empty(label);
        for cells in blocks {
            add(&mut tenant.endings, &cells.exchanges);
            add(&mut tenant.tokens, &cells.tokens);
            cells.verdicts.iter().for_each(|(_, verdicts)| tenant.verdicts.add(verdicts));
        }
        tenant
    }
}

impl Verdicts {
    fn add(&mut self, verdicts: &[Count; Verdict::ALL.len()]) {
        self.judged = self.judged.saturating_add(sum(verdicts));
        self.met = self.met.saturating_add(verdicts[Verdict::Met as usize].get());
    }
}

/// Returns the losses that the parts write.
fn dropped(parts: &[(Metric, Sample)]) -> u64 {
    let losses = parts.iter().filter(|(metric, _)| *metric == Metric::Dropped);
    let counts = losses.map(|(_, sample)| match sample.value {
        Value::Count(n) => n,
        Value::Number(_) | Value::Histogram(_) => 0,
    });
    counts.fold(0, u64::saturating_add)
}

fn add<const N: usize>(sums: &mut [u64; N], counts: &[Count; N]) {
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum = sum.saturating_add(count.get());
    }
}

fn sum(counts: &[Count]) -> u64 {
    counts.iter().map(Count::get).fold(0, u64::saturating_add)
}
