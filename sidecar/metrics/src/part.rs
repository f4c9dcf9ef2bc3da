//! Samples that parts of the process write themselves, because their numbers are in no cell. Invariant: a sample has a
//! metric of the table, and as many label values as the metric has labels.

use std::fmt;
use std::sync::Arc;

use crate::family::sample;
use crate::reading::{HistogramReading, Sample, Value};
use crate::table::{Kind, Metric};

/// A part of the process that writes its own samples. A metric of several parts has their samples in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The resources that clients share.
    Resources,
    /// The price book.
    Prices,
    /// The usage that servers report and that is not read.
    Usage,
    /// The GPUs.
    Gpus,
    /// The export to a collector.
    Export,
    /// The ledger.
    Ledger,
    /// The shipping to the central store.
    Store,
    /// The usage events.
    Events,
    /// The certificates of listeners.
    Certificates,
}

/// The numbers of a part.
pub trait Samples: Send + Sync {
    /// Writes the samples at this moment. Each reading calls it once, while this crate holds no lock.
    fn write(&self, to: &mut SampleWriter);
}

/// Receives the samples of the parts.
#[derive(Debug)]
pub struct SampleWriter {
    /// By the metric's place in the table.
    by_metric: Vec<Vec<Sample>>,
}

impl SampleWriter {
    /// Adds a whole number, if there is one.
    pub fn count(&mut self, metric: Metric, labels: &[&str], n: impl Into<Option<u64>>) {
        self.add(metric, labels, n.into().map(Value::Count));
    }

    /// Adds a number, if there is one.
    pub fn number(&mut self, metric: Metric, labels: &[&str], n: impl Into<Option<f64>>) {
        self.add(metric, labels, n.into().map(Value::Number));
    }

    /// Adds a distribution, unless it is empty or its buckets are not those of the table.
    pub fn histogram(&mut self, metric: Metric, labels: &[&str], of: HistogramReading) {
        let Kind::Histogram(edges) = metric.entry().kind else { return };
        let uppers = of.buckets.iter().map(|(upper, _)| *upper);
        if of.count() > 0 && uppers.eq(edges.iter().copied().chain([f64::INFINITY])) {
            self.add(metric, labels, Some(Value::Histogram(Box::new(of))));
        }
    }

    /// Removes the samples of a metric.
    pub(crate) fn take(&mut self, metric: Metric) -> Vec<Sample> {
        std::mem::take(&mut self.by_metric[metric as usize])
    }

    /// Returns the samples of all metrics.
    pub(crate) fn into_samples(self) -> impl Iterator<Item = (Metric, Sample)> {
        let by_metric = Metric::ALL.iter().zip(self.by_metric);
        by_metric.flat_map(|(metric, samples)| samples.into_iter().map(|sample| (*metric, sample)))
    }

    fn add(&mut self, metric: Metric, labels: &[&str], value: Option<Value>) {
        self.by_metric[metric as usize].extend(value.map(|value| sample(metric, labels, value)));
    }
}

/// The parts that were set, in the order of [`Part`].
#[derive(Clone, Default)]
pub(crate) struct Parts([Option<Arc<dyn Samples>>; Part::Certificates as usize + 1]);

impl Parts {
    /// Replaces or removes the numbers of a part.
    pub(crate) fn set(&mut self, part: Part, samples: Option<Arc<dyn Samples>>) {
        self.0[part as usize] = samples;
    }

    /// Returns the samples of all parts.
    pub(crate) fn write(&self) -> SampleWriter {
        let mut to = SampleWriter { by_metric: vec![Vec::new(); Metric::ALL.len()] };
        self.0.iter().flatten().for_each(|part| part.write(&mut to));
        to
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(Option::is_some)).finish()
    }
}
