//! The export to a collector: takes finished exchanges, and reports the fate of every item on the metrics page. The
//! law: page and collector get the same numbers, including the exporter's own.

use std::io;
use std::sync::{Arc, OnceLock};

use meter::Record;
use metrics::{Metrics, SignalReading, TelemetryReading};
use otlp::limits::SHUTDOWN;
use otlp::{Energy, Exporter, Finished, Signal, SignalCounts};
use price::{Charge, Unpriced};

/// A handle to the exporter, if there is one. A clone shares it.
#[derive(Clone)]
pub struct Exports {
    metrics: Metrics,
    /// Empty if nothing is exported.
    exporter: Arc<OnceLock<Exporter>>,
}

impl Exports {
    /// Creates a handle that exports nothing.
    pub fn none(metrics: &Metrics) -> Self {
        Self { metrics: metrics.clone(), exporter: Arc::default() }
    }

    /// Starts the export of the plan. `refresh_others` updates the metrics before each reading.
    pub fn start(
        plan: Option<otlp::Plan>,
        metrics: &Metrics,
        refresh_others: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let exports = Self::none(metrics);
        if let Some(plan) = plan {
            // A weak reference: the exporter's thread must not keep the exporter alive.
            let (metrics, exporter) = (metrics.clone(), Arc::downgrade(&exports.exporter));
            let read = move || {
                if let Some(exporter) = exporter.upgrade() {
                    refresh(&metrics, &exporter);
                }
                refresh_others();
                metrics.reading()
            };
            let exporter = otlp::start(plan, Box::new(read))?;
            exports.exporter.get_or_init(|| exporter);
        }
        Ok(exports)
    }

    /// Submits a finished exchange with its charge and its GPU use, if known. Never waits.
    pub(crate) fn submit(&self, record: Arc<Record>, charge: &Charge, energy: Option<Energy>) {
        if let Some(exporter) = self.exporter.get() {
            exporter.submit(Finished { record, energy, charge: otlp_charge(charge) });
        }
    }

    /// Updates the exporter's own metrics.
    pub fn refresh(&self) {
        refresh(&self.metrics, &self.exporter);
    }

    /// Sends the queues and ends; items that cannot be sent in time are dropped and counted.
    pub fn shutdown(&self) {
        if let Some(exporter) = self.exporter.get() {
            exporter.shutdown(SHUTDOWN);
        }
        self.refresh();
    }
}

/// Returns a charge for OTLP; `None` without a price book, and for prefill legs.
pub(crate) fn otlp_charge(charge: &Charge) -> Option<otlp::Charge> {
    match charge {
        Charge::Priced { rate, cost } => Some(otlp::Charge::Priced {
            pico: *cost,
            currency: rate.currency.code().into(),
            version: Arc::clone(&rate.version),
        }),
        Charge::Unpriced(Unpriced::NoBook | Unpriced::Leg) => None,
        Charge::Unpriced(why) => Some(otlp::Charge::Unpriced(why.name())),
    }
}

fn refresh(metrics: &Metrics, exporter: &OnceLock<Exporter>) {
    if let Some(exporter) = exporter.get() {
        let counts = exporter.counts();
        let signals = Signal::ALL.map(|signal| counts.of(signal).map(reading));
        metrics.telemetry(TelemetryReading { signals });
    }
}

fn reading(counts: &SignalCounts) -> SignalReading {
    SignalReading {
        made: counts.made,
        sent: counts.sent,
        dropped_full: counts.dropped_full,
        dropped_refused: counts.dropped_refused,
        dropped_unreachable: counts.dropped_unreachable,
        dropped_shutdown: counts.dropped_shutdown,
        queued: counts.queued,
        up: counts.up,
        export_seconds: counts.durations.reading(),
    }
}
