//! The current state: the scopes with their totals, in the order in which they are shown.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use meter::{Ending, Provenance, TokenType};
use metrics::{BudgetReading, ModelSnapshot, Snapshot, TenantSnapshot, Verdicts, units};

use crate::counts::{Counts, input, output};
use crate::engine::{Engine, Upstream};
use crate::now::Now;
use crate::objective::Objective;
use crate::parts::{currency, energy, gpus, ledger, meter, unix_ms};
use crate::recorder::Recorder;
use crate::scope::{Budget, Scope, Totals};

impl Recorder {
    /// Returns the current state, that of the last sample.
    pub(crate) fn now(&self, snapshot: &Snapshot) -> Now {
        let currency = currency(snapshot);
        let has_prices = currency.is_some();
        let unpriced = snapshot.models.iter().map(|model| model.unpriced).fold(0, u64::saturating_add);
        let models = snapshot.models.iter().filter(|model| is_used(model)).map(|model| {
            let (point, recent) = self.model(&model.model);
            let totals = totals_of_model(model, has_prices);
            Scope { name: model.model.to_string(), point, recent, totals, budget: None }
        });
        let is_used = |tenant: &&TenantSnapshot| tenant.endings.iter().any(|n| *n > 0);
        let tenants = snapshot.tenants.iter().filter(is_used).map(|tenant| {
            let (point, recent) = self.tenant(&tenant.tenant);
            let totals = totals_of_tenant(tenant, has_prices, unpriced == 0);
            let budget = budget(&snapshot.budgets, &tenant.tenant);
            Scope { name: tenant.tenant.to_string(), point, recent, totals, budget }
        });
        let (models, unlisted_models) = listed(models.collect());
        let (tenants, unlisted_tenants) = listed(tenants.collect());
        let (point, recent) = self.all();
        let totals = totals_of_all(snapshot, has_prices);
        Now {
            at_unix_ms: unix_ms(snapshot.at),
            started_unix_ms: unix_ms(snapshot.since),
            objectives: snapshot.objectives.iter().map(objective).collect(),
            all: Scope { point, recent, totals, ..Scope::default() },
            currency,
            models,
            tenants,
            unlisted: unlisted_models + unlisted_tenants,
            endings: endings(snapshot),
            gpus: gpus(&snapshot.parts),
            energy: energy(snapshot),
            meter: meter(snapshot, self.cpu_cores()),
            ledger: ledger(&snapshot.parts),
            ..Now::default()
        }
    }
}

impl Upstream {
    /// Returns true if the certificate of an upstream is verified; `None` without TLS.
    pub fn is_verified(snapshot: &Snapshot, upstream: &str) -> Option<bool> {
        snapshot.verified.iter().find(|(name, _)| **name == *upstream).map(|(_, verified)| *verified)
    }
}

impl Engine {
    /// Returns the server's own numbers of an upstream; `None` if its metrics page is not read.
    pub fn of(snapshot: &Snapshot, upstream: &str) -> Option<Self> {
        let (_, engine) = snapshot.engines.iter().find(|(name, _)| **name == *upstream)?;
        Some(Self {
            kind: engine.kind.map(|kind| kind.name().to_owned()),
            up: engine.up?,
            read_unix_ms: engine.read_at.map(unix_ms),
            running_requests: engine.running_requests,
            waiting_requests: engine.waiting_requests,
            kv_cache_usage_ratio: engine.kv_cache_usage_ratio,
            prefix_cache_hit_ratio: engine.prefix_cache_hit_ratio,
        })
    }
}

/// Returns true if the model has a row: `_unknown` always exists.
fn is_used(model: &ModelSnapshot) -> bool {
    model.exchanges > 0 || model.in_flight > 0 || model.live_output_tokens > 0
}

/// Returns the rows with the most output tokens, and the number of the others.
fn listed(mut rows: Vec<Scope>) -> (Vec<Scope>, u64) {
    let output = |row: &Scope| {
        let of_type = |kind: &TokenType| row.totals.tokens.get(kind.name()).copied().unwrap_or(0);
        let ended = TokenType::ALL.iter().filter(|kind| !kind.is_input()).map(of_type);
        row.totals.live_output_tokens.unwrap_or_else(|| ended.fold(0, u64::saturating_add))
    };
    // The rows are sorted by name, which decides between equals.
    rows.sort_by_cached_key(|row| Reverse(output(row)));
    let unlisted = rows.split_off(rows.len().min(Now::ROWS)).len();
    (rows, unlisted as u64)
}

fn totals_of_model(model: &ModelSnapshot, has_prices: bool) -> Totals {
    let mut types = [0; TokenType::ALL.len()];
    model.tokens.iter().for_each(|of_provenance| add(&mut types, of_provenance));
    let provenances = Provenance::ALL.iter().zip(&model.tokens);
    Totals {
        output_provenance: Some(named(
            provenances.map(|(provenance, types)| (provenance.name(), output(types))),
        )),
        live_output_tokens: Some(model.live_output_tokens),
        unpriced_exchanges: has_prices.then_some(model.unpriced),
        ..totals(&Counts::of_model(model), &types, model.verdicts, has_prices, model.unpriced == 0)
    }
}

fn totals_of_tenant(tenant: &TenantSnapshot, has_prices: bool, all_priced: bool) -> Totals {
    totals(&Counts::of_tenant(tenant), &tenant.tokens, tenant.verdicts, has_prices, all_priced)
}

fn totals_of_all(snapshot: &Snapshot, has_prices: bool) -> Totals {
    let mut all = ModelSnapshot::empty(&"".into());
    for model in &snapshot.models {
        add(&mut all.endings, &model.endings);
        all.tokens.iter_mut().zip(&model.tokens).for_each(|(sums, types)| add(sums, types));
        all.live_output_tokens = all.live_output_tokens.saturating_add(model.live_output_tokens);
        all.unpriced = all.unpriced.saturating_add(model.unpriced);
        all.verdicts.judged = all.verdicts.judged.saturating_add(model.verdicts.judged);
        all.verdicts.met = all.verdicts.met.saturating_add(model.verdicts.met);
        if let Some(pico) = model.spend_pico {
            all.spend_pico = Some(all.spend_pico.unwrap_or_default().saturating_add(pico));
        }
    }
    totals_of_model(&all, has_prices)
}

/// Returns the totals that all scopes have. The cost per token is not known if a token may have no price.
fn totals(
    counts: &Counts,
    types: &[u64; TokenType::ALL.len()],
    verdicts: Verdicts,
    has_prices: bool,
    all_priced: bool,
) -> Totals {
    let spend = has_prices.then(|| units(counts.spend_pico));
    let tokens = input(types).saturating_add(output(types));
    let per_million = |spend: f64| (all_priced && tokens > 0).then(|| spend / tokens as f64 * 1e6);
    Totals {
        exchanges: counts.exchanges,
        errors: counts.errors,
        aborts: counts.aborts,
        tokens: named(TokenType::ALL.iter().zip(types).map(|(kind, n)| (kind.name(), *n))),
        spend,
        cost_per_million_tokens: spend.and_then(per_million),
        goodput_ratio: (verdicts.judged > 0).then(|| verdicts.met as f64 / verdicts.judged as f64),
        ..Totals::default()
    }
}

fn endings(snapshot: &Snapshot) -> BTreeMap<String, u64> {
    let mut sums = [0; Ending::ALL.len()];
    snapshot.models.iter().for_each(|model| add(&mut sums, &model.endings));
    Ending::ALL.iter().zip(sums).map(|(ending, n)| (ending.name().to_owned(), n)).collect()
}

fn objective(objective: &metrics::Objective) -> Objective {
    Objective {
        name: objective.name.to_string(),
        first_token_seconds: Some(objective.first_token_ns as f64 / 1e9),
        request_tokens_per_second: Some(objective.output_rate),
        target_ratio: Some(objective.target_ratio),
    }
}

/// Returns the tenant's budget of which the greatest share is used.
fn budget(budgets: &[BudgetReading], tenant: &str) -> Option<Budget> {
    let its = budgets.iter().filter(|budget| *budget.tenant == *tenant);
    let its = its.filter_map(|budget| {
        let limit = budget.hard_pico.or(budget.soft_pico)?;
        Some(Budget {
            period: budget.period.to_string(),
            limit: units(limit),
            used: units(budget.used_pico),
            forecast: budget.forecast_pico.map(units),
        })
    });
    its.max_by(|a, b| (a.used / a.limit).total_cmp(&(b.used / b.limit)))
}

/// Returns the counts above zero by name.
fn named(counts: impl Iterator<Item = (&'static str, u64)>) -> BTreeMap<String, u64> {
    counts.filter(|(_, n)| *n > 0).map(|(name, n)| (name.to_owned(), n)).collect()
}

fn add<const N: usize>(sums: &mut [u64; N], counts: &[u64; N]) {
    for (sum, n) in sums.iter_mut().zip(counts) {
        *sum = sum.saturating_add(*n);
    }
}
