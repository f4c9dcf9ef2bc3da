//! Labels are replaced by traffic, and no count is lost.

use super::*;
use crate::cell::Count;

#[derive(Debug, Default)]
struct Cells(Count);

impl Merge for Cells {
    fn merge(&self, other: &Self) {
        self.0.merge(&other.0);
    }
}

impl Traffic for Cells {
    fn exchanges(&self) -> u64 {
        self.0.get()
    }
}

fn sums(labels: &Labels<Cells>) -> Vec<(String, u64)> {
    labels.blocks().sums().iter().map(|(label, cells)| (label.to_string(), cells.0.get())).collect()
}

fn expected(sums: &[(&str, u64)]) -> Vec<(String, u64)> {
    sums.iter().map(|(label, n)| ((*label).to_owned(), *n)).collect()
}

/// Returns two labels with this much traffic.
fn two(busy: u64, quiet: u64) -> (Labels<Cells>, Arc<Cells>) {
    let mut labels = Labels::<Cells>::default();
    labels.open("busy", 2).unwrap().1.0.add(busy);
    let (_, block) = labels.open("quiet", 2).unwrap();
    block.0.add(quiet);
    labels.open("new", 2).unwrap_err();
    (labels, block)
}

#[test]
fn least_used_label_is_evicted() {
    let (mut labels, _) = two(9, 1);
    let now = Instant::now();
    assert!(labels.replace("new", 1, now).is_none(), "not more than the least used");
    let replacement = labels.replace("new", 2, now).unwrap();
    assert_eq!(&*replacement.evicted, "quiet");
    replacement.block.0.add(5);
    assert_eq!(sums(&labels), expected(&[("_other", 1), ("busy", 9), ("new", 5)]));
    assert!(labels.at_cap().unwrap().contains("new") && !labels.at_cap().unwrap().contains("quiet"));
}

#[test]
fn block_in_use_counts_under_other() {
    let (mut labels, block) = two(9, 1);
    let now = Instant::now();
    labels.replace("new", 2, now).unwrap().block.0.add(20);
    block.0.add(3);
    assert_eq!(sums(&labels)[0], ("_other".to_owned(), 4));
    drop(block);
    labels.replace("newer", 10, now + EVICTION_MIN_INTERVAL).unwrap();
    assert_eq!(sums(&labels), expected(&[("_other", 13), ("new", 20), ("newer", 0)]));
    assert_eq!(labels.entries["_other"].retired.len(), 1, "unused blocks are merged");
}

#[test]
fn one_label_is_evicted_per_interval() {
    let (mut labels, _) = two(9, 1);
    let now = Instant::now();
    labels.replace("new", 2, now).unwrap();
    assert!(labels.replace("newer", 99, now + EVICTION_MIN_INTERVAL / 2).is_none());
    let replacement = labels.replace("newer", 99, now + EVICTION_MIN_INTERVAL).unwrap();
    assert_eq!(&*replacement.evicted, "new", "it began with its traffic under _other");
}

#[test]
fn old_traffic_weighs_less() {
    let (mut labels, _) = two(1_000_000, 50);
    let now = Instant::now();
    assert!(labels.replace("new", 49, now).is_none());
    let later = now + TRAFFIC_HALF_LIFE;
    assert!(labels.replace("new", 25, later).is_none());
    assert!(labels.replace("new", 26, later).is_some());
    assert!(
        labels.replace("newer", 27, later + 40 * TRAFFIC_HALF_LIFE).is_some(),
        "old traffic has no weight"
    );
}

#[test]
fn reserved_labels_are_never_replaced() {
    let mut labels = Labels::<Cells>::default();
    labels.open("_unknown", 0).unwrap();
    assert!(labels.replace("new", 99, Instant::now()).is_none());
    let (mut labels, _) = two(9, 1);
    assert!(labels.replace("_other", 99, Instant::now()).is_none());
}
