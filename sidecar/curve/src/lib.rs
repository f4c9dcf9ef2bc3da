//! The degradation curve: the speed of one stream by concurrency, its time to
//! first token, and its speed by position. Read from the metrics of a tokenmeter, its own
//! or those on another's page, since its start or over a window; printed as table, JSON or SVG.
//!
//! ```text
//! page text or cells → Reading ── (less an earlier one) ──→ Curves → table · json · svg
//! ```
//!
//! The law: nothing is measured here and nothing smoothed. Counts and sums are the page's own; a
//! quantile is an estimate within one bucket of its histogram, as PromQL's `histogram_quantile` is.
//!
//! Quantiles of a speed are reversed: the speeds that half, 9 of 10 and 99 of 100 streams reach.
//! So `p99` of a speed is a low number, and `p99` of a time a high one.

// Input.
mod distribution;
mod reading;

// Results.
mod curves;
mod knee;

// Output formats.
mod bars;
mod json;
mod svg;
mod table;

pub use curves::{ConcurrencyPoint, Curves, ModelCurves, PositionSpeed, Window};
pub use distribution::Distribution;
pub use json::json;
pub use knee::{Knee, Outcome};
pub use reading::{Reading, ReadingError};
pub use svg::svg;
pub use table::table;
