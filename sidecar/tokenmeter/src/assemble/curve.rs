//! The degradation curve since the start, for the live page.

use std::io;
use std::time::Duration;

use curve::{Curves, Reading, Window};
use metrics::{Format, Metrics};
use page::Cached;

/// Returns the curve as JSON, as `tokenmeter curve --format json` prints it.
pub(super) fn cached(metrics: &Metrics) -> Cached {
    let metrics = metrics.clone();
    Cached::new(MAX_AGE, move || {
        let mut reading = metrics.reading();
        reading.families.retain(|family| curve::METRICS.contains(&family.metric));
        let mut page = Vec::new();
        reading.write(Format::OpenMetrics, &mut page)?;
        let page = String::from_utf8(page).map_err(io::Error::other)?;
        let reading = Reading::of(&page).map_err(io::Error::other)?;
        Ok(curve::json(&Curves::of(&reading, Window::SinceStart, None)))
    })
}

/// The longest time for which a curve is shown.
const MAX_AGE: Duration = Duration::from_secs(5);
