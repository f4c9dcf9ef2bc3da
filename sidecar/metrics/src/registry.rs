//! The registry of labels and of every worker's blocks. Invariant: a worker takes the lock when it meets a new
//! name, and never for a frame. Once the cap is reached, it takes the lock for a name beyond the cap only each
//! time that the exchanges of this name have doubled. The control plane and a scrape take it too.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

use crate::attribution::Share;
use crate::cell::{Count, Merge};
use crate::control::Control;
use crate::currency::Currency;
use crate::engine::EngineReading;
use crate::format::Format;
use crate::labels::{Blocks, LabelSet, Labels, sum};
use crate::model::ModelCells;
use crate::names::{self, OTHER, UNKNOWN};
use crate::objective::Objective;
use crate::page::Options;
use crate::part::{Part, Samples};
use crate::proxy::ProxyCells;
use crate::semconv::Semconv;
use crate::tenant::TenantCells;
use crate::totals::Totals;
use crate::upstream::Upstream;

/// The state that workers, control plane and scrapes share.
#[derive(Debug)]
pub(crate) struct Registry {
    /// Maximum number of models with a label of their own, `_other` and `_unknown` not counted.
    max_models: usize,
    pub(crate) semconv: Semconv,
    /// The upstreams, as configured.
    pub(crate) upstreams: Arc<[Upstream]>,
    pub(crate) version: String,
    /// The currency of the price book.
    pub(crate) currency: Currency,
    /// The start of all counters.
    pub(crate) since: SystemTime,
    pub(crate) objectives: Arc<[Objective]>,
    data_plane: Mutex<DataPlane>,
    /// Number of evicted labels. A worker that remembers another number updates its labels.
    evictions: AtomicU64,
    /// Under a lock of its own: a worker takes it only to replace a label.
    control: Mutex<Control>,
}

#[derive(Debug, Default)]
struct DataPlane {
    models: Labels<ModelCells>,
    /// Labels of tenants, for the workers and for the control plane: both agree about `_other`.
    tenants: Labels<TenantCells>,
    workers: Vec<Arc<ProxyCells>>,
    upstreams: BTreeMap<Arc<str>, bool>,
    verified: BTreeMap<Arc<str>, bool>,
    engines: BTreeMap<Arc<str>, EngineReading>,
}

impl Registry {
    pub(crate) fn new(options: Options) -> Self {
        let Options { models: max_models, semconv, upstreams, version, objectives, currency } = options;
        let (since, objectives, upstreams) = (SystemTime::now(), objectives.into(), upstreams.into());
        let (data_plane, control) = (Mutex::default(), Mutex::default());
        let evictions = AtomicU64::new(0);
        Self {
            max_models,
            semconv,
            upstreams,
            version,
            currency,
            since,
            objectives,
            data_plane,
            evictions,
            control,
        }
    }

    /// Adds a worker and returns its block.
    pub(crate) fn worker(&self) -> Arc<ProxyCells> {
        let cells = Arc::new(ProxyCells::default());
        self.data_plane().workers.push(Arc::clone(&cells));
        cells
    }

    /// Opens a worker's block for a model, or returns all labels if the cap is reached.
    pub(crate) fn open(&self, name: &str) -> Result<(Arc<str>, Arc<ModelCells>), LabelSet> {
        self.data_plane().models.open(name, self.max_models)
    }

    /// Opens a worker's block for a model that already has a label.
    pub(crate) fn open_known(&self, name: &str) -> Option<(Arc<str>, Arc<ModelCells>)> {
        self.data_plane().models.open_known(name)
    }

    /// Opens a worker's block for a tenant, or returns all labels if the cap is reached.
    pub(crate) fn open_tenant(&self, name: &str) -> Result<(Arc<str>, Arc<TenantCells>), LabelSet> {
        self.data_plane().tenants.open(name, MAX_TENANTS)
    }

    /// Replaces the least used label by a model beyond the cap that had so many exchanges. Returns `None` if no
    /// label is less used.
    pub(crate) fn replace_model(&self, name: &str, exchanges: u64) -> Option<(Arc<str>, Arc<ModelCells>)> {
        let now = Instant::now();
        self.data_plane().models.least_used(name, exchanges, now)?;
        // The order of the two locks is the same everywhere. Under this one, a concurrent charge is entirely before
        // or entirely after the eviction.
        let mut control = self.control();
        let replacement = self.data_plane().models.replace(name, exchanges, now)?;
        control.evict_model(&replacement.evicted);
        self.evictions.fetch_add(1, Ordering::Release);
        Some((replacement.label, replacement.block))
    }

    /// Replaces the least used label by a tenant, as [`Registry::replace_model`] does.
    pub(crate) fn replace_tenant(&self, name: &str, exchanges: u64) -> Option<(Arc<str>, Arc<TenantCells>)> {
        let now = Instant::now();
        self.data_plane().tenants.least_used(name, exchanges, now)?;
        let mut control = self.control();
        let replacement = self.data_plane().tenants.replace(name, exchanges, now)?;
        control.evict_tenant(&replacement.evicted);
        self.evictions.fetch_add(1, Ordering::Release);
        Some((replacement.label, replacement.block))
    }

    /// Returns the number of evicted labels.
    pub(crate) fn evictions(&self) -> u64 {
        self.evictions.load(Ordering::Acquire)
    }

    /// Returns all labels of models and of tenants, each `None` while its cap is not reached.
    pub(crate) fn at_cap(&self) -> (Option<LabelSet>, Option<LabelSet>) {
        let data_plane = self.data_plane();
        (data_plane.models.at_cap(), data_plane.tenants.at_cap())
    }

    /// Returns the label under which the workers count a model: its own if it has one, else `_other` once the cap is
    /// reached, else `_unknown`, because no server has accepted it yet.
    pub(crate) fn label(&self, name: &str) -> Arc<str> {
        let name = names::label(name);
        let data_plane = self.data_plane();
        let beyond = name == OTHER || data_plane.models.is_full() && !name.is_empty();
        data_plane.models.label(&name).unwrap_or_else(|| if beyond { OTHER.into() } else { UNKNOWN.into() })
    }

    /// Returns the label of a tenant, which gets one of its own until the cap is reached.
    pub(crate) fn tenant_label(&self, name: &str) -> Arc<str> {
        let name = names::label(name);
        self.data_plane().tenants.admit(if name.is_empty() { UNKNOWN } else { &name }, MAX_TENANTS)
    }

    /// Replaces the attribution of energy, device time and money.
    pub(crate) fn set_shares<'a>(
        &self,
        tenants: impl Iterator<Item = (&'a Arc<str>, Share)>,
        models: impl Iterator<Item = (&'a Arc<str>, Share)>,
        gpus: Arc<dyn Samples>,
    ) {
        let mut control = self.control();
        control.tenant_shares.set(tenants, |tenant| self.tenant_label(tenant));
        control.model_shares.set(models, |model| self.label(model));
        control.parts.set(Part::Gpus, Some(gpus));
    }

    /// Sets if an upstream is reachable.
    pub(crate) fn set_upstream_up(&self, name: &str, up: bool) {
        self.data_plane().upstreams.insert(name.into(), up);
    }

    /// Sets if the certificate of an upstream with TLS is verified.
    pub(crate) fn set_upstream_verified(&self, name: &str, verified: bool) {
        self.data_plane().verified.insert(name.into(), verified);
    }

    /// Replaces the reading of an upstream's metrics page.
    pub(crate) fn set_engine(&self, name: &str, reading: EngineReading) {
        self.data_plane().engines.insert(name.into(), reading);
    }

    /// Locks the readings of the control plane.
    pub(crate) fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the labels under which tenants are shown, without creating any.
    pub(crate) fn shown_tenants<'a>(&self, tenants: impl Iterator<Item = &'a str>) -> Vec<Arc<str>> {
        let data_plane = self.data_plane();
        let mut room = data_plane.tenants.room(MAX_TENANTS);
        let shown = tenants.map(|name| {
            let name = names::label(name);
            let name = if name.is_empty() { UNKNOWN } else { &*name };
            if let Some(label) = data_plane.tenants.label(name) {
                return label;
            }
            let fits = names::is_reserved(name) || room > 0;
            room = room.saturating_sub(usize::from(!names::is_reserved(name)));
            if fits { name.into() } else { OTHER.into() }
        });
        shown.collect()
    }

    /// Returns the cells of all workers, models and tenants, and the readings of upstreams' metrics pages.
    pub(crate) fn blocks(&self) -> AllBlocks {
        let data_plane = self.data_plane();
        let engines = data_plane.engines.iter().map(|(name, engine)| (Arc::clone(name), engine.clone()));
        (
            data_plane.workers.clone(),
            data_plane.models.blocks(),
            data_plane.tenants.blocks(),
            engines.collect(),
        )
    }

    /// Returns the upstreams with TLS, by name, sorted; false if their certificate is not verified.
    pub(crate) fn verified(&self) -> Vec<(Arc<str>, bool)> {
        let data_plane = self.data_plane();
        data_plane.verified.iter().map(|(name, verified)| (Arc::clone(name), *verified)).collect()
    }

    /// Returns the sums over all workers.
    pub(crate) fn totals(&self) -> Totals {
        let (workers, models, tenants, upstreams, engines) = {
            let data_plane = self.data_plane();
            let (upstreams, engines) = (data_plane.upstreams.clone(), data_plane.engines.clone());
            let (models, tenants) = (data_plane.models.blocks(), data_plane.tenants.blocks());
            (data_plane.workers.clone(), models, tenants, upstreams, engines)
        };
        let control = self.control();
        let tenant_shares = control.tenant_shares.by_label.clone();
        let model_shares = control.model_shares.by_label.clone();
        let energy_per_token = control.energies();
        let scrapes: [Count; Format::ALL.len()] = Default::default();
        scrapes.merge(&control.scrapes);
        let (spend, budgets) = (control.spend.clone(), control.budgets.clone());
        let (parts, reloads) = (control.parts.clone(), control.reloads);
        drop(control);
        // Both locks are released here, so that the summation blocks no worker.
        Totals {
            tenant_shares,
            model_shares,
            energy_per_token,
            spend,
            budgets,
            parts,
            reloads,
            scrapes,
            proxy: sum(&workers),
            models: models.sums(),
            tenants: tenants.sums(),
            objectives: Arc::clone(&self.objectives),
            upstreams: upstreams.into_iter().collect(),
            verified: self.verified(),
            engines: engines.into_iter().collect(),
        }
    }

    fn data_plane(&self) -> MutexGuard<'_, DataPlane> {
        // A panic under the lock lost at most the entry being written, so that metering continues.
        self.data_plane.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The cells of workers, models and tenants, and the readings of upstreams' metrics pages.
pub(crate) type AllBlocks =
    (Vec<Arc<ProxyCells>>, Blocks<ModelCells>, Blocks<TenantCells>, Vec<(Arc<str>, EngineReading)>);

/// Maximum number of tenants with labels of their own: enough for the teams of a company.
pub(crate) const MAX_TENANTS: usize = 100;
