//! Labels from untrusted names, and every worker's blocks for each. Invariant: there are never more labels than the
//! cap, reserved ones not counted. A later name is counted under `_other`, until it has more traffic than the least
//! used label and replaces it.
//!
//! The counts of an evicted label move to `_other`: no existing series decreases, and the sum over all labels is exact.
//! A name that gets a label again counts from zero. At most one label is evicted per [`EVICTION_MIN_INTERVAL`], so that
//! invented names create few series in the time series database.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cell::Merge;
use crate::names::{OTHER, is_reserved};

/// Minimum time between two evictions.
pub(crate) const EVICTION_MIN_INTERVAL: Duration = Duration::from_secs(60);

/// Time after which traffic has half its weight, so that an unused model loses its label.
const TRAFFIC_HALF_LIFE: Duration = Duration::from_secs(600);

/// Cells that count traffic.
pub(crate) trait Traffic {
    /// Returns the number of finished exchanges.
    fn exchanges(&self) -> u64;
}

/// The labels of models or of tenants.
#[derive(Debug)]
pub(crate) struct Labels<T> {
    /// By label; sorted, as on the page.
    entries: BTreeMap<Arc<str>, Entry<T>>,
    /// All labels, once a name was rejected at the cap.
    at_cap: Option<LabelSet>,
    /// Time of the last halving of traffic.
    aged: Option<Instant>,
    /// Time of the last eviction.
    evicted: Option<Instant>,
}

#[derive(Debug)]
struct Entry<T> {
    /// The workers' blocks.
    blocks: Vec<Arc<T>>,
    /// Blocks of evicted labels; their workers may still write them.
    retired: Vec<Arc<T>>,
    /// Traffic up to the last halving, older exchanges with less weight.
    weighted: u64,
    /// Exchanges of the blocks that `weighted` includes.
    weighted_exchanges: u64,
}

/// All labels of a registry at its cap.
pub(crate) type LabelSet = Arc<HashSet<Arc<str>>>;

/// A label that replaced another.
#[derive(Debug)]
pub(crate) struct Replacement<T> {
    pub(crate) label: Arc<str>,
    pub(crate) block: Arc<T>,
    /// The evicted label.
    pub(crate) evicted: Arc<str>,
}

impl<T> Default for Labels<T> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), at_cap: None, aged: None, evicted: None }
    }
}

impl<T> Default for Entry<T> {
    fn default() -> Self {
        Self { blocks: Vec::new(), retired: Vec::new(), weighted: 0, weighted_exchanges: 0 }
    }
}

impl<T: Default> Labels<T> {
    /// Opens a worker's block for a name, or returns all labels if the cap is reached.
    pub(crate) fn open(&mut self, name: &str, cap: usize) -> Result<(Arc<str>, Arc<T>), LabelSet> {
        let label = match self.label(name) {
            Some(label) => label,
            None if self.has_room(name, cap) => name.into(),
            None => return Err(self.mark_full()),
        };
        Ok(self.open_block(label))
    }

    /// Opens a worker's block for a name that already has a label.
    pub(crate) fn open_known(&mut self, name: &str) -> Option<(Arc<str>, Arc<T>)> {
        let label = self.label(name)?;
        Some(self.open_block(label))
    }

    /// Returns the label of a name, created below the cap, without a block.
    pub(crate) fn admit(&mut self, name: &str, cap: usize) -> Arc<str> {
        let known = self.label(name);
        known.unwrap_or_else(|| {
            if !self.has_room(name, cap) {
                self.mark_full();
                return OTHER.into();
            }
            let label: Arc<str> = name.into();
            if !is_reserved(name) {
                self.entries.insert(Arc::clone(&label), Entry::default());
            }
            label
        })
    }

    /// Returns true once a name was rejected at the cap.
    pub(crate) fn is_full(&self) -> bool {
        self.at_cap.is_some()
    }

    /// Returns the label of a name, if it has one of its own.
    pub(crate) fn label(&self, name: &str) -> Option<Arc<str>> {
        self.entries.get_key_value(name).map(|(label, _)| Arc::clone(label))
    }

    /// Returns all labels, once a name was rejected at the cap.
    pub(crate) fn at_cap(&self) -> Option<LabelSet> {
        self.at_cap.clone()
    }

    fn open_block(&mut self, label: Arc<str>) -> (Arc<str>, Arc<T>) {
        let cells = Arc::new(T::default());
        self.entries.entry(Arc::clone(&label)).or_default().blocks.push(Arc::clone(&cells));
        (label, cells)
    }

    /// Returns the number of labels that may still be created.
    pub(crate) fn room(&self, cap: usize) -> usize {
        cap.saturating_sub(self.entries.keys().filter(|name| !is_reserved(name)).count())
    }

    fn has_room(&self, name: &str, cap: usize) -> bool {
        is_reserved(name) || self.room(cap) > 0
    }

    fn mark_full(&mut self) -> LabelSet {
        let entries = &self.entries;
        Arc::clone(self.at_cap.get_or_insert_with(|| Arc::new(entries.keys().cloned().collect())))
    }
}

impl<T: Merge + Default + Traffic> Labels<T> {
    /// Returns the least used label if it has less traffic than `name`, which had so many exchanges under `_other`.
    /// Returns `None` within [`EVICTION_MIN_INTERVAL`] of the last eviction.
    pub(crate) fn least_used(&mut self, name: &str, exchanges: u64, now: Instant) -> Option<Arc<str>> {
        let early = self.evicted.is_some_and(|before| now < before + EVICTION_MIN_INTERVAL);
        if early || is_reserved(name) || self.entries.contains_key(name) {
            return None;
        }
        self.age(now);
        let candidates = self.entries.iter().filter(|(label, _)| !is_reserved(label));
        let (traffic, label) = candidates.map(|(label, entry)| (entry.traffic(), label)).min()?;
        (traffic < exchanges).then(|| Arc::clone(label))
    }

    /// Replaces the least used label by `name`, under the conditions of [`Self::least_used`].
    pub(crate) fn replace(&mut self, name: &str, exchanges: u64, now: Instant) -> Option<Replacement<T>> {
        let evicted = self.least_used(name, exchanges, now)?;
        let entry = self.entries.remove(&evicted)?;
        self.evicted = Some(now);
        let other = self.entries.entry(OTHER.into()).or_default();
        other.retired.extend(entry.blocks.into_iter().chain(entry.retired));
        other.merge_retired();
        let label: Arc<str> = name.into();
        let entry = Entry { weighted: exchanges, ..Entry::default() };
        self.entries.insert(Arc::clone(&label), entry);
        self.at_cap = None;
        self.mark_full();
        let (label, block) = self.open_block(label);
        Some(Replacement { label, block, evicted })
    }

    /// Halves the weight of older traffic once per half-life.
    fn age(&mut self, now: Instant) {
        let aged = *self.aged.get_or_insert(now);
        let halves = now.duration_since(aged).as_secs() / TRAFFIC_HALF_LIFE.as_secs();
        if halves == 0 {
            return;
        }
        self.aged = Some(now);
        let shift = u32::try_from(halves).unwrap_or(u32::MAX);
        for entry in self.entries.values_mut() {
            entry.weighted = entry.traffic().checked_shr(shift).unwrap_or(0);
            entry.weighted_exchanges = entry.exchanges();
        }
    }
}

impl<T: Merge + Default + Traffic> Entry<T> {
    fn exchanges(&self) -> u64 {
        self.blocks.iter().map(|block| block.exchanges()).fold(0, u64::saturating_add)
    }

    fn traffic(&self) -> u64 {
        self.weighted.saturating_add(self.exchanges().saturating_sub(self.weighted_exchanges))
    }

    /// Merges the blocks that no worker writes any more into a new one; a scrape may be reading the old ones.
    fn merge_retired(&mut self) {
        let (mut unused, mut shared) = (Vec::new(), Vec::new());
        for block in std::mem::take(&mut self.retired) {
            match Arc::try_unwrap(block) {
                Ok(block) => unused.push(block),
                Err(block) => shared.push(block),
            }
        }
        let merged = T::default();
        unused.iter().for_each(|block| merged.merge(block));
        self.retired = shared;
        self.retired.push(Arc::new(merged));
    }
}

impl<T: Merge + Default> Labels<T> {
    /// Returns all blocks, which the caller sums after it released the lock.
    pub(crate) fn blocks(&self) -> Blocks<T> {
        let all = |entry: &Entry<T>| entry.blocks.iter().chain(&entry.retired).cloned().collect();
        Blocks(self.entries.iter().map(|(name, entry)| (Arc::clone(name), all(entry))).collect())
    }
}

/// Every label's blocks at one moment, sorted by label.
pub(crate) struct Blocks<T>(Vec<(Arc<str>, Vec<Arc<T>>)>);

impl<T> Blocks<T> {
    /// Returns every label and its workers' blocks.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &[Arc<T>])> {
        self.0.iter().map(|(name, blocks)| (name, &blocks[..]))
    }
}

impl<T: Merge + Default> Blocks<T> {
    /// Returns the sums over the workers.
    pub(crate) fn sums(&self) -> Vec<(Arc<str>, T)> {
        self.0.iter().map(|(name, blocks)| (Arc::clone(name), sum(blocks))).collect()
    }
}

/// Returns the sum of all workers' blocks.
pub(crate) fn sum<T: Merge + Default>(blocks: &[Arc<T>]) -> T {
    let total = T::default();
    blocks.iter().for_each(|block| total.merge(block));
    total
}

#[cfg(test)]
#[path = "labels_tests.rs"]
mod tests;
