//! Speeds over the window of samples.

use std::time::{Duration, Instant};

use super::{MAX_SAMPLES, Speed};
use crate::source::Model;

fn model(name: &str, output_tokens: u64) -> Model {
    Model { name: name.to_owned(), output_tokens, ..Model::default() }
}

#[test]
fn rate_covers_only_the_window() {
    let start = Instant::now();
    let mut speed = Speed::default();
    for second in 0..10 {
        // A thousand tokens in the first second, then a hundred per second.
        let tokens = if second == 0 { 0 } else { 1000 + 100 * second };
        speed.sample(start + Duration::from_secs(second), &[model("a", tokens)]);
    }
    let now = start + Duration::from_secs(9);
    assert_eq!(speed.samples.len(), MAX_SAMPLES);
    assert_eq!(speed.of(now, &model("a", 1900)), Some(100.0));
}

#[test]
fn new_model_begins_at_zero() {
    let start = Instant::now();
    let mut speed = Speed::default();
    assert_eq!(speed.of(start, &model("a", 5)), None);
    speed.sample(start, &[]);
    assert_eq!(speed.of(start, &model("a", 5)), None);
    assert_eq!(speed.of(start + Duration::from_secs(2), &model("a", 50)), Some(25.0));
}

#[test]
fn decreased_total_is_not_a_negative_rate() {
    let start = Instant::now();
    let mut speed = Speed::default();
    speed.sample(start, &[model("a", 50)]);
    assert_eq!(speed.of(start + Duration::from_secs(1), &model("a", 10)), Some(0.0));
}
