//! The degradation curve: how fast one stream is by how many share the server, how long it waits for
//! its first token, and whether it slows down as it grows. Read from the metrics page of a running
//! tokenmeter, since its start or over a window; printed for people, programs and reports.
//!
//! ```text
//! page text → Reading ── (less an earlier one) ──→ Curves → table · json · svg
//! ```
//!
//! The law: nothing is measured here and nothing smoothed. Counts and sums are the page's own; a
//! quantile is an estimate within one bucket of its histogram, as PromQL's `histogram_quantile` is.
//!
//! A speed's quantiles go down from the median: what half, 9 of 10 and 99 of 100 streams reach.
//! That they are slow is what hurts, so `p99` of a speed is a low number, and of a wait a high one.

// What a page says.
mod distribution;
mod reading;

// What it comes to.
mod curves;
mod knee;

// Three ways to say it.
mod bars;
mod json;
mod svg;
mod table;

pub use curves::{Crowd, Curves, ModelCurves, PositionSpeed, Window};
pub use distribution::Distribution;
pub use json::json;
pub use knee::{Basis, Knee, Outcome};
pub use reading::{Reading, Unreadable};
pub use svg::svg;
pub use table::table;
