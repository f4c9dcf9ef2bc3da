//! A reading as a collector of prometheus-client. Invariant: the library writes names, units, escapes and numbers;
//! this module only passes values to its encoders.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabel, EncodeLabelSet, LabelSetEncoder, MetricEncoder, NativeHistogram,
    NativeHistogramBuckets, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use super::splice::Exemplars;
use crate::reading::{FamilyReading, HistogramReading, NativeReading, Sample, Value};
use crate::table::{Entry, Kind};

/// The format that the library encodes, which a collector cannot query.
#[derive(Clone, Debug)]
pub(super) enum Encoding {
    /// OpenMetrics text, whose writer inserts the exemplars.
    OpenMetrics(Exemplars),
    /// Protobuf messages.
    Protobuf,
    /// Text 0.0.4. It names a counter's family like its sample and has no units.
    Text,
}

/// Returns these families as a registry of the library. A collector must own its data, therefore the families of a
/// reading are shared.
pub(super) fn registry(families: &[Arc<FamilyReading>], encoding: &Encoding) -> Registry {
    let mut registry = Registry::default();
    for family in families {
        registry
            .register_collector(Box::new(Family { read: Arc::clone(family), encoding: encoding.clone() }));
    }
    registry
}

#[derive(Debug)]
struct Family {
    read: Arc<FamilyReading>,
    encoding: Encoding,
}

impl Collector for Family {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let entry = self.read.metric.entry();
        let kind = match entry.kind {
            Kind::Counter => MetricType::Counter,
            Kind::Gauge => MetricType::Gauge,
            Kind::Histogram(_) => MetricType::Histogram,
        };
        let (name, unit) = match self.encoding {
            Encoding::Text => (self.read.name().into_owned(), None),
            Encoding::OpenMetrics(_) | Encoding::Protobuf => split_unit(&self.read),
        };
        let mut encoder = encoder.encode_descriptor(&name, entry.meaning, unit.as_ref(), kind)?;
        for sample in &self.read.samples {
            let labels = Labels(entry, sample);
            match entry.labels {
                [] => self.sample(sample, &mut encoder)?,
                _ => self.sample(sample, &mut encoder.encode_family(&labels)?)?,
            }
        }
        Ok(())
    }
}

impl Family {
    fn sample(&self, sample: &Sample, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
        // In text 0.0.4 the name already ends in `_total`, which the counter's encoder would append again.
        let is_counter =
            self.read.metric.entry().kind == Kind::Counter && !matches!(self.encoding, Encoding::Text);
        match &sample.value {
            Value::Count(n) if is_counter => encoder.encode_counter::<NoLabelSet, _, u64>(n, None),
            Value::Number(n) if is_counter => encoder.encode_counter::<NoLabelSet, _, u64>(n, None),
            Value::Count(n) => encoder.encode_gauge(n),
            Value::Number(n) => encoder.encode_gauge(n),
            Value::Histogram(of) => {
                if let Encoding::OpenMetrics(exemplars) = &self.encoding {
                    exemplars.queue(of);
                }
                histogram(of, encoder)
            }
        }
    }
}

fn histogram(of: &HistogramReading, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
    let (count, buckets) = (of.count(), without_overflow(&of.buckets));
    let Some(native) = &of.native else {
        return encoder.encode_histogram::<NoLabelSet>(of.sum, count, &buckets, None);
    };
    let (spans, deltas) = spans_and_deltas(native);
    let positive = NativeHistogramBuckets { spans: &spans, deltas: &deltas };
    let native = NativeHistogram {
        schema: native.schema.into(),
        zero_threshold: native.zero_threshold,
        zero_count: native.zero_count,
        negative: NativeHistogramBuckets { spans: &[], deltas: &[] },
        positive,
        created: None,
    };
    encoder.encode_histogram_with_native::<NoLabelSet>(of.sum, count, &buckets, None, native)
}

/// Returns the buckets, truncated where their sum would overflow: the library sums them unchecked.
fn without_overflow(buckets: &[(f64, u64)]) -> Cow<'_, [(f64, u64)]> {
    if buckets.iter().try_fold(0u64, |sum, (_, n)| sum.checked_add(*n)).is_some() {
        return Cow::Borrowed(buckets);
    }
    let mut left = u64::MAX;
    let cut = buckets.iter().map(|(upper, n)| {
        let n = left.min(*n);
        left -= n;
        (*upper, n)
    });
    Cow::Owned(cut.collect())
}

/// Returns the buckets in the protobuf encoding: spans of consecutive buckets (gap before, length), and each count as
/// the difference to the previous one.
fn spans_and_deltas(native: &NativeReading) -> (Vec<(i32, u32)>, Vec<i64>) {
    let (mut spans, mut deltas) = (Vec::<(i32, u32)>::new(), Vec::with_capacity(native.buckets.len()));
    let (mut next, mut before) = (0, 0);
    for (at, n) in &native.buckets {
        match spans.last_mut() {
            Some((_, length)) if *at == next => *length += 1,
            _ => spans.push((at - next, 1)),
        }
        next = at + 1;
        let n = i64::try_from(*n).unwrap_or(i64::MAX);
        deltas.push(n - before);
        before = n;
    }
    (spans, deltas)
}

/// Splits a family's name into name and unit, which the library joins again.
fn split_unit(read: &FamilyReading) -> (String, Option<Unit>) {
    let (entry, name) = (read.metric.entry(), read.name());
    let family = match entry.kind {
        Kind::Counter => name.strip_suffix("_total").unwrap_or(&name),
        Kind::Gauge | Kind::Histogram(_) => &name,
    };
    let word = entry.unit.word();
    let bare = word.and_then(|word| family.strip_suffix(word)?.strip_suffix('_'));
    (bare.unwrap_or(family).to_owned(), word.map(|word| Unit::Other(word.to_owned())))
}

struct Labels<'a>(&'a Entry, &'a Sample);

impl EncodeLabelSet for Labels<'_> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        for (name, value) in self.0.labels.iter().zip(&self.1.labels) {
            (*name, &**value).encode(encoder.encode_label())?;
        }
        Ok(())
    }
}
