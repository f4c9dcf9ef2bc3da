//! Prometheus' protobuf format, `io.prometheus.client.MetricFamily`: the only one with native histograms.
//! prometheus-client builds the messages; this module adds the exemplars, which its API does not accept (see `splice`).
//!
//! Invariant: one family is encoded at a time, so that memory is bounded by the largest family.

use std::io::{self, Write};
use std::slice;
use std::time::{Duration, UNIX_EPOCH};

use prometheus_client::encoding::prometheus_protobuf::encode;
use prometheus_client::encoding::prometheus_protobuf::prometheus_data_model as model;
use prost::Message;

use super::collector::{Encoding, registry};
use crate::reading::{Exemplar, FamilyReading, Reading, Value};

/// Writes every family, length-delimited.
pub(super) fn delimited(reading: &Reading, out: &mut dyn Write) -> io::Result<()> {
    let mut bytes = Vec::new();
    for family in &reading.families {
        let registry = registry(slice::from_ref(family), &Encoding::Protobuf);
        for mut message in encode(&registry).map_err(io::Error::other)? {
            add_exemplars(family, &mut message);
            bytes.clear();
            message.encode_length_delimited(&mut bytes)?;
            out.write_all(&bytes)?;
        }
    }
    Ok(())
}

/// Adds each exemplar to its bucket, and all to the native histogram, where scrapers of native buckets read them.
fn add_exemplars(family: &FamilyReading, message: &mut model::MetricFamily) {
    for (sample, metric) in family.samples.iter().zip(&mut message.metric) {
        let (Value::Histogram(of), Some(histogram)) = (&sample.value, &mut metric.histogram) else {
            continue;
        };
        for source in &of.exemplars {
            if let Some(bucket) = histogram.bucket.get_mut(source.bucket) {
                bucket.exemplar = Some(exemplar(source));
            }
        }
        if of.native.is_some() {
            histogram.exemplars = of.exemplars.iter().map(exemplar).collect();
        }
    }
}

fn exemplar(source: &Exemplar) -> model::Exemplar {
    let label = |(name, value): (&str, String)| model::LabelPair { name: name.to_owned(), value };
    model::Exemplar {
        label: source.labels().map(label).into(),
        value: source.value,
        timestamp: Some((UNIX_EPOCH + Duration::from_nanos(source.at_unix_ns)).into()),
    }
}
