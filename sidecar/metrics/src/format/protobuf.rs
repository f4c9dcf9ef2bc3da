//! Prometheus' protobuf form, `io.prometheus.client.MetricFamily`: the one form that carries native
//! histograms. prometheus-client makes the messages; the exemplars, which it cannot be handed
//! (`splice` says why), are put into them here.
//!
//! The law: messages are made a family at a time, so that what is held is the largest family and not
//! the page.

use std::io::{self, Write};
use std::slice;
use std::time::{Duration, UNIX_EPOCH};

use prometheus_client::encoding::prometheus_protobuf::encode;
use prometheus_client::encoding::prometheus_protobuf::prometheus_data_model as model;
use prost::Message;

use super::collector::{Form, registry};
use crate::reading::{Exemplar, FamilyReading, Reading, Value};

/// Every family, each after its length.
pub(super) fn delimited(reading: &Reading, out: &mut dyn Write) -> io::Result<()> {
    let mut bytes = Vec::new();
    for family in &reading.families {
        let registry = registry(slice::from_ref(family), &Form::Protobuf);
        for mut message in encode(&registry).map_err(io::Error::other)? {
            add_exemplars(family, &mut message);
            bytes.clear();
            message.encode_length_delimited(&mut bytes)?;
            out.write_all(&bytes)?;
        }
    }
    Ok(())
}

/// Each to its bucket, and all beside the native buckets, where a scraper of those looks for them.
fn add_exemplars(family: &FamilyReading, message: &mut model::MetricFamily) {
    for (sample, metric) in family.samples.iter().zip(&mut message.metric) {
        let (Value::Histogram(of), Some(histogram)) = (&sample.value, &mut metric.histogram) else {
            continue;
        };
        for seen in &of.exemplars {
            if let Some(bucket) = histogram.bucket.get_mut(seen.bucket) {
                bucket.exemplar = Some(exemplar(seen));
            }
        }
        if of.native.is_some() {
            histogram.exemplars = of.exemplars.iter().map(exemplar).collect();
        }
    }
}

fn exemplar(seen: &Exemplar) -> model::Exemplar {
    let label = |(name, value): (&str, String)| model::LabelPair { name: name.to_owned(), value };
    model::Exemplar {
        label: seen.labels().map(label).into(),
        value: seen.value,
        timestamp: Some((UNIX_EPOCH + Duration::from_nanos(seen.at_unix_ns)).into()),
    }
}
