//! The scrape page. The law: reading it never makes a worker wait.

use std::sync::Arc;

use crate::attribution::AttributionReading;
use crate::board::Board;
use crate::budget::{BudgetReading, WEBHOOK_OUTCOMES};
use crate::currency::Currency;
use crate::engine::EngineReading;
use crate::format::Format;
use crate::gpu::GpuReading;
use crate::held::HeldReading;
use crate::ledger::{LedgerReading, ShipReading};
use crate::objective::Objective;
use crate::reading::Reading;
use crate::reload::ReloadedFile;
use crate::semconv::Semconv;
use crate::snapshot::Snapshot;
use crate::spend::{Basis, BookReading};
use crate::telemetry::TelemetryReading;
use crate::upstream::Upstream;
use crate::worker::WorkerCells;

/// What the page needs to be told.
#[derive(Clone, Debug)]
pub struct Options {
    /// Models with a label of their own; the rest are counted as `_other`.
    pub models: usize,
    /// Which vintage of the GenAI convention's token metrics is there.
    pub semconv: Semconv,
    /// The upstreams and where they are.
    pub upstreams: Vec<Upstream>,
    /// The `version` of `tokenmeter_build_info`.
    pub version: String,
    /// What is wanted of whose exchanges; of an exchange, the first that covers it counts.
    pub objectives: Vec<Objective>,
    /// What the price book is in: the word in the names of money by price.
    pub currency: Currency,
}

impl Default for Options {
    fn default() -> Self {
        // 50: a page of fifty busy models is some twenty thousand lines, which a scrape still bears.
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self {
            models: 50,
            semconv: Semconv::default(),
            upstreams: Vec::new(),
            version,
            objectives: Vec::new(),
            currency: Currency::USD,
        }
    }
}

/// All that is measured in this process. Cheap to clone; the clones are one.
#[derive(Clone, Debug)]
pub struct Metrics {
    board: Arc<Board>,
}

impl Metrics {
    /// Nothing measured yet.
    pub fn new(options: Options) -> Self {
        Self { board: Arc::new(Board::new(options)) }
    }

    /// The cells of one more worker. They stay on the page after the worker is gone.
    pub fn worker(&self) -> WorkerCells {
        WorkerCells::new(Arc::clone(&self.board))
    }

    /// Says whether an upstream can be reached.
    pub fn set_upstream_up(&self, name: &str, up: bool) {
        self.board.set_upstream_up(name, up);
    }

    /// Says what an upstream's own page says; it stays on our page until the next one comes.
    pub fn engine(&self, upstream: &str, reading: EngineReading) {
        self.board.set_engine(upstream, reading);
    }

    /// Says what the accelerators say: all of them, in place of what was said before; and how many
    /// samples of them could not be taken or were refused so far.
    pub fn gpu(&self, readings: Vec<GpuReading>, samples_lost: u64) {
        self.board.control().set_gpus(readings, samples_lost);
    }

    /// The label under which the workers count a model's exchanges at this moment. Whoever sums by
    /// model sums under this, looked up once for each exchange: few names, and none that moves.
    pub fn model_label(&self, model: &str) -> Arc<str> {
        self.board.label(model)
    }

    /// Says what energy, device time and money were spent on, in place of what was said before.
    pub fn attribution(&self, reading: &AttributionReading) {
        self.board.set_shares(reading);
    }

    /// One settled exchange's energy for each of its output tokens, in joules.
    pub fn energy_per_output_token(&self, model: &str, joules: f64) {
        let mut control = self.board.control();
        let label = self.board.label(model);
        control.energy_per_token(label, joules);
    }

    /// The label under which a tenant is counted; it gets one of its own if there is room. Whoever
    /// sums by tenant may sum under this, looked up once for each exchange.
    pub fn tenant_label(&self, tenant: &str) -> Arc<str> {
        self.board.tenant_label(tenant)
    }

    /// One exchange's cost on one basis: pico-units of the price book's currency, or of the US dollar
    /// on the basis [`Basis::Gpu`]. Less than nothing counts as nothing.
    pub fn charge(&self, tenant: &str, model: &str, basis: Basis, pico: i128) {
        let mut control = self.board.control();
        let (tenant, model) = (self.board.tenant_label(tenant), self.board.label(model));
        control.spend.charge(tenant, model, basis, pico);
    }

    /// One exchange of which nobody can say the price; the reason is one of
    /// [`UNPRICED`](crate::UNPRICED).
    pub fn unpriced(&self, model: &str, reason: &'static str) {
        let mut control = self.board.control();
        let model = self.board.label(model);
        control.spend.unpriced(model, reason);
    }

    /// One exchange of a service tier that the price book has no prices for: it was charged as an
    /// ordinary one.
    pub fn unpriced_tier(&self, model: &str) {
        let mut control = self.board.control();
        let model = self.board.label(model);
        control.spend.unpriced_tier(model);
    }

    /// Says which price book exchanges are charged by from now on; `None` if there is none.
    pub fn price_book(&self, book: Option<BookReading>) {
        self.board.control().spend.book = book;
    }

    /// Says what budgets there are and how they stand: all of them, in place of what was said before.
    pub fn budgets(&self, mut readings: Vec<BudgetReading>) {
        let mut control = self.board.control();
        for reading in &mut readings {
            reading.tenant = self.board.tenant_label(&reading.tenant);
        }
        control.budgets.set(readings);
    }

    /// One threshold of a budget that was reached: one of
    /// [`BUDGET_THRESHOLDS`](crate::BUDGET_THRESHOLDS).
    pub fn budget_alert(&self, tenant: &str, period: &str, threshold: &str) {
        let mut control = self.board.control();
        let tenant = self.board.tenant_label(tenant);
        control.budgets.alert(tenant, period, threshold);
    }

    /// Says what became of messages about thresholds so far, in the order of
    /// [`WEBHOOK_OUTCOMES`](crate::WEBHOOK_OUTCOMES).
    pub fn budget_webhooks(&self, outcomes: [u64; WEBHOOK_OUTCOMES.len()]) {
        self.board.control().budgets.webhooks = Some(outcomes);
    }

    /// Says how the ledger is, in place of what was said before.
    pub fn ledger(&self, reading: LedgerReading) {
        self.board.control().ledger = Some(reading);
    }

    /// Says how the way to the central store is, in place of what was said before.
    pub fn ship(&self, reading: ShipReading) {
        self.board.control().ship = Some(reading);
    }

    /// Counts a file that was read, for the first time or again, and whether it was taken.
    pub fn reloaded(&self, file: ReloadedFile, taken: bool) {
        self.board.control().reloads.add(file, taken);
    }

    /// Says what clients hold of what they share, in place of what was said before.
    pub fn held(&self, reading: HeldReading) {
        self.board.control().held = Some(reading);
    }

    /// Counts a connection to the admin address that gave way to another.
    pub fn admin_evicted(&self) {
        self.board.control().admin_evicted += 1;
    }

    /// Says what became of the telemetry that was exported, in place of what was said before.
    pub fn telemetry(&self, reading: TelemetryReading) {
        self.board.control().telemetry = reading;
    }

    /// Counts a page that was asked for, and reads it.
    pub fn scrape(&self, format: Format) -> Reading {
        self.board.control().scrapes[format as usize].add(1);
        self.reading()
    }

    /// Everything at one moment: what every way out is made of.
    pub fn reading(&self) -> Reading {
        self.board.reading()
    }

    /// The page in OpenMetrics text.
    pub fn text(&self) -> String {
        let mut page = Vec::with_capacity(PAGE_BYTES);
        self.reading().write(Format::OpenMetrics, &mut page).expect("a Vec takes any bytes");
        String::from_utf8(page).expect("names are strings, and all else is ASCII")
    }

    /// The same numbers for people, by model.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(&self.board.totals())
    }
}

/// Bytes a page of two busy models comes to; a first guess that saves most of the growing.
const PAGE_BYTES: usize = 64 * 1024;
