//! Cells allocated on first use, so that unused ones need no memory. Invariant: an allocated cell never moves, and
//! readers need no lock.

use std::sync::OnceLock;

use crate::cell::Merge;

/// Cells that are allocated on first use.
#[derive(Debug)]
pub(crate) struct Lazy<T>(OnceLock<Box<T>>);

impl<T> Default for Lazy<T> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<T: Default> Lazy<T> {
    /// Returns the cells, allocated if necessary. Only the writer may call it.
    pub(crate) fn make(&self) -> &T {
        self.0.get_or_init(Box::default)
    }

    /// Returns the cells, if they were ever used.
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.get().map(Box::as_ref)
    }
}

impl<T: Merge + Default> Merge for Lazy<T> {
    fn merge(&self, other: &Self) {
        if let Some(cells) = other.get() {
            self.make().merge(cells);
        }
    }
}

/// Cells by key, in order of insertion: a linked list for few keys, searched linearly.
#[derive(Debug)]
pub(crate) struct Chain<K, T>(OnceLock<Box<Link<K, T>>>);

#[derive(Debug)]
struct Link<K, T> {
    key: K,
    cells: T,
    next: Chain<K, T>,
}

impl<K, T> Default for Chain<K, T> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<K: Clone + PartialEq, T: Default> Chain<K, T> {
    /// Returns the cells of `key`, allocated if necessary. Only the writer may call it.
    pub(crate) fn make(&self, key: &K) -> &T {
        let mut chain = self;
        loop {
            let new = || Box::new(Link { key: key.clone(), cells: T::default(), next: Self::default() });
            let link = chain.0.get_or_init(new);
            if link.key == *key {
                return &link.cells;
            }
            chain = &link.next;
        }
    }

    /// Returns the cells of `key`, if they were ever used.
    pub(crate) fn get(&self, key: &K) -> Option<&T> {
        self.iter().find(|(known, _)| *known == key).map(|(_, cells)| cells)
    }

    /// Returns every key and its cells, in order of insertion.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &T)> {
        let mut chain = self;
        std::iter::from_fn(move || {
            let link = chain.0.get()?;
            chain = &link.next;
            Some((&link.key, &link.cells))
        })
    }
}

impl<K: Clone + PartialEq, T: Merge + Default> Merge for Chain<K, T> {
    fn merge(&self, other: &Self) {
        for (key, cells) in other.iter() {
            self.make(key).merge(cells);
        }
    }
}
