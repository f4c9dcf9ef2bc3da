//! A reading as the protocol's messages: cumulative sums, gauges and histograms, with the names of the table.
//! Invariant: the numbers are those of the metrics page.

use metrics::{
    Entry, Exemplar, FamilyReading, HistogramReading, Instrument, NativeReading, Reading, Sample, Value,
    attribute,
};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::exponential_histogram_data_point::Buckets;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram,
    HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, exemplar,
    number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;

use crate::attributes::{Attributes, int, scope};
use crate::limits::EXPONENTIAL_BUCKETS_MAX;
use crate::plan::Histograms;

/// A request and its number of data points.
pub(crate) struct Part {
    pub(crate) request: ExportMetricsServiceRequest,
    pub(crate) points: u64,
}

/// Splits a reading into requests of at most `max_bytes`. A data point is never split, so a request of one point may be
/// larger.
pub(crate) fn parts(
    reading: &Reading,
    resource: &Resource,
    histograms: Histograms,
    text_limit: usize,
    max_bytes: usize,
) -> Vec<Part> {
    let budget = max_bytes.saturating_sub(envelope(resource, Vec::new()).encoded_len() + ENVELOPE_BYTES);
    let times = Times { since: reading.since_unix_ns, at: reading.at_unix_ns };
    let (mut parts, mut metrics, mut bytes) = (Vec::new(), Vec::new(), 0);
    for family in &reading.families {
        for metric in split(family, times, histograms, text_limit, budget) {
            let len = metric.encoded_len() + ENVELOPE_BYTES;
            if bytes + len > budget && !metrics.is_empty() {
                parts.push(part(resource, std::mem::take(&mut metrics)));
                bytes = 0;
            }
            bytes += len;
            metrics.push(metric);
        }
    }
    if !metrics.is_empty() {
        parts.push(part(resource, metrics));
    }
    parts
}

/// Maximum bytes of the tags and lengths around a message.
const ENVELOPE_BYTES: usize = 16;

fn part(resource: &Resource, metrics: Vec<Metric>) -> Part {
    let points = metrics.iter().map(|metric| points(metric) as u64).sum();
    Part { request: envelope(resource, metrics), points }
}

fn envelope(resource: &Resource, metrics: Vec<Metric>) -> ExportMetricsServiceRequest {
    let scope_metrics = vec![ScopeMetrics { scope: Some(scope()), metrics, ..ScopeMetrics::default() }];
    let resource = Some(resource.clone());
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics { resource, scope_metrics, ..ResourceMetrics::default() }],
    }
}

fn points(metric: &Metric) -> usize {
    match &metric.data {
        Some(Data::Gauge(data)) => data.data_points.len(),
        Some(Data::Sum(data)) => data.data_points.len(),
        Some(Data::Histogram(data)) => data.data_points.len(),
        Some(Data::ExponentialHistogram(data)) => data.data_points.len(),
        Some(Data::Summary(data)) => data.data_points.len(),
        None => 0,
    }
}

/// The start of the counters and the time of the reading, nanoseconds since 1970.
#[derive(Clone, Copy)]
struct Times {
    since: u64,
    at: u64,
}

/// Splits a family into metrics of at most `budget` bytes, if possible.
fn split(
    family: &FamilyReading,
    times: Times,
    histograms: Histograms,
    text_limit: usize,
    budget: usize,
) -> Vec<Metric> {
    let mut metrics = Vec::new();
    // One metric must not mix exponential and explicit points.
    let is_native = |sample: &&Sample| {
        histograms == Histograms::Exponential
            && matches!(&sample.value, Value::Histogram(reading) if reading.native.is_some())
    };
    let (native, others): (Vec<_>, Vec<_>) = family.samples.iter().partition(is_native);
    for (samples, native) in [(others, false), (native, true)] {
        let mut pending = vec![samples.as_slice()];
        while let Some(samples) = pending.pop() {
            if samples.is_empty() {
                continue;
            }
            let metric = metric(family, samples, native, times, text_limit);
            if metric.encoded_len() + ENVELOPE_BYTES > budget && samples.len() > 1 {
                let (first, second) = samples.split_at(samples.len() / 2);
                pending.extend([second, first]);
            } else if points(&metric) > 0 {
                metrics.push(metric);
            }
        }
    }
    metrics
}

fn metric(
    family: &FamilyReading,
    samples: &[&Sample],
    native: bool,
    times: Times,
    text_limit: usize,
) -> Metric {
    let entry = family.metric.entry();
    let labels = |sample: &Sample| attributes(entry, sample, text_limit);
    let temporality = AggregationTemporality::Cumulative.into();
    let numbers = |times: Times| {
        samples.iter().filter_map(|sample| number(&sample.value, labels(sample), times)).collect()
    };
    let data = match entry.instrument() {
        Instrument::Gauge => Data::Gauge(Gauge { data_points: numbers(Times { since: 0, ..times }) }),
        kind @ (Instrument::Counter | Instrument::UpDownCounter) => Data::Sum(Sum {
            data_points: numbers(times),
            aggregation_temporality: temporality,
            is_monotonic: kind == Instrument::Counter,
        }),
        Instrument::Histogram if native => Data::ExponentialHistogram(ExponentialHistogram {
            data_points: samples
                .iter()
                .filter_map(|sample| exponential(&sample.value, labels(sample), times))
                .collect(),
            aggregation_temporality: temporality,
        }),
        Instrument::Histogram => Data::Histogram(Histogram {
            data_points: samples
                .iter()
                .filter_map(|sample| explicit(&sample.value, labels(sample), times))
                .collect(),
            aggregation_temporality: temporality,
        }),
    };
    Metric {
        name: entry.otlp_name_in(family.currency).into_owned(),
        description: entry.meaning.to_owned(),
        unit: entry.otlp_unit_in(family.currency).into_owned(),
        data: Some(data),
        ..Metric::default()
    }
}

/// Returns the labels as attributes. Empty labels are omitted, because Prometheus treats them as absent.
fn attributes(entry: &Entry, sample: &Sample, text_limit: usize) -> Vec<KeyValue> {
    let mut list = Attributes::new(text_limit);
    for (label, value) in entry.labels.iter().zip(&sample.labels) {
        if !value.is_empty() {
            match value.parse() {
                Ok(port) if *label == "server_port" => list.int(attribute(label), port),
                _ => list.text(attribute(label), value),
            }
        }
    }
    list.into_list()
}

fn number(value: &Value, attributes: Vec<KeyValue>, times: Times) -> Option<NumberDataPoint> {
    let value = match value {
        Value::Count(count) => number_data_point::Value::AsInt(int(*count)),
        Value::Number(number) => number_data_point::Value::AsDouble(*number),
        Value::Histogram(_) => return None,
    };
    Some(NumberDataPoint {
        attributes,
        start_time_unix_nano: times.since,
        time_unix_nano: times.at,
        value: Some(value),
        ..NumberDataPoint::default()
    })
}

fn histogram(value: &Value) -> Option<&HistogramReading> {
    match value {
        Value::Histogram(reading) => Some(reading),
        _ => None,
    }
}

fn count(reading: &HistogramReading) -> u64 {
    reading.buckets.iter().map(|(_, count)| count).sum()
}

fn explicit(value: &Value, attributes: Vec<KeyValue>, times: Times) -> Option<HistogramDataPoint> {
    let reading = histogram(value)?;
    Some(HistogramDataPoint {
        attributes,
        start_time_unix_nano: times.since,
        time_unix_nano: times.at,
        count: count(reading),
        sum: Some(reading.sum),
        bucket_counts: reading.buckets.iter().map(|(_, count)| *count).collect(),
        explicit_bounds: reading
            .buckets
            .iter()
            .map(|(edge, _)| *edge)
            .filter(|edge| edge.is_finite())
            .collect(),
        exemplars: exemplars(reading),
        ..HistogramDataPoint::default()
    })
}

fn exponential(
    value: &Value,
    attributes: Vec<KeyValue>,
    times: Times,
) -> Option<ExponentialHistogramDataPoint> {
    let reading = histogram(value)?;
    let native = reading.native.as_ref()?;
    let (scale, buckets) = dense(native);
    Some(ExponentialHistogramDataPoint {
        attributes,
        start_time_unix_nano: times.since,
        time_unix_nano: times.at,
        count: native.zero_count + buckets.bucket_counts.iter().sum::<u64>(),
        sum: Some(reading.sum),
        scale,
        zero_count: native.zero_count,
        zero_threshold: native.zero_threshold,
        positive: Some(buckets),
        exemplars: exemplars(reading),
        ..ExponentialHistogramDataPoint::default()
    })
}

/// Returns the scale and the buckets from the first to the last non-empty one. The resolution is halved until they
/// are at most [`EXPONENTIAL_BUCKETS_MAX`].
fn dense(native: &NativeReading) -> (i32, Buckets) {
    // The protocol numbers buckets by their lower end, Prometheus by their upper one.
    let number = |number: i32, halvings: u32| (number - 1) >> halvings;
    let (Some(&(first, _)), Some(&(last, _))) = (native.buckets.first(), native.buckets.last()) else {
        return (native.schema.into(), Buckets::default());
    };
    let width = |halvings| i64::from(number(last, halvings)) - i64::from(number(first, halvings)) + 1;
    let halvings = (0..31).find(|&halvings| width(halvings) <= EXPONENTIAL_BUCKETS_MAX as i64).unwrap_or(31);
    let offset = number(first, halvings);
    let mut bucket_counts = vec![0; usize::try_from(width(halvings)).unwrap_or(1)];
    for &(bucket, count) in &native.buckets {
        let place = usize::try_from(number(bucket, halvings) - offset).unwrap_or(0);
        bucket_counts[place] += count;
    }
    (i32::from(native.schema) - halvings as i32, Buckets { offset, bucket_counts })
}

fn exemplars(reading: &HistogramReading) -> Vec<opentelemetry_proto::tonic::metrics::v1::Exemplar> {
    let exemplar = |exemplar: &Exemplar| opentelemetry_proto::tonic::metrics::v1::Exemplar {
        time_unix_nano: exemplar.at_unix_ns,
        span_id: exemplar.span_id.to_vec(),
        trace_id: exemplar.trace_id.to_vec(),
        value: Some(exemplar::Value::AsDouble(exemplar.value)),
        ..Default::default()
    };
    reading.exemplars.iter().map(exemplar).collect()
}
