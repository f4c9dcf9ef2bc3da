//! Approximate counts of the names beyond the cap that a worker met, by the algorithm of Misra and Gries: a name with
//! more than one in `MAX_NAMES` of the exchanges always has a counter. A count never exceeds the true one, so that
//! invented names cannot make a name look busy.

use std::collections::HashMap;

/// Maximum number of counters.
const MAX_NAMES: usize = 64;

/// Number of exchanges after which all counts are halved, so that old traffic weighs less.
const HALVE_AFTER_EXCHANGES: u64 = 4096;

/// Approximate counts of names.
#[derive(Debug, Default)]
pub(crate) struct NameCounts {
    counts: HashMap<Box<str>, u64>,
    exchanges: u64,
}

impl NameCounts {
    /// Counts an exchange of this name and returns its count.
    pub(crate) fn count(&mut self, name: &str) -> u64 {
        self.exchanges += 1;
        if self.exchanges.is_multiple_of(HALVE_AFTER_EXCHANGES) {
            self.each(|count| *count / 2);
        }
        if let Some(count) = self.counts.get_mut(name) {
            *count += 1;
            return *count;
        }
        if self.counts.len() >= MAX_NAMES {
            self.each(|count| *count - 1);
            return 0;
        }
        self.counts.insert(name.into(), 1);
        1
    }

    /// Removes a name, which has a label now.
    pub(crate) fn remove(&mut self, name: &str) {
        self.counts.remove(name);
    }

    fn each(&mut self, change: impl Fn(&u64) -> u64) {
        self.counts.retain(|_, count| {
            *count = change(count);
            *count > 0
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_name_is_counted_among_invented_ones() {
        let mut counts = NameCounts::default();
        let counted = (0..2000).map(|n| {
            for other in 0..3 {
                counts.count(&format!("invented-{n}-{other}"));
            }
            counts.count("busy")
        });
        assert!(counted.max().unwrap() > 500);
        assert!(counts.counts.len() <= MAX_NAMES);
    }

    #[test]
    fn count_never_exceeds_true_count() {
        let mut counts = NameCounts::default();
        assert!((0..100_000).all(|n| counts.count(&n.to_string()) <= 1));
    }
}
