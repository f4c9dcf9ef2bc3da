//! One metric's samples on their way to the page. The law: what a sample is called, which labels it
//! has and how it is rendered comes from the table; only the values come from the caller.

use std::fmt::{Error, Result};

use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabel, EncodeLabelSet, LabelSetEncoder, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry;

use crate::histogram::Distribution;
use crate::table::{Entry, Kind, Metric, Unit};

/// The open family of one metric.
pub(crate) struct Family<'a> {
    metric: Metric,
    encoder: MetricEncoder<'a>,
}

impl<'a> Family<'a> {
    /// Writes the metric's HELP, TYPE and UNIT.
    pub(crate) fn open(
        encoder: &'a mut DescriptorEncoder<'_>,
        metric: Metric,
    ) -> std::result::Result<Self, Error> {
        let entry = metric.entry();
        let (name, unit) = split(entry);
        let kind = match entry.kind {
            Kind::Counter => MetricType::Counter,
            Kind::Gauge => MetricType::Gauge,
            Kind::Histogram(_) => MetricType::Histogram,
        };
        let encoder = encoder.encode_descriptor(name, entry.meaning, unit, kind)?;
        Ok(Self { metric, encoder })
    }

    /// A whole number.
    pub(crate) fn count(&mut self, labels: &[&str], n: u64) -> Result {
        self.sample(labels, |encoder, kind| match kind {
            Kind::Counter => encoder.encode_counter::<NoLabelSet, _, u64>(&n, None),
            _ => encoder.encode_gauge(&n),
        })
    }

    /// A number.
    pub(crate) fn number(&mut self, labels: &[&str], n: f64) -> Result {
        self.sample(labels, |encoder, kind| match kind {
            Kind::Counter => encoder.encode_counter::<NoLabelSet, _, u64>(&n, None),
            _ => encoder.encode_gauge(&n),
        })
    }

    /// A distribution; left out while it is empty.
    pub(crate) fn histogram(&mut self, labels: &[&str], of: &Distribution) -> Result {
        let count = of.count();
        if count == 0 {
            return Ok(());
        }
        let (sum, buckets) = (of.sum(self.metric), of.buckets(self.metric));
        self.sample(labels, |encoder, _| encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None))
    }

    fn sample(
        &mut self,
        values: &[&str],
        write: impl FnOnce(&mut MetricEncoder<'_>, Kind) -> Result,
    ) -> Result {
        let entry = self.metric.entry();
        debug_assert_eq!(entry.labels.len(), values.len(), "{} has other labels", entry.name);
        if entry.labels.is_empty() {
            return write(&mut self.encoder, entry.kind);
        }
        let labels = Labels { names: entry.labels, values };
        write(&mut self.encoder.encode_family(&labels)?, entry.kind)
    }
}

struct Labels<'a> {
    names: &'static [&'static str],
    values: &'a [&'a str],
}

impl EncodeLabelSet for Labels<'_> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result {
        for (name, value) in self.names.iter().zip(self.values) {
            (*name, *value).encode(encoder.encode_label())?;
        }
        Ok(())
    }
}

/// A name as the encoder wants it: it appends the unit and a counter's `_total` by itself. A rate's
/// `_per_second` stays in the name, since OpenMetrics has no such unit.
fn split(entry: &'static Entry) -> (&'static str, Option<&'static registry::Unit>) {
    let name = match entry.kind {
        Kind::Counter => entry.name.strip_suffix("_total").unwrap_or(entry.name),
        Kind::Gauge | Kind::Histogram(_) => entry.name,
    };
    match entry.unit {
        Unit::Seconds => (name.strip_suffix("_seconds").unwrap_or(name), Some(&registry::Unit::Seconds)),
        Unit::Bytes => (name.strip_suffix("_bytes").unwrap_or(name), Some(&registry::Unit::Bytes)),
        _ => (name, None),
    }
}
