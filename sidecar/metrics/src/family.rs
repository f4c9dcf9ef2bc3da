//! The samples of one metric during collection. Invariant: name and label names come from the table; only values come
//! from the caller.

use std::fmt::Result;
use std::sync::Arc;

use crate::currency::Currency;
use crate::histogram::Distribution;
use crate::reading::{FamilyReading, HistogramReading, Sample, Value};
use crate::table::Metric;

/// The open family of one metric.
pub(crate) struct Family {
    metric: Metric,
    currency: Currency,
    samples: Vec<Sample>,
}

impl Family {
    /// Returns a family without samples.
    pub(crate) fn open(metric: Metric, currency: Currency) -> Self {
        Self { metric, currency, samples: Vec::new() }
    }

    /// Adds a whole number.
    pub(crate) fn count(&mut self, labels: &[&str], n: u64) -> Result {
        self.sample(labels, Value::Count(n))
    }

    /// Adds a number.
    pub(crate) fn number(&mut self, labels: &[&str], n: f64) -> Result {
        self.sample(labels, Value::Number(n))
    }

    /// Adds a distribution, unless it is empty.
    pub(crate) fn histogram(&mut self, labels: &[&str], of: &Distribution) -> Result {
        if of.count() == 0 {
            return Ok(());
        }
        self.sample(labels, Value::Histogram(Box::new(of.reading(self.metric))))
    }

    /// Adds the samples that the parts wrote.
    pub(crate) fn extend(&mut self, samples: Vec<Sample>) {
        self.samples.extend(samples);
    }

    /// Returns the collected samples.
    pub(crate) fn close(self) -> FamilyReading {
        FamilyReading { metric: self.metric, currency: self.currency, samples: self.samples }
    }

    fn sample(&mut self, labels: &[&str], value: Value) -> Result {
        self.samples.push(sample(self.metric, labels, value));
        Ok(())
    }
}

/// Returns a sample of a metric.
pub(crate) fn sample(metric: Metric, labels: &[&str], value: Value) -> Sample {
    let entry = metric.entry();
    debug_assert_eq!(entry.labels.len(), labels.len(), "{} has other labels", entry.name);
    Sample { labels: labels.iter().map(|label| Arc::from(*label)).collect(), value }
}

impl HistogramReading {
    /// Returns the number of observations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, n)| *n).fold(0, u64::saturating_add)
    }
}
