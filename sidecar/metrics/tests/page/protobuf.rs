//! A reader of Prometheus' protobuf format. prost decodes the bytes; the meaning of the messages follows
//! `metrics.proto` and not the encoder.

use std::collections::BTreeMap;

use metrics::{Format, Reading};
use prometheus_client::encoding::prometheus_protobuf::prometheus_data_model as model;
use prost::Message;

use crate::openmetrics::{Exemplar, Family, Page, Series};

/// A page, and the native histograms, which only this format has.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    pub(crate) page: Page,
    /// By series, under the name of the family.
    pub(crate) natives: BTreeMap<Series, Native>,
}

/// A native histogram, its buckets by number.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Native {
    pub(crate) schema: i32,
    pub(crate) zero_threshold: f64,
    pub(crate) zero_count: u64,
    pub(crate) buckets: BTreeMap<i32, i64>,
    pub(crate) exemplars: Vec<Exemplar>,
}

/// Encodes a reading in this format and parses it.
pub(crate) fn of(reading: &Reading) -> Pages {
    let mut bytes = Vec::new();
    reading.write(Format::Protobuf, &mut bytes).unwrap();
    let mut pages = Pages::default();
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        read_family(model::MetricFamily::decode_length_delimited(&mut rest).unwrap(), &mut pages);
    }
    pages
}

fn read_family(family: model::MetricFamily, pages: &mut Pages) {
    let before = pages.page.samples.len();
    let kind = family.r#type();
    for metric in family.metric {
        read_metric(metric, &family.name, kind, pages);
    }
    let name = &family.name;
    pages.page.families.push(Family {
        name: name.strip_suffix("_total").unwrap_or(name).to_owned(),
        kind: kind.as_str_name().to_ascii_lowercase(),
        unit: Some(family.unit).filter(|unit| !unit.is_empty()),
        help: Some(family.help),
        samples: pages.page.samples.len() - before,
    });
}

fn read_metric(metric: model::Metric, name: &str, kind: model::MetricType, pages: &mut Pages) {
    assert_eq!(metric.timestamp_ms, 0, "the scraper sets the time");
    let series = Series { name: name.to_owned(), labels: read_labels(metric.label) };
    let number = match (kind, metric.counter, metric.gauge, metric.histogram) {
        (model::MetricType::Counter, Some(counter), None, None) => counter.value,
        (model::MetricType::Gauge, None, Some(gauge), None) => gauge.value,
        (model::MetricType::Histogram, None, None, Some(histogram)) => {
            return read_histogram(histogram, &series, pages);
        }
        other => panic!("{series:?}: {other:?}"),
    };
    assert!(pages.page.samples.insert(series, number).is_none());
}

fn read_labels(pairs: Vec<model::LabelPair>) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    for pair in pairs {
        assert!(labels.insert(pair.name, pair.value).is_none(), "a label appears twice");
    }
    labels
}

fn read_histogram(histogram: model::Histogram, series: &Series, pages: &mut Pages) {
    let named = |suffix: &str, le: Option<f64>| {
        let mut series = Series { name: format!("{}{suffix}", series.name), ..series.clone() };
        if let Some(le) = le {
            let le = if le == f64::INFINITY { "+Inf".to_owned() } else { le.to_string() };
            series.labels.insert("le".to_owned(), le);
        }
        series
    };
    let count = histogram.sample_count;
    pages.page.samples.insert(named("_count", None), count as f64);
    pages.page.samples.insert(named("_sum", None), histogram.sample_sum);
    for bucket in &histogram.bucket {
        let series = named("_bucket", Some(bucket.upper_bound));
        if let Some(exemplar) = bucket.exemplar.clone() {
            pages.page.exemplars.insert(series.clone(), read_exemplar(exemplar));
        }
        assert!(pages.page.samples.insert(series, bucket.cumulative_count as f64).is_none());
    }
    let native = read_native(histogram, series);
    if native.zero_threshold == 0.0 {
        assert_eq!(native, Native::default(), "half a native histogram");
        return;
    }
    // Prometheus refuses a native histogram whose buckets do not make its count.
    assert_eq!(native.zero_count as i64 + native.buckets.values().sum::<i64>(), count as i64, "{series:?}");
    assert!(pages.natives.insert(series.clone(), native).is_none());
}

fn read_native(histogram: model::Histogram, series: &Series) -> Native {
    assert!(histogram.negative_span.is_empty() && histogram.negative_delta.is_empty(), "{series:?}");
    let (mut next, mut n, mut deltas) = (0, 0, histogram.positive_delta.into_iter());
    let mut buckets = BTreeMap::new();
    for span in histogram.positive_span {
        next += span.offset;
        for _ in 0..span.length {
            n += deltas.next().expect("a count for each bucket");
            buckets.insert(next, n);
            next += 1;
        }
    }
    assert_eq!(deltas.next(), None, "{series:?}");
    Native {
        schema: histogram.schema,
        zero_threshold: histogram.zero_threshold,
        zero_count: histogram.zero_count,
        buckets,
        exemplars: histogram.exemplars.into_iter().map(read_exemplar).collect(),
    }
}

fn read_exemplar(exemplar: model::Exemplar) -> Exemplar {
    let at = exemplar.timestamp.expect("Prometheus drops a native exemplar without its time");
    Exemplar {
        labels: read_labels(exemplar.label),
        value: exemplar.value,
        at: at.seconds as f64 + f64::from(at.nanos) * 1e-9,
    }
}
