//! Who has cells for what: the models that have a label of their own, and every worker's blocks.
//! The law: the lock is taken when a worker meets a name it has not seen, when an upstream changes
//! and at a scrape; never for a frame and, once the cap is reached, not for a name beyond it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use crate::attribution::{AttributionReading, ModelShare, TenantShare};
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

/// What the workers and the scrape share.
#[derive(Debug)]
pub(crate) struct Board {
    /// Models with a label of their own, `_other` and `_unknown` not counted.
    cap: usize,
    pub(crate) semconv: Semconv,
    pub(crate) version: String,
    /// What the price book is in.
    pub(crate) currency: Currency,
    /// Since when there is something to count.
    pub(crate) since: SystemTime,
    pub(crate) objectives: Arc<[Objective]>,
    posts: Mutex<Posts>,
    /// Under a lock of its own: no worker takes it.
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
        let Options { models: cap, semconv, version, objectives, currency } = options;
        let (since, objectives) = (SystemTime::now(), objectives.into());
        let (posts, control) = (Mutex::default(), Mutex::default());
        Self { cap, semconv, version, currency, since, objectives, posts, control }
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
        let tenant = |share: &TenantShare| TenantShare { tenant: self.tenant_label(&share.tenant), ..*share };
        let model = |share: &ModelShare| ModelShare { model: self.label(&share.model), ..*share };
        let (tenants, models) =
            (reading.tenants.iter().map(tenant).collect(), reading.models.iter().map(model).collect());
        let devices = reading.devices.clone();
        self.control().set_shares(AttributionReading { tenants, models, devices, lost: reading.lost });
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
