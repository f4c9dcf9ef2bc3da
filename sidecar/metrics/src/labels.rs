//! Labels made of names from outside, and every worker's blocks for each. The law: there are never
//! more of them than the cap, our own not counted; what comes later is `_other`.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::cell::Absorb;
use crate::names::{OTHER, is_ours};

/// The labels of one kind, a model's or a tenant's.
#[derive(Debug)]
pub(crate) struct Labels<T> {
    /// Every label and the blocks the workers opened for it; sorted, so that the page is.
    blocks: BTreeMap<Arc<str>, Vec<Arc<T>>>,
    /// The labels once the cap was reached: they never change again.
    closed: Option<Closed>,
}

/// The labels when there was no room for another.
pub(crate) type Closed = Arc<HashSet<Arc<str>>>;

impl<T> Default for Labels<T> {
    fn default() -> Self {
        Self { blocks: BTreeMap::new(), closed: None }
    }
}

impl<T: Default> Labels<T> {
    /// A worker's new block for a name, or the labels there are if there is no room for another.
    pub(crate) fn open(&mut self, name: &str, cap: usize) -> Result<(Arc<str>, Arc<T>), Closed> {
        let label = match self.label(name) {
            Some(label) => label,
            None if self.has_room(name, cap) => name.into(),
            None => return Err(self.close()),
        };
        Ok(self.post(label))
    }

    /// A worker's new block for a name that has a label already.
    pub(crate) fn open_known(&mut self, name: &str) -> Option<(Arc<str>, Arc<T>)> {
        let label = self.label(name)?;
        Some(self.post(label))
    }

    /// The label of a name, made if there is room for it, without a block.
    pub(crate) fn admit(&mut self, name: &str, cap: usize) -> Arc<str> {
        let known = self.label(name);
        known.unwrap_or_else(|| {
            if !self.has_room(name, cap) {
                self.close();
                return OTHER.into();
            }
            let label: Arc<str> = name.into();
            if !is_ours(name) {
                self.blocks.insert(Arc::clone(&label), Vec::new());
            }
            label
        })
    }

    /// Whether a name was turned away for want of room.
    pub(crate) fn is_full(&self) -> bool {
        self.closed.is_some()
    }

    /// The label of a name, if it has one of its own.
    pub(crate) fn label(&self, name: &str) -> Option<Arc<str>> {
        self.blocks.get_key_value(name).map(|(label, _)| Arc::clone(label))
    }

    fn post(&mut self, label: Arc<str>) -> (Arc<str>, Arc<T>) {
        let cells = Arc::new(T::default());
        self.blocks.entry(Arc::clone(&label)).or_default().push(Arc::clone(&cells));
        (label, cells)
    }

    fn has_room(&self, name: &str, cap: usize) -> bool {
        is_ours(name) || self.blocks.keys().filter(|name| !is_ours(name)).count() < cap
    }

    fn close(&mut self) -> Closed {
        let blocks = &self.blocks;
        Arc::clone(self.closed.get_or_insert_with(|| Arc::new(blocks.keys().cloned().collect())))
    }
}

impl<T: Absorb + Default> Labels<T> {
    /// All blocks as they are posted now, to be summed when the lock is free again.
    pub(crate) fn posted(&self) -> Posted<T> {
        Posted(self.blocks.iter().map(|(name, blocks)| (Arc::clone(name), blocks.clone())).collect())
    }
}

/// Every label's blocks at one moment, sorted by label.
pub(crate) struct Posted<T>(Vec<(Arc<str>, Vec<Arc<T>>)>);

impl<T: Absorb + Default> Posted<T> {
    /// The sums over the workers.
    pub(crate) fn sums(&self) -> Vec<(Arc<str>, T)> {
        self.0.iter().map(|(name, blocks)| (Arc::clone(name), sum(blocks))).collect()
    }
}

/// The sum of all workers' blocks.
pub(crate) fn sum<T: Absorb + Default>(blocks: &[Arc<T>]) -> T {
    let total = T::default();
    blocks.iter().for_each(|block| total.absorb(block));
    total
}
