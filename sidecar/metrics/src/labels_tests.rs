//! Labels change hands by traffic, and nothing that was counted is lost.

use super::*;
use crate::cell::Count;

#[derive(Debug, Default)]
struct Cells(Count);

impl Absorb for Cells {
    fn absorb(&self, other: &Self) {
        self.0.absorb(&other.0);
    }
}

impl Traffic for Cells {
    fn exchanges(&self) -> u64 {
        self.0.get()
    }
}

fn sums(labels: &Labels<Cells>) -> Vec<(String, u64)> {
    labels.posted().sums().iter().map(|(label, cells)| (label.to_string(), cells.0.get())).collect()
}

fn shown(sums: &[(&str, u64)]) -> Vec<(String, u64)> {
    sums.iter().map(|(label, n)| ((*label).to_owned(), *n)).collect()
}

/// Two labels with this much traffic.
fn two(busy: u64, quiet: u64) -> (Labels<Cells>, Arc<Cells>) {
    let mut labels = Labels::<Cells>::default();
    labels.open("busy", 2).unwrap().1.0.add(busy);
    let (_, block) = labels.open("quiet", 2).unwrap();
    block.0.add(quiet);
    labels.open("new", 2).unwrap_err();
    (labels, block)
}

#[test]
fn least_traffic_gives_its_label_back() {
    let (mut labels, _) = two(9, 1);
    let now = Instant::now();
    assert!(labels.claim("new", 1, now).is_none(), "no more than the least");
    let claimed = labels.claim("new", 2, now).unwrap();
    assert_eq!(&*claimed.given_back, "quiet");
    claimed.block.0.add(5);
    assert_eq!(sums(&labels), shown(&[("_other", 1), ("busy", 9), ("new", 5)]));
    assert!(labels.closed().unwrap().contains("new") && !labels.closed().unwrap().contains("quiet"));
}

#[test]
fn running_block_goes_on_under_other() {
    let (mut labels, block) = two(9, 1);
    let now = Instant::now();
    labels.claim("new", 2, now).unwrap().block.0.add(20);
    block.0.add(3);
    assert_eq!(sums(&labels)[0], ("_other".to_owned(), 4));
    drop(block);
    labels.claim("newer", 10, now + GIVE_BACK_MIN_INTERVAL).unwrap();
    assert_eq!(sums(&labels), shown(&[("_other", 13), ("new", 20), ("newer", 0)]));
    assert_eq!(labels.entries["_other"].retired.len(), 1, "ended blocks are one");
}

#[test]
fn one_label_changes_hands_in_an_interval() {
    let (mut labels, _) = two(9, 1);
    let now = Instant::now();
    labels.claim("new", 2, now).unwrap();
    assert!(labels.claim("newer", 99, now + GIVE_BACK_MIN_INTERVAL / 2).is_none());
    let claimed = labels.claim("newer", 99, now + GIVE_BACK_MIN_INTERVAL).unwrap();
    assert_eq!(&*claimed.given_back, "new", "it had the traffic it came with");
}

#[test]
fn old_traffic_weighs_less() {
    let (mut labels, _) = two(1_000_000, 50);
    let now = Instant::now();
    assert!(labels.claim("new", 49, now).is_none());
    let later = now + TRAFFIC_HALF_LIFE;
    assert!(labels.claim("new", 25, later).is_none());
    assert!(labels.claim("new", 26, later).is_some());
    assert!(labels.claim("newer", 27, later + 40 * TRAFFIC_HALF_LIFE).is_some(), "years are no claim");
}

#[test]
fn our_own_labels_are_given_to_none() {
    let mut labels = Labels::<Cells>::default();
    labels.open("_unknown", 0).unwrap();
    assert!(labels.claim("new", 99, Instant::now()).is_none());
    let (mut labels, _) = two(9, 1);
    assert!(labels.claim("_other", 99, Instant::now()).is_none());
}
