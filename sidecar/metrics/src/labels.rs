//! Labels made of names from outside, and every worker's blocks for each. The law: there are never
//! more of them than the cap, our own not counted; what comes later is `_other`, until it has more
//! traffic than a label that is there and takes its place.
//!
//! The counts of a label that was given back go on in `_other`: no series that is there ever
//! goes down, and the sum over all labels is what was counted. A name that gets a label again counts from
//! zero under it. At most one label changes hands in [`GIVE_BACK_MIN_INTERVAL`], so that invented names make
//! few series in a store that keeps them.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cell::Absorb;
use crate::names::{OTHER, is_ours};

/// The least time between two labels that are given back.
pub(crate) const GIVE_BACK_MIN_INTERVAL: Duration = Duration::from_secs(60);

/// The time in which traffic counts half as much: a model that is no longer used gives its label back.
const TRAFFIC_HALF_LIFE: Duration = Duration::from_secs(600);

/// Cells that know how much traffic they counted.
pub(crate) trait Traffic {
    /// Exchanges that ended.
    fn exchanges(&self) -> u64;
}

/// The labels of one kind, a model's or a tenant's.
#[derive(Debug)]
pub(crate) struct Labels<T> {
    /// By label; sorted, so that the page is.
    entries: BTreeMap<Arc<str>, Entry<T>>,
    /// The labels when there was no room for another, until they change.
    closed: Option<Closed>,
    /// When traffic last lost half of its weight, and when a label was last given back.
    aged: Option<Instant>,
    given_back: Option<Instant>,
}

#[derive(Debug)]
struct Entry<T> {
    /// The blocks the workers opened.
    blocks: Vec<Arc<T>>,
    /// Blocks of labels that were given back; their workers may still write them.
    retired: Vec<Arc<T>>,
    /// Exchanges, older ones with less weight, and how many of those counted are in it.
    weighed: u64,
    weighed_of: u64,
}

/// The labels when there was no room for another.
pub(crate) type Closed = Arc<HashSet<Arc<str>>>;

/// A label that took the place of another.
#[derive(Debug)]
pub(crate) struct Claimed<T> {
    pub(crate) label: Arc<str>,
    pub(crate) block: Arc<T>,
    /// The label that was given back.
    pub(crate) given_back: Arc<str>,
}

impl<T> Default for Labels<T> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), closed: None, aged: None, given_back: None }
    }
}

impl<T> Default for Entry<T> {
    fn default() -> Self {
        Self { blocks: Vec::new(), retired: Vec::new(), weighed: 0, weighed_of: 0 }
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
                self.entries.insert(Arc::clone(&label), Entry::default());
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
        self.entries.get_key_value(name).map(|(label, _)| Arc::clone(label))
    }

    /// The labels there are, if there was no room for another.
    pub(crate) fn closed(&self) -> Option<Closed> {
        self.closed.clone()
    }

    fn post(&mut self, label: Arc<str>) -> (Arc<str>, Arc<T>) {
        let cells = Arc::new(T::default());
        self.entries.entry(Arc::clone(&label)).or_default().blocks.push(Arc::clone(&cells));
        (label, cells)
    }

    fn has_room(&self, name: &str, cap: usize) -> bool {
        is_ours(name) || self.entries.keys().filter(|name| !is_ours(name)).count() < cap
    }

    fn close(&mut self) -> Closed {
        let entries = &self.entries;
        Arc::clone(self.closed.get_or_insert_with(|| Arc::new(entries.keys().cloned().collect())))
    }
}

impl<T: Absorb + Default + Traffic> Labels<T> {
    /// The label that gives way to `name`, which had so many exchanges under `_other`: the one with the least
    /// traffic. `None` if that is not less, or a label was given back a moment ago.
    pub(crate) fn least(&mut self, name: &str, exchanges: u64, now: Instant) -> Option<Arc<str>> {
        let early = self.given_back.is_some_and(|before| now < before + GIVE_BACK_MIN_INTERVAL);
        if early || is_ours(name) || self.entries.contains_key(name) {
            return None;
        }
        self.age(now);
        let theirs = self.entries.iter().filter(|(label, _)| !is_ours(label));
        let (least, given_back) = theirs.map(|(label, entry)| (entry.traffic(), label)).min()?;
        (least < exchanges).then(|| Arc::clone(given_back))
    }

    /// Gives that label to `name`.
    pub(crate) fn claim(&mut self, name: &str, exchanges: u64, now: Instant) -> Option<Claimed<T>> {
        let given_back = self.least(name, exchanges, now)?;
        let entry = self.entries.remove(&given_back)?;
        self.given_back = Some(now);
        let other = self.entries.entry(OTHER.into()).or_default();
        other.retired.extend(entry.blocks.into_iter().chain(entry.retired));
        other.fold();
        let label: Arc<str> = name.into();
        let entry = Entry { weighed: exchanges, ..Entry::default() };
        self.entries.insert(Arc::clone(&label), entry);
        self.closed = None;
        self.close();
        let (label, block) = self.post(label);
        Some(Claimed { label, block, given_back })
    }

    /// Halves the weight of older traffic once in a half-life.
    fn age(&mut self, now: Instant) {
        let aged = *self.aged.get_or_insert(now);
        let halves = now.duration_since(aged).as_secs() / TRAFFIC_HALF_LIFE.as_secs();
        if halves == 0 {
            return;
        }
        self.aged = Some(now);
        let shift = u32::try_from(halves).unwrap_or(u32::MAX);
        for entry in self.entries.values_mut() {
            entry.weighed = entry.traffic().checked_shr(shift).unwrap_or(0);
            entry.weighed_of = entry.exchanges();
        }
    }
}

impl<T: Absorb + Default + Traffic> Entry<T> {
    fn exchanges(&self) -> u64 {
        self.blocks.iter().map(|block| block.exchanges()).fold(0, u64::saturating_add)
    }

    fn traffic(&self) -> u64 {
        self.weighed.saturating_add(self.exchanges().saturating_sub(self.weighed_of))
    }

    /// Makes one block of those that no worker writes any more. A new one, because a scrape may be reading the
    /// old ones.
    fn fold(&mut self) {
        let (mut last, mut written) = (Vec::new(), Vec::new());
        for block in std::mem::take(&mut self.retired) {
            match Arc::try_unwrap(block) {
                Ok(block) => last.push(block),
                Err(block) => written.push(block),
            }
        }
        let folded = T::default();
        last.iter().for_each(|block| folded.absorb(block));
        self.retired = written;
        self.retired.push(Arc::new(folded));
    }
}

impl<T: Absorb + Default> Labels<T> {
    /// All blocks as they are posted now, to be summed when the lock is free again.
    pub(crate) fn posted(&self) -> Posted<T> {
        let all = |entry: &Entry<T>| entry.blocks.iter().chain(&entry.retired).cloned().collect();
        Posted(self.entries.iter().map(|(name, entry)| (Arc::clone(name), all(entry))).collect())
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

#[cfg(test)]
#[path = "labels_tests.rs"]
mod tests;
