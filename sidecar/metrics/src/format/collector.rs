//! A reading as prometheus-client collects it: which encoder of that library is told what. The law:
//! names, units, escapes and numbers are the library's to write, and nothing here writes a byte.

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

/// What the library cannot know about the form it is asked to write.
#[derive(Clone, Debug)]
pub(super) enum Form {
    /// OpenMetrics text, whose writer is handed the exemplars.
    OpenMetrics(Exemplars),
    /// Protobuf messages.
    Protobuf,
    /// Text 0.0.4. It calls a counter's family by its sample's name and has no units.
    Text,
}

/// These families, for one of the library's encoders. A collector must own what it collects, which
/// is why a reading's families are shared.
pub(super) fn registry(families: &[Arc<FamilyReading>], form: &Form) -> Registry {
    let mut registry = Registry::default();
    for family in families {
        registry.register_collector(Box::new(Family { read: Arc::clone(family), form: form.clone() }));
    }
    registry
}

#[derive(Debug)]
struct Family {
    read: Arc<FamilyReading>,
    form: Form,
}

impl Collector for Family {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let entry = self.read.metric.entry();
        let kind = match entry.kind {
            Kind::Counter => MetricType::Counter,
            Kind::Gauge => MetricType::Gauge,
            Kind::Histogram(_) => MetricType::Histogram,
        };
        let (name, unit) = match self.form {
            Form::Text => (self.read.name().into_owned(), None),
            Form::OpenMetrics(_) | Form::Protobuf => apart(&self.read),
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
        // The counter's encoder would append another `_total` to a name of text 0.0.4.
        let counts = self.read.metric.entry().kind == Kind::Counter && !matches!(self.form, Form::Text);
        match &sample.value {
            Value::Count(n) if counts => encoder.encode_counter::<NoLabelSet, _, u64>(n, None),
            Value::Number(n) if counts => encoder.encode_counter::<NoLabelSet, _, u64>(n, None),
            Value::Count(n) => encoder.encode_gauge(n),
            Value::Number(n) => encoder.encode_gauge(n),
            Value::Histogram(of) => {
                if let Form::OpenMetrics(exemplars) = &self.form {
                    exemplars.hand_over(of);
                }
                histogram(of, encoder)
            }
        }
    }
}

fn histogram(of: &HistogramReading, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
    let (count, buckets) = (of.count(), addable(&of.buckets));
    let Some(native) = &of.native else {
        return encoder.encode_histogram::<NoLabelSet>(of.sum, count, &buckets, None);
    };
    let (spans, deltas) = runs(native);
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

/// The buckets, cut where their sum would overflow: the library adds them up unchecked.
fn addable(buckets: &[(f64, u64)]) -> Cow<'_, [(f64, u64)]> {
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

/// Runs of buckets, each as the gap before it and its length, and every bucket's count as the
/// difference to the one before: how the model of the protobuf form wants them.
fn runs(native: &NativeReading) -> (Vec<(i32, u32)>, Vec<i64>) {
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

/// A family's name without its unit, and the unit: the library puts them together again.
fn apart(read: &FamilyReading) -> (String, Option<Unit>) {
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
