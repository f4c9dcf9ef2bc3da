//! The degradation curve since the start, for the live page.

use std::time::Duration;

use curve::{Curves, Reading, Window};
use metrics::Metrics;
use page::Cached;

/// Returns the curve as JSON, as `tokenmeter curve --format json` prints it.
pub(super) fn cached(metrics: &Metrics) -> Cached {
    let metrics = metrics.clone();
    Cached::new(MAX_AGE, move || {
        let reading = Reading::from(&metrics.reading());
        Ok(curve::json(&Curves::of(&reading, Window::SinceStart, None)))
    })
}

/// The longest time for which a curve is shown.
const MAX_AGE: Duration = Duration::from_secs(5);
