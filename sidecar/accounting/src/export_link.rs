//! The export to a collector: takes finished exchanges, and reports the fate of every item on the metrics page. The
//! law: page and collector get the same numbers, including the exporter's own.

use std::io;
use std::sync::Arc;

use meter::Record;
use metrics::{Metrics, Part};
use otlp::limits::SHUTDOWN;
use otlp::{Energy, Exporter, Finished};
use price::{Charge, Unpriced};

/// A handle to the exporter; by default, nothing is exported. A clone shares it.
#[derive(Clone, Default)]
pub struct Exports(Option<Arc<Exporter>>);

impl Exports {
    /// Starts the export of the plan.
    pub fn start(plan: Option<otlp::Plan>, metrics: &Metrics) -> io::Result<Self> {
        let Some(plan) = plan else { return Ok(Self::default()) };
        let read = metrics.clone();
        let exporter = otlp::start(plan, Box::new(move || read.reading()))?;
        metrics.set(Part::Export, exporter.samples());
        Ok(Self(Some(Arc::new(exporter))))
    }

    /// Submits a finished exchange with its charge and its GPU use, if known. Never waits.
    pub(crate) fn submit(&self, record: Arc<Record>, charge: &Charge, energy: Option<Energy>) {
        if let Some(exporter) = &self.0 {
            exporter.submit(Finished { record, energy, charge: otlp_charge(charge) });
        }
    }

    /// Sends the queues and ends; items that cannot be sent in time are dropped and counted.
    pub fn shutdown(&self) {
        if let Some(exporter) = &self.0 {
            exporter.shutdown(SHUTDOWN);
        }
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
