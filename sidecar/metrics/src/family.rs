//! One metric's samples while they are collected. The law: what a sample is called and which labels
//! it has comes from the table; only the values come from the caller.

use std::fmt::Result;
use std::sync::Arc;

use crate::currency::Currency;
use crate::histogram::Distribution;
use crate::reading::{FamilyReading, HistogramReading, Sample, Value};
use crate::table::{Kind, Metric};

/// The open family of one metric.
pub(crate) struct Family {
    metric: Metric,
    currency: Currency,
    samples: Vec<Sample>,
}

impl Family {
    /// No sample yet.
    pub(crate) fn open(metric: Metric, currency: Currency) -> Self {
        Self { metric, currency, samples: Vec::new() }
    }

    /// A whole number.
    pub(crate) fn count(&mut self, labels: &[&str], n: u64) -> Result {
        self.sample(labels, Value::Count(n))
    }

    /// A number.
    pub(crate) fn number(&mut self, labels: &[&str], n: f64) -> Result {
        self.sample(labels, Value::Number(n))
    }

    /// A distribution; left out while it is empty.
    pub(crate) fn histogram(&mut self, labels: &[&str], of: &Distribution) -> Result {
        if of.count() == 0 {
            return Ok(());
        }
        self.sample(labels, Value::Histogram(Box::new(of.reading(self.metric))))
    }

    /// A distribution that somebody else kept; left out while it is empty, or if its buckets are
    /// not those of the table.
    pub(crate) fn given(&mut self, labels: &[&str], of: &HistogramReading) -> Result {
        let Kind::Histogram(edges) = self.metric.entry().kind else { return Ok(()) };
        let uppers = of.buckets.iter().map(|(upper, _)| *upper);
        if of.count() == 0 || !uppers.eq(edges.iter().copied().chain([f64::INFINITY])) {
            return Ok(());
        }
        self.sample(labels, Value::Histogram(Box::new(of.clone())))
    }

    /// All of it.
    pub(crate) fn close(self) -> FamilyReading {
        FamilyReading { metric: self.metric, currency: self.currency, samples: self.samples }
    }

    fn sample(&mut self, labels: &[&str], value: Value) -> Result {
        let entry = self.metric.entry();
        debug_assert_eq!(entry.labels.len(), labels.len(), "{} has other labels", entry.name);
        let labels = labels.iter().map(|label| Arc::from(*label)).collect();
        self.samples.push(Sample { labels, value });
        Ok(())
    }
}

impl HistogramReading {
    /// How many observations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, n)| *n).fold(0, u64::saturating_add)
    }
}
