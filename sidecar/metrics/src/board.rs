//! Who has cells for what: the models that have a label of their own, and every worker's blocks.
//! The law: the lock is taken when a worker meets a name it has not seen, when an upstream changes
//! and at a scrape; never for a frame and, once the cap is reached, not for a name beyond it.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use crate::cell::Absorb;
use crate::engine::EngineReading;
use crate::model::ModelCells;
use crate::names::{OTHER, UNKNOWN};
use crate::proxy::ProxyCells;
use crate::totals::Totals;

/// What the workers and the scrape share.
#[derive(Debug)]
pub(crate) struct Board {
    /// Models with a label of their own, `_other` and `_unknown` not counted.
    cap: usize,
    pub(crate) version: String,
    /// Since when there is something to count.
    pub(crate) since: SystemTime,
    posts: Mutex<Posts>,
}

#[derive(Debug, Default)]
struct Posts {
    /// Every label and the blocks the workers opened for it; sorted, so that the page is.
    models: BTreeMap<Arc<str>, Vec<Arc<ModelCells>>>,
    workers: Vec<Arc<ProxyCells>>,
    upstreams: BTreeMap<Arc<str>, bool>,
    engines: BTreeMap<Arc<str>, EngineReading>,
    /// The labels once the cap was reached: they never change again.
    closed: Option<Closed>,
}

/// The labels of a full board.
pub(crate) type Closed = Arc<HashSet<Arc<str>>>;

impl Board {
    pub(crate) fn new(cap: usize, version: String) -> Self {
        Self { cap, version, since: SystemTime::now(), posts: Mutex::default() }
    }

    /// A new worker's block.
    pub(crate) fn worker(&self) -> Arc<ProxyCells> {
        let cells = Arc::new(ProxyCells::default());
        self.posts().workers.push(Arc::clone(&cells));
        cells
    }

    /// A worker's new block for a model, or the labels there are if there is no room for another.
    pub(crate) fn open(&self, name: &str) -> Result<(Arc<str>, Arc<ModelCells>), Closed> {
        let mut posts = self.posts();
        let label = match posts.label(name) {
            Some(label) => label,
            None if posts.has_room(name, self.cap) => name.into(),
            None => return Err(posts.close()),
        };
        Ok(posts.post(label))
    }

    /// A worker's new block for a model that has a label already.
    pub(crate) fn open_known(&self, name: &str) -> Option<(Arc<str>, Arc<ModelCells>)> {
        let mut posts = self.posts();
        let label = posts.label(name)?;
        Some(posts.post(label))
    }

    /// Whether an upstream can be reached.
    pub(crate) fn set_upstream_up(&self, name: &str, up: bool) {
        self.posts().upstreams.insert(name.into(), up);
    }

    /// What an upstream's own page says.
    pub(crate) fn set_engine(&self, name: &str, reading: EngineReading) {
        self.posts().engines.insert(name.into(), reading);
    }

    /// The sums over all workers.
    pub(crate) fn totals(&self) -> Totals {
        let (workers, models, upstreams, engines) = {
            let posts = self.posts();
            let (upstreams, engines) = (posts.upstreams.clone(), posts.engines.clone());
            (posts.workers.clone(), posts.models.clone(), upstreams, engines)
        };
        // The lock is free again: summing fifty models must not hold up a worker.
        Totals {
            proxy: sum(&workers),
            models: models.iter().map(|(name, blocks)| (Arc::clone(name), sum(blocks))).collect(),
            upstreams: upstreams.into_iter().collect(),
            engines: engines.into_iter().collect(),
        }
    }

    fn posts(&self) -> MutexGuard<'_, Posts> {
        // A panic while it was held cost at most the line being written; metering goes on.
        self.posts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Posts {
    fn label(&self, name: &str) -> Option<Arc<str>> {
        self.models.get_key_value(name).map(|(label, _)| Arc::clone(label))
    }

    fn post(&mut self, label: Arc<str>) -> (Arc<str>, Arc<ModelCells>) {
        let cells = Arc::new(ModelCells::default());
        self.models.entry(Arc::clone(&label)).or_default().push(Arc::clone(&cells));
        (label, cells)
    }

    fn has_room(&self, name: &str, cap: usize) -> bool {
        let ours = |name: &str| name == OTHER || name == UNKNOWN;
        ours(name) || self.models.keys().filter(|name| !ours(name)).count() < cap
    }

    fn close(&mut self) -> Closed {
        let models = &self.models;
        Arc::clone(self.closed.get_or_insert_with(|| Arc::new(models.keys().cloned().collect())))
    }
}

fn sum<T: Absorb + Default>(blocks: &[Arc<T>]) -> T {
    let total = T::default();
    blocks.iter().for_each(|block| total.absorb(block));
    total
}
