//! Speeds over the window of samples, at its edges.

use std::time::{Duration, Instant};

use super::{SAMPLES, Speed};
use crate::source::Model;

fn model(name: &str, output_tokens: u64) -> Model {
    Model { name: name.to_owned(), output_tokens, ..Model::default() }
}

#[test]
fn the_rate_covers_the_window_and_forgets_what_is_older() {
    let start = Instant::now();
    let mut speed = Speed::default();
    for second in 0..10 {
        // A thousand tokens in the first second, then a hundred a second.
        let tokens = if second == 0 { 0 } else { 1000 + 100 * second };
        speed.sample(start + Duration::from_secs(second), &[model("a", tokens)]);
    }
    let now = start + Duration::from_secs(9);
    assert_eq!(speed.samples.len(), SAMPLES);
    assert_eq!(speed.of(now, &model("a", 1900)), Some(100.0));
}

#[test]
fn a_new_model_began_at_zero_and_one_sample_is_not_enough() {
    let start = Instant::now();
    let mut speed = Speed::default();
    assert_eq!(speed.of(start, &model("a", 5)), None);
    speed.sample(start, &[]);
    assert_eq!(speed.of(start, &model("a", 5)), None);
    assert_eq!(speed.of(start + Duration::from_secs(2), &model("a", 50)), Some(25.0));
}

#[test]
fn a_total_that_fell_is_not_a_negative_rate() {
    let start = Instant::now();
    let mut speed = Speed::default();
    speed.sample(start, &[model("a", 50)]);
    assert_eq!(speed.of(start + Duration::from_secs(1), &model("a", 10)), Some(0.0));
}
