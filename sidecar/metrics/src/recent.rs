//! A small cache of values by the address of a shared name. Invariant: an entry holds its name, so that no other name
//! has its address.

use std::sync::Arc;

/// The number of entries. Names with the same place replace each other.
const ENTRIES: usize = 8;

/// The values of recently used names. A name is found by its address, without a hash of its text.
#[derive(Debug)]
pub(crate) struct Recent<T>([Option<(Arc<str>, T)>; ENTRIES]);

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self([const { None }; ENTRIES])
    }
}

impl<T> Recent<T> {
    /// Returns the value of this allocation of a name; `None` for another allocation of the same text.
    pub(crate) fn get(&self, name: &Arc<str>) -> Option<&T> {
        self.0[place(name)].as_ref().filter(|(kept, _)| Arc::ptr_eq(kept, name)).map(|(_, value)| value)
    }

    /// Keeps the value of a name, in place of the entry that has its place.
    pub(crate) fn keep(&mut self, name: &Arc<str>, value: T) {
        self.0[place(name)] = Some((Arc::clone(name), value));
    }

    /// Removes all entries.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Returns the index of a name's entry. Allocations are at multiples of 16 bytes, so the lowest four bits are equal.
fn place(name: &Arc<str>) -> usize {
    (name.as_ptr().addr() >> 4) % ENTRIES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_found_by_its_allocation() {
        let (name, twin): (Arc<str>, Arc<str>) = ("a".into(), "a".into());
        let mut recent = Recent::default();
        recent.keep(&name, 1);
        assert_eq!(
            (recent.get(&name), recent.get(&Arc::clone(&name)), recent.get(&twin)),
            (Some(&1), Some(&1), None)
        );
        let others: Vec<Arc<str>> = (0..100).map(|n: i32| n.to_string().into()).collect();
        for (n, other) in (0..).zip(&others) {
            recent.keep(other, n);
            assert_eq!(recent.get(other), Some(&n));
        }
        let kept = others.iter().filter(|other| recent.get(other).is_some()).count();
        assert!((1..=ENTRIES).contains(&kept), "{kept}");
        recent.clear();
        assert!(others.iter().all(|other| recent.get(other).is_none()));
    }
}
