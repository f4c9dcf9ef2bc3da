//! Pauses between attempts.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Returns 0.5 to 1.5 times a pause, so that many senders do not return at once.
pub fn jittered(pause: Duration) -> Duration {
    let random = RandomState::new().hash_one(pause) % 1001;
    pause / 2 + pause.mul_f64(random as f64 / 1000.0)
}
