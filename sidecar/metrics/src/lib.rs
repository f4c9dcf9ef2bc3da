//! The table of all metrics, and the metrics page rendered from the workers' cells.
//!
//! Each worker of the data plane owns a [`WorkerCells`] and writes into it without a lock; a scrape
//! sums the workers into a [`Reading`], in the order of the [`Metric`] table. The page in each [`Format`]
//! and every other export are rendered from it. Other parts of the process write their own samples into it, through
//! the trait [`Samples`].
//!
//! ```
//! use meter::Observer;
//!
//! let metrics = metrics::Metrics::new(metrics::Options::default());
//! let mut worker = metrics.worker();
//! let model = worker.model("qwen3-8b");
//! worker.begin(model);
//! assert!(metrics.text().contains("tokenmeter_exchanges_in_flight{model=\"qwen3-8b\"} 1"));
//! ```

// The metrics.
pub mod table;

// The control plane: the parts that write their own samples, the upstreams' metrics pages, the shares of tenants.
mod attribution;
mod control;
mod engine;
mod part;

// Money: spend, budgets, prices.
mod budget;
mod currency;
mod reload;
mod spend;

// The cells of the data plane, from one number to a worker's set.
mod bucket_counts;
mod cell;
mod histogram;
mod lazy;
mod leg;
mod model;
mod name_counts;
mod objective;
mod preset;
mod proxy;
mod tenant;
mod worker;

// The labels of models and tenants, and the cells of all workers.
mod labels;
mod names;
mod recent;
mod registry;

// The scrape.
mod collector;
mod family;
mod format;
mod page;
mod process;
mod reading;
mod semconv;
mod snapshot;
mod totals;
mod upstream;

pub use attribution::{COST_PARTS, Share};
pub use bucket_counts::BucketCounts;
pub use budget::{BUDGET_LIMITS, BUDGET_PERIODS, BUDGET_THRESHOLDS, BudgetReading, WEBHOOK_OUTCOMES};
pub use currency::Currency;
pub use engine::{EngineReading, PROMPT_SOURCES};
pub use format::Format;
/// The kind of server in an [`EngineReading`].
pub use meter::ServerKind;
pub use names::{OTHER, UNKNOWN};
pub use objective::{Objective, Verdict};
pub use page::{Metrics, Options};
pub use part::{Part, SampleWriter, Samples};
pub use preset::{PRESETS, Preset, TARGET_RATIO};
pub use reading::{Exemplar, FamilyReading, HistogramReading, NativeReading, Reading, Sample, Value};
pub use reload::{RELOAD_OUTCOMES, ReloadedFile};
pub use semconv::Semconv;
pub use snapshot::{ModelSnapshot, Snapshot, TenantSnapshot, Verdicts};
pub use spend::{Basis, UNPRICED, units};
pub use table::value::*;
pub use table::{Entry, Instrument, Kind, LABELS, Label, Metric, Unit, attribute};
pub use upstream::Upstream;
pub use worker::WorkerCells;
