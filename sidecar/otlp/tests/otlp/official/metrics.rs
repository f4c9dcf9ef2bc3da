//! Every metric of the table, recorded by the SDK's instruments from the same observations.
//!
//! Differences: the SDK's times come from its own clock, so only the presence of a start time is compared; it gives
//! gauges a start time too, which the protocol ignores; it adds minimum and maximum to a histogram, which are
//! meaningless over all time and not kept by the page; it has no exemplars.

use std::time::Duration;

use metrics::{
    Currency, FamilyReading, HistogramReading, Instrument, Kind, Metric, Reading, Sample, Value, attribute,
};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Meter, MeterProvider};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{HistogramDataPoint, NumberDataPoint};
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use otlp::Protocol;

use super::{Twin, assert_same, plan, resource, scope, sort, sort_resource};
use crate::collector::Collector;
use crate::plans::{self, BOTH, LONG};

/// The observations of a metric under some labels.
#[derive(Clone)]
enum Seen {
    Count(u64),
    Number(f64),
    Observations(Vec<f64>),
}

/// Returns two label sets, the second with an empty label, which counts as absent; whole numbers and others alternate.
fn seen(metric: Metric) -> Vec<(Vec<&'static str>, Seen)> {
    let entry = metric.entry();
    let mut labels = vec!["é"; entry.labels.len()];
    let (first, second) = match entry.kind {
        Kind::Histogram(edges) => {
            let last = edges[edges.len() - 1];
            let first = vec![edges[0], (edges[0] + edges[1]) / 2.0, last, last * 2.0];
            (Seen::Observations(first), Seen::Observations(vec![0.0, edges[1]]))
        }
        _ if (metric as usize).is_multiple_of(2) => (Seen::Count(7), Seen::Count(0)),
        _ => (Seen::Number(0.5), Seen::Number(1e9)),
    };
    let mut seen = vec![(labels.clone(), first)];
    if let Some(last) = labels.last_mut() {
        *last = "";
        seen.push((labels, second));
    }
    seen
}

/// Returns a currency other than the table's; names contain it.
fn euro() -> Currency {
    Currency::new("EUR").expect("a code")
}

fn reading() -> Reading {
    let family = |&metric: &Metric| FamilyReading {
        metric,
        currency: euro(),
        samples: seen(metric).into_iter().map(|(labels, seen)| sample(metric, &labels, &seen)).collect(),
    };
    Reading {
        at_unix_ns: 2,
        since_unix_ns: 1,
        families: Metric::ALL.iter().map(|metric| family(metric).into()).collect(),
    }
}

fn sample(metric: Metric, labels: &[&str], seen: &Seen) -> Sample {
    let value = match seen {
        Seen::Count(count) => Value::Count(*count),
        Seen::Number(number) => Value::Number(*number),
        Seen::Observations(observations) => {
            let Kind::Histogram(edges) = metric.entry().kind else { panic!("{metric:?}") };
            let edges = edges.iter().copied().chain([f64::INFINITY]);
            let mut buckets: Vec<(f64, u64)> = edges.map(|edge| (edge, 0)).collect();
            for seen in observations {
                buckets.iter_mut().find(|(edge, _)| seen <= edge).unwrap().1 += 1;
            }
            let sum = observations.iter().sum();
            Value::Histogram(Box::new(HistogramReading { sum, buckets, ..HistogramReading::default() }))
        }
    };
    Sample { labels: labels.iter().map(|&label| label.into()).collect(), value }
}

/// Records the same observations with the SDK's instruments.
fn record(meter: &Meter, metric: Metric) {
    let entry = metric.entry();
    let (name, unit) = (entry.otlp_name_in(euro()), entry.otlp_unit_in(euro()));
    let meaning = entry.meaning;
    for (labels, seen) in seen(metric) {
        let labels: Vec<_> = entry
            .labels
            .iter()
            .zip(labels)
            .filter(|(_, value)| !value.is_empty())
            .map(|(label, value)| KeyValue::new(attribute(label), value))
            .collect();
        macro_rules! with {
            ($instrument:ident) => {
                meter.$instrument(name.clone()).with_unit(unit.clone()).with_description(meaning)
            };
        }
        match (entry.instrument(), seen) {
            (Instrument::Counter, Seen::Count(count)) => with!(u64_counter).build().add(count, &labels),
            (Instrument::Counter, Seen::Number(number)) => with!(f64_counter).build().add(number, &labels),
            (Instrument::UpDownCounter, Seen::Count(count)) => {
                with!(i64_up_down_counter).build().add(count as i64, &labels);
            }
            (Instrument::UpDownCounter, Seen::Number(number)) => {
                with!(f64_up_down_counter).build().add(number, &labels);
            }
            (Instrument::Gauge, Seen::Count(count)) => with!(u64_gauge).build().record(count, &labels),
            (Instrument::Gauge, Seen::Number(number)) => with!(f64_gauge).build().record(number, &labels),
            (Instrument::Histogram, Seen::Observations(observations)) => {
                let Kind::Histogram(edges) = entry.kind else { panic!("{metric:?}") };
                let histogram = with!(f64_histogram).with_boundaries(edges.to_vec()).build();
                observations.into_iter().for_each(|seen| histogram.record(seen, &labels));
            }
            (_, _) => panic!("{metric:?} has no such values"),
        }
    }
}

fn ours(protocol: Protocol) -> ExportMetricsServiceRequest {
    let collector = Collector::new();
    let mut plan = plan(plans::metrics(protocol, collector.address));
    plan.metrics.as_mut().unwrap().every = Duration::from_secs(3600);
    otlp::start(plan, Box::new(reading)).unwrap().shutdown(LONG);
    only(&collector)
}

fn theirs(protocol: Protocol) -> ExportMetricsServiceRequest {
    let collector = Collector::new();
    let exporter = Twin::metrics(protocol, &collector);
    let reader = PeriodicReader::builder(exporter).with_interval(Duration::from_secs(3600)).build();
    let provider = SdkMeterProvider::builder().with_resource(resource()).with_reader(reader).build();
    let meter = provider.meter_with_scope(scope());
    Metric::ALL.iter().for_each(|&metric| record(&meter, metric));
    provider.shutdown().unwrap();
    only(&collector)
}

fn only(collector: &Collector) -> ExportMetricsServiceRequest {
    let mut requests = std::mem::take(&mut collector.seen().metrics);
    assert_eq!(requests.len(), 1);
    requests.remove(0)
}

/// Removes the permitted differences.
fn comparable(mut request: ExportMetricsServiceRequest, is_theirs: bool) -> ExportMetricsServiceRequest {
    for resource in &mut request.resource_metrics {
        sort_resource(&mut resource.resource);
        for scope in &mut resource.scope_metrics {
            scope.metrics.sort_by(|one, other| one.name.cmp(&other.name));
            for metric in &mut scope.metrics {
                match metric.data.as_mut().unwrap() {
                    Data::Sum(sum) => numbers(&mut sum.data_points),
                    Data::Gauge(gauge) => {
                        numbers(&mut gauge.data_points);
                        for point in gauge.data_points.iter_mut().filter(|_| is_theirs) {
                            assert!(std::mem::take(&mut point.start_time_unix_nano) > 0);
                        }
                    }
                    Data::Histogram(histogram) => {
                        distributions(&mut histogram.data_points);
                        for point in histogram.data_points.iter_mut().filter(|_| is_theirs) {
                            assert!(point.min.take() < point.max.take());
                        }
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }
    request
}

fn keep_presence(time: &mut u64) {
    *time = u64::from(*time > 0);
}

fn numbers(points: &mut [NumberDataPoint]) {
    for point in points.iter_mut() {
        sort(&mut point.attributes);
        keep_presence(&mut point.start_time_unix_nano);
        keep_presence(&mut point.time_unix_nano);
    }
    points.sort_by_key(|point| point.attributes.len());
}

fn distributions(points: &mut [HistogramDataPoint]) {
    for point in points.iter_mut() {
        sort(&mut point.attributes);
        keep_presence(&mut point.start_time_unix_nano);
        keep_presence(&mut point.time_unix_nano);
    }
    points.sort_by_key(|point| point.attributes.len());
}

#[test]
fn metrics_equal_official_ones() {
    for protocol in BOTH {
        let (ours, theirs) = (comparable(ours(protocol), false), comparable(theirs(protocol), true));
        assert_eq!(ours.resource_metrics[0].scope_metrics[0].metrics.len(), Metric::ALL.len());
        assert_same(&ours, &theirs, &format!("{protocol:?}"));
    }
}
