//! The way to a collector: finished exchanges go in, and what became of everything that was made for
//! it goes on the page. The law: the page and the collector get the same numbers, and the exporter's
//! own are among them.

use std::io;
use std::sync::{Arc, OnceLock};

use meter::Record;
use metrics::{Metrics, SignalReading, TelemetryReading};
use otlp::limits::SHUTDOWN;
use otlp::{Energy, Exporter, Finished, Signal, SignalCounts};
use price::{Charge, Unpriced};

/// The exporter, if there is one. Cheap to clone; the clones are one.
#[derive(Clone)]
pub(crate) struct Exports {
    metrics: Metrics,
    /// Empty where nothing is sent.
    exporter: Arc<OnceLock<Exporter>>,
}

impl Exports {
    /// Sends nothing.
    pub(crate) fn none(metrics: &Metrics) -> Self {
        Self { metrics: metrics.clone(), exporter: Arc::default() }
    }

    /// Begins to send, if there is anything to be sent; the metrics after `refresh_others` brought them up to
    /// date.
    pub(crate) fn start(
        plan: Option<otlp::Plan>,
        metrics: &Metrics,
        refresh_others: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let exports = Self::none(metrics);
        if let Some(plan) = plan {
            // What the exporter's thread holds must not keep the exporter alive.
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

    /// A finished exchange, what it costs, and its share of the GPUs' work if that is known. Never waits.
    pub(crate) fn submit(&self, record: Arc<Record>, charge: &Charge, energy: Option<Energy>) {
        if let Some(exporter) = self.exporter.get() {
            exporter.submit(Finished { record, energy, charge: told(charge) });
        }
    }

    /// Brings the metrics up to date with what became of everything made for the collector.
    pub(crate) fn refresh(&self) {
        refresh(&self.metrics, &self.exporter);
    }

    /// Sends what is left and ends; what cannot be sent in time is dropped and counted.
    pub(crate) fn shutdown(&self) {
        if let Some(exporter) = self.exporter.get() {
            exporter.shutdown(SHUTDOWN);
        }
        self.refresh();
    }
}

/// What is told of a charge; nothing where nobody charges.
pub(crate) fn told(charge: &Charge) -> Option<otlp::Charge> {
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
