//! Cells made on first use, so that what never happens costs no memory. The law: a cell once made
//! stays where it is, and readers find it without a lock.

use std::sync::OnceLock;

use crate::cell::Absorb;

/// Cells for one thing that may never happen.
#[derive(Debug)]
pub(crate) struct Lazy<T>(OnceLock<Box<T>>);

impl<T> Default for Lazy<T> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<T: Default> Lazy<T> {
    /// The cells, made if there are none; only the one writer may call it.
    pub(crate) fn make(&self) -> &T {
        self.0.get_or_init(Box::default)
    }

    /// The cells, if it ever happened.
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.get().map(Box::as_ref)
    }
}

impl<T: Absorb + Default> Absorb for Lazy<T> {
    fn absorb(&self, other: &Self) {
        if let Some(cells) = other.get() {
            self.make().absorb(cells);
        }
    }
}

/// Cells by key, in the order the keys were met. For a handful of keys; they are looked up in turn.
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
    /// The cells of `key`, made if there are none; only the one writer may call it.
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

    /// The cells of `key`, if there are any.
    pub(crate) fn get(&self, key: &K) -> Option<&T> {
        self.iter().find(|(known, _)| *known == key).map(|(_, cells)| cells)
    }

    /// Every key and its cells, in the order they were made.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &T)> {
        let mut chain = self;
        std::iter::from_fn(move || {
            let link = chain.0.get()?;
            chain = &link.next;
            Some((&link.key, &link.cells))
        })
    }
}

impl<K: Clone + PartialEq, T: Absorb + Default> Absorb for Chain<K, T> {
    fn absorb(&self, other: &Self) {
        for (key, cells) in other.iter() {
            self.make(key).absorb(cells);
        }
    }
}
