//! Counts of the names beyond the cap that a worker met: a few counters, which a name that comes often enough keeps
//! (Misra and Gries: a name with more than one in `MAX_NAMES` of the exchanges is never lost). Counts are at
//! most the truth, so that invented names cannot make one look busy.

use std::collections::HashMap;

/// Names counted at once.
const MAX_NAMES: usize = 64;

/// Exchanges after which all counts are halved: an old claim is no claim.
const HALVED_AFTER: u64 = 4096;

/// Counts of names.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    counts: HashMap<Box<str>, u64>,
    exchanges: u64,
}

impl Claims {
    /// One more exchange of this name; how many there were.
    pub(crate) fn count(&mut self, name: &str) -> u64 {
        self.exchanges += 1;
        if self.exchanges.is_multiple_of(HALVED_AFTER) {
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

    /// The name has a label now.
    pub(crate) fn settle(&mut self, name: &str) {
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
        let mut claims = Claims::default();
        let most = (0..2000).map(|n| {
            for other in 0..3 {
                claims.count(&format!("invented-{n}-{other}"));
            }
            claims.count("busy")
        });
        assert!(most.max().unwrap() > 500);
        assert!(claims.counts.len() <= MAX_NAMES);
    }

    #[test]
    fn count_is_never_above_the_truth() {
        let mut claims = Claims::default();
        assert!((0..100_000).all(|n| claims.count(&n.to_string()) <= 1));
    }
}
