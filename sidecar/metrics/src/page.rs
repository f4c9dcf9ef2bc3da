//! The scrape page. The law: reading it never makes a worker wait.

use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

use crate::board::Board;
use crate::engine::EngineReading;
use crate::snapshot::Snapshot;
use crate::worker::WorkerCells;

/// The content type of [`Metrics::text`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What the page needs to be told.
#[derive(Clone, Debug)]
pub struct Options {
    /// Models with a label of their own; the rest are counted as `_other`.
    pub models: usize,
    /// The `version` of `tokenmeter_build_info`.
    pub version: String,
}

impl Default for Options {
    fn default() -> Self {
        // 50: a page of fifty busy models is some twenty thousand lines, which a scrape still bears.
        Self { models: 50, version: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

/// All that is measured in this process. Cheap to clone; the clones are one.
#[derive(Clone, Debug)]
pub struct Metrics {
    board: Arc<Board>,
    registry: Arc<Registry>,
}

impl Metrics {
    /// Nothing measured yet.
    pub fn new(options: Options) -> Self {
        let board = Arc::new(Board::new(options.models, options.version));
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Arc::clone(&board)));
        Self { board, registry: Arc::new(registry) }
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

    /// The page in OpenMetrics text, of type [`CONTENT_TYPE`].
    pub fn text(&self) -> String {
        let mut page = String::with_capacity(PAGE_BYTES);
        let written: fmt::Result = text::encode(&mut page, &self.registry);
        written.expect("writing to a String does not fail, and the collector has no error of its own");
        page
    }

    /// The same numbers for people, by model.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(&self.board.totals())
    }
}

/// Bytes a page of two busy models comes to; a first guess that saves most of the growing.
const PAGE_BYTES: usize = 64 * 1024;
