//! Who has cells for what: the models that have a label of their own, and every worker's blocks.
//! The law: the lock is taken when a worker meets a name it has not seen, when an upstream changes
//! and at a scrape; never for a frame and, once the cap is reached, for a name beyond it only when its
//! exchanges have doubled and it may have earned a label.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

use crate::attribution::AttributionReading;
use crate::cell::{Absorb, Count};
use crate::control::Control;
use crate::currency::Currency;
use crate::engine::EngineReading;
use crate::format::Format;
use crate::labels::{Closed, Labels, sum};
use crate::model::ModelCells;
use crate::names::{self, OTHER, UNKNOWN};
use crate::objective::Objective;
use crate::page::Options;
use crate::proxy::ProxyCells;
use crate::semconv::Semconv;
use crate::tenant::TenantCells;
use crate::totals::Totals;
use crate::upstream::Upstream;

/// What the workers and the scrape share.
#[derive(Debug)]
pub(crate) struct Board {
    /// Models with a label of their own, `_other` and `_unknown` not counted.
    cap: usize,
    pub(crate) semconv: Semconv,
    /// As configured.
    pub(crate) upstreams: Arc<[Upstream]>,
    pub(crate) version: String,
    /// What the price book is in.
    pub(crate) currency: Currency,
    /// Since when there is something to count.
    pub(crate) since: SystemTime,
    pub(crate) objectives: Arc<[Objective]>,
    posts: Mutex<Posts>,
    /// Labels that were given back: workers that remember another number ask again.
    given_back: AtomicU64,
    /// Under a lock of its own: a worker takes it only where a label changes hands.
    control: Mutex<Control>,
}

#[derive(Debug, Default)]
struct Posts {
    models: Labels<ModelCells>,
    /// One admission for all that is told of tenants, by the workers and by the control plane.
    tenants: Labels<TenantCells>,
    workers: Vec<Arc<ProxyCells>>,
    upstreams: BTreeMap<Arc<str>, bool>,
    engines: BTreeMap<Arc<str>, EngineReading>,
}

impl Board {
    pub(crate) fn new(options: Options) -> Self {
        let Options { models: cap, semconv, upstreams, version, objectives, currency } = options;
        let (since, objectives, upstreams) = (SystemTime::now(), objectives.into(), upstreams.into());
        let (posts, control) = (Mutex::default(), Mutex::default());
        let given_back = AtomicU64::new(0);
        Self { cap, semconv, upstreams, version, currency, since, objectives, posts, given_back, control }
    }

    /// A new worker's block.
    pub(crate) fn worker(&self) -> Arc<ProxyCells> {
        let cells = Arc::new(ProxyCells::default());
        self.posts().workers.push(Arc::clone(&cells));
        cells
    }

    /// A worker's new block for a model, or the labels there are if there is no room for another.
    pub(crate) fn open(&self, name: &str) -> Result<(Arc<str>, Arc<ModelCells>), Closed> {
        self.posts().models.open(name, self.cap)
    }

    /// A worker's new block for a model that has a label already.
    pub(crate) fn open_known(&self, name: &str) -> Option<(Arc<str>, Arc<ModelCells>)> {
        self.posts().models.open_known(name)
    }

    /// A worker's new block for a tenant, or the labels there are if there is no room for another.
    pub(crate) fn open_tenant(&self, name: &str) -> Result<(Arc<str>, Arc<TenantCells>), Closed> {
        self.posts().tenants.open(name, TENANTS)
    }

    /// A model beyond the cap had so many exchanges: its label, if it takes the place of another.
    pub(crate) fn claim(&self, name: &str, exchanges: u64) -> Option<(Arc<str>, Arc<ModelCells>)> {
        let now = Instant::now();
        self.posts().models.least(name, exchanges, now)?;
        // Before the other lock, as everywhere: what is charged meanwhile has its label from before or after.
        let mut control = self.control();
        let claimed = self.posts().models.claim(name, exchanges, now)?;
        control.give_back_model(&claimed.given_back);
        self.given_back.fetch_add(1, Ordering::Release);
        Some((claimed.label, claimed.block))
    }

    /// The same of a tenant.
    pub(crate) fn claim_tenant(&self, name: &str, exchanges: u64) -> Option<(Arc<str>, Arc<TenantCells>)> {
        let now = Instant::now();
        self.posts().tenants.least(name, exchanges, now)?;
        let mut control = self.control();
        let claimed = self.posts().tenants.claim(name, exchanges, now)?;
        control.give_back_tenant(&claimed.given_back);
        self.given_back.fetch_add(1, Ordering::Release);
        Some((claimed.label, claimed.block))
    }

    /// The number of labels that were given back.
    pub(crate) fn given_back(&self) -> u64 {
        self.given_back.load(Ordering::Acquire)
    }

    /// The labels of models and of tenants, where there was no room for another.
    pub(crate) fn closed(&self) -> (Option<Closed>, Option<Closed>) {
        let posts = self.posts();
        (posts.models.closed(), posts.tenants.closed())
    }

    /// The label of a model as the workers have it: its own if it has one, else `_other` once there
    /// is no room for more, else `_unknown`: no server has accepted it yet.
    pub(crate) fn label(&self, name: &str) -> Arc<str> {
        let name = names::label(name);
        let posts = self.posts();
        let beyond = name == OTHER || posts.models.is_full() && !name.is_empty();
        posts.models.label(&name).unwrap_or_else(|| if beyond { OTHER.into() } else { UNKNOWN.into() })
    }

    /// The label of a tenant, which gets one of its own if there is room: workers and control plane
    /// agree about who is `_other`.
    pub(crate) fn tenant_label(&self, name: &str) -> Arc<str> {
        let name = names::label(name);
        self.posts().tenants.admit(if name.is_empty() { UNKNOWN } else { &name }, TENANTS)
    }

    /// What energy, device time and money were spent on.
    pub(crate) fn set_shares(&self, reading: &AttributionReading) {
        let mut control = self.control();
        control.set_shares(reading, |tenant| self.tenant_label(tenant), |model| self.label(model));
    }

    /// Whether an upstream can be reached.
    pub(crate) fn set_upstream_up(&self, name: &str, up: bool) {
        self.posts().upstreams.insert(name.into(), up);
    }

    /// What an upstream's own page says.
    pub(crate) fn set_engine(&self, name: &str, reading: EngineReading) {
        self.posts().engines.insert(name.into(), reading);
    }

    /// What the control plane says.
    pub(crate) fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sums over all workers.
    pub(crate) fn totals(&self) -> Totals {
        let (workers, models, tenants, upstreams, engines) = {
            let posts = self.posts();
            let (upstreams, engines) = (posts.upstreams.clone(), posts.engines.clone());
            (posts.workers.clone(), posts.models.posted(), posts.tenants.posted(), upstreams, engines)
        };
        let control = self.control();
        let (gpus, shares, telemetry) =
            (control.gpus.clone(), control.shares.clone(), control.telemetry.clone());
        let gpu_samples_lost = control.gpu_samples_lost;
        let energy_per_token = control.energies();
        let scrapes: [Count; Format::ALL.len()] = Default::default();
        scrapes.absorb(&control.scrapes);
        let (spend, budgets) = (control.spend.clone(), control.budgets.clone());
        let (ledger, ship, reloads) = (control.ledger.clone(), control.ship.clone(), control.reloads);
        let (held, admin_evicted) = (control.held.clone(), control.admin_evicted);
        drop(control);
        // The locks are free again: summing fifty models must not hold up a worker.
        Totals {
            gpus,
            gpu_samples_lost,
            shares,
            energy_per_token,
            telemetry,
            spend,
            budgets,
            ledger,
            ship,
            reloads,
            held,
            admin_evicted,
            scrapes,
            proxy: sum(&workers),
            models: models.sums(),
            tenants: tenants.sums(),
            objectives: Arc::clone(&self.objectives),
            upstreams: upstreams.into_iter().collect(),
            engines: engines.into_iter().collect(),
        }
    }

    fn posts(&self) -> MutexGuard<'_, Posts> {
        // A panic while it was held cost at most the line being written; metering goes on.
        self.posts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tenants with labels of their own: a team each of a company's hundred; beyond it they are one.
pub(crate) const TENANTS: usize = 100;
