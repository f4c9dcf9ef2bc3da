//! Our OpenMetrics page against the official client's: the same reading, encoded by
//! prometheus-client, has the same families and samples. It has no exemplars, which nobody outside
//! that crate can hand to it.

use std::fmt;

use metrics::{Entry, FamilyReading, Format, Kind, Metrics, Options, Reading, Sample, Value};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabel, EncodeLabelSet, LabelSetEncoder, MetricEncoder, NoLabelSet, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{self, Registry};
use relay::Observer;

use crate::openmetrics;
use crate::records::{plain, refused};

#[derive(Debug)]
struct Official(Reading);

impl Collector for Official {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.families.iter().try_for_each(|family| encode(family, &mut encoder))
    }
}

fn encode(family: &FamilyReading, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let entry = family.metric.entry();
    let kind = match entry.kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
        Kind::Histogram(_) => MetricType::Histogram,
    };
    let (name, unit) = name(entry);
    let mut encoder = encoder.encode_descriptor(name, entry.meaning, unit.as_ref(), kind)?;
    for sample in &family.samples {
        let labels = Labels(entry, sample);
        match entry.labels {
            [] => value(entry.kind, &sample.value, &mut encoder)?,
            _ => value(entry.kind, &sample.value, &mut encoder.encode_family(&labels)?)?,
        }
    }
    Ok(())
}

fn value(kind: Kind, value: &Value, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
    match (value, kind) {
        (Value::Count(n), Kind::Counter) => encoder.encode_counter::<NoLabelSet, _, u64>(n, None),
        (Value::Count(n), _) => encoder.encode_gauge(n),
        (Value::Number(n), Kind::Counter) => encoder.encode_counter::<NoLabelSet, _, u64>(n, None),
        (Value::Number(n), _) => encoder.encode_gauge(n),
        (Value::Histogram(of), _) => {
            encoder.encode_histogram::<NoLabelSet>(of.sum, of.count(), &of.buckets, None)
        }
    }
}

/// The client appends the unit by itself.
fn name(entry: &Entry) -> (&'static str, Option<registry::Unit>) {
    let word = entry.unit.word();
    let name = word.and_then(|word| entry.family().strip_suffix(word)?.strip_suffix('_'));
    (name.unwrap_or(entry.family()), word.map(|word| registry::Unit::Other(word.to_owned())))
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

#[test]
fn the_official_client_prints_the_same_page() {
    let metrics = Metrics::new(Options::default());
    metrics.set_upstream_up("a \"quoted\\\nname", true);
    let mut worker = metrics.worker();
    for (name, record) in [("plain", plain("plain")), ("re\"fused", refused("re\"fused"))] {
        let model = worker.model(name);
        worker.begin(model);
        worker.end(model, &record);
    }
    let reading = metrics.reading();
    let mut ours = Vec::new();
    reading.write(Format::OpenMetrics, &mut ours).unwrap();

    let mut registry = Registry::default();
    registry.register_collector(Box::new(Official(reading)));
    let mut theirs = String::new();
    text::encode(&mut theirs, &registry).unwrap();

    let ours = openmetrics::read(std::str::from_utf8(&ours).unwrap());
    let theirs = openmetrics::read(&theirs);
    for (ours, theirs) in ours.families.iter().zip(&theirs.families) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.families.len(), theirs.families.len());
    assert_eq!(ours.samples, theirs.samples);
}
