//! The table of all metric names, and the page made of the workers' cells.
//!
//! Each worker of the data plane owns a [`WorkerCells`] and writes into it without a lock; a scrape
//! sums the workers into a [`Reading`], in the order of the [`Metric`] table. The page, in each
//! [`Format`], and every other way out are made of that.
//!
//! ```
//! use relay::Observer;
//!
//! let metrics = metrics::Metrics::new(metrics::Options::default());
//! let mut worker = metrics.worker();
//! let model = worker.model("qwen3-8b");
//! worker.begin(model);
//! assert!(metrics.text().contains("tokenmeter_exchanges_in_flight{model=\"qwen3-8b\"} 1"));
//! ```

// What there is to measure.
pub mod table;

// What the control plane says: of the upstreams' own pages, of the accelerators and what they were
// used for, of the exporter.
mod attribution;
mod control;
mod engine;
mod gpu;
mod telemetry;

// And of money: what exchanges cost, what they may, and where that is written down.
mod budget;
mod currency;
mod ledger;
mod reload;
mod spend;

// Where the data plane writes: from the smallest cell to a worker's whole set.
mod cell;
mod claims;
mod histogram;
mod lazy;
mod leg;
mod model;
mod objective;
mod preset;
mod proxy;
mod tenant;
mod worker;

// Which models and tenants have a label of their own, and whose cells are whose.
mod board;
mod held;
mod labels;
mod names;

// What a scrape makes of it.
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

pub use attribution::{AttributionReading, COST_PARTS, DeviceShare, ModelShare, Share, TenantShare};
pub use budget::{BUDGET_LIMITS, BUDGET_PERIODS, BUDGET_THRESHOLDS, BudgetReading, WEBHOOK_OUTCOMES};
pub use currency::Currency;
pub use engine::{EngineReading, PROMPT_SOURCES};
pub use format::Format;
pub use gpu::{GPU_CLOCKS, GPU_ERRORS, GPU_SAMPLE, GPU_SHARE, GPU_THROTTLES, GPU_UNITS, GpuReading};
pub use held::{ADMIN_CONNECTION, Bounded, HeldReading};
pub use ledger::{
    LEDGER_ENERGY, LEDGER_FAULTS, LEDGER_FILES, LEDGER_ROW, LedgerReading, SHIP_FAILURES, ShipReading,
};
pub use names::{OTHER, UNKNOWN};
pub use objective::{Objective, Verdict};
pub use page::{Metrics, Options};
pub use preset::{PRESETS, Preset, TARGET_RATIO};
pub use reading::{Exemplar, FamilyReading, HistogramReading, NativeReading, Reading, Sample, Value};
pub use reload::{RELOAD_OUTCOMES, ReloadedFile};
pub use semconv::Semconv;
pub use snapshot::{ModelSnapshot, Snapshot};
pub use spend::{Basis, BookReading, UNPRICED, units};
pub use table::{Entry, Instrument, Kind, LABELS, Label, Metric, Unit, attribute};
pub use telemetry::{DROPPED_SIGNALS, OUTCOMES, SIGNALS, SignalReading, TelemetryReading};
pub use upstream::Upstream;
pub use worker::WorkerCells;
