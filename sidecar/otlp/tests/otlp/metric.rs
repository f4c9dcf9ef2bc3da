//! Exported metrics: names, units, types and values.

use std::sync::Arc;

use std::time::Duration;

use metrics::{
    Currency, Exemplar, FamilyReading, HistogramReading, Metric, NativeReading, Reading, Sample, Value,
};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Point;
use opentelemetry_proto::tonic::metrics::v1::{AggregationTemporality, Metric as Sent};
use otlp::{Histograms, Plan, Protocol, Signal};
use prost::Message;

use crate::collector::Collector;
use crate::exchanges::said;
use crate::plans::{self, BOTH, LONG};

const SINCE: u64 = 1_000;
const AT: u64 = 2_000;

fn family(metric: Metric, samples: Vec<(&[&str], Value)>) -> Arc<FamilyReading> {
    let samples = samples
        .into_iter()
        .map(|(labels, value)| Sample { labels: labels.iter().map(|&label| label.into()).collect(), value })
        .collect();
    Arc::new(FamilyReading { metric, currency: Currency::USD, samples })
}

fn native() -> HistogramReading {
    HistogramReading {
        sum: 3.5,
        buckets: vec![(0.5, 2), (1.0, 0), (f64::INFINITY, 1)],
        native: Some(NativeReading {
            schema: 0,
            zero_count: 1,
            zero_threshold: 1e-9,
            // (1/4, 1/2] and (1, 2].
            buckets: vec![(-1, 1), (1, 1)],
        }),
        exemplars: vec![Exemplar {
            bucket: 2,
            value: 1.5,
            trace_id: [9; 16],
            span_id: [8; 8],
            at_unix_ns: 1_500,
        }],
    }
}

fn reading() -> Reading {
    let chat: &[&str] = &["chat", "vllm", "m", "10.0.0.7", "8000"];
    Reading {
        at_unix_ns: AT,
        since_unix_ns: SINCE,
        families: vec![
            family(Metric::Exchanges, vec![(&["m", "gpu-1", "openai_chat", "complete"], Value::Count(7))]),
            family(Metric::ProcessMemory, vec![(&[], Value::Count(1 << 20))]),
            family(Metric::Stalled, vec![(&["m"], Value::Number(0.5))]),
            family(Metric::GenAiFirstToken, vec![(chat, Value::Histogram(Box::new(native())))]),
            family(Metric::InFlight, vec![]),
        ],
    }
}

/// Returns the metrics of one export and the number of counted points.
fn arrive(plan: impl Fn(&Collector) -> Plan, reading: Reading) -> (Vec<Sent>, usize) {
    let collector = Collector::new();
    let exporter = otlp::start(plan(&collector), Box::new(move || reading.clone())).unwrap();
    let counts = exporter.shutdown(LONG);
    assert_eq!(counts.metrics.made, counts.metrics.sent);
    let seen = collector.seen();
    (seen.metrics(), counts.metrics.sent as usize)
}

/// Returns a plan that exports only at shutdown.
fn once(protocol: Protocol, collector: &Collector) -> Plan {
    let mut plan = plans::metrics(protocol, collector.address);
    plan.metrics.as_mut().unwrap().every = Duration::from_secs(3600);
    plan
}

fn named<'a>(metrics: &'a [Sent], name: &str) -> &'a Sent {
    metrics.iter().find(|metric| metric.name == name).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn names_units_and_values_match_table() {
    for protocol in BOTH {
        let (metrics, points) = arrive(|collector| once(protocol, collector), reading());
        assert_eq!((metrics.len(), points), (4, 4), "a family without samples is not sent");

        let exchanges = named(&metrics, Metric::Exchanges.entry().otlp_name());
        assert_eq!(exchanges.unit, Metric::Exchanges.entry().otlp_unit());
        assert_eq!(exchanges.description, Metric::Exchanges.entry().meaning);
        let Some(Data::Sum(sum)) = &exchanges.data else { panic!("{exchanges:?}") };
        assert!(sum.is_monotonic);
        assert_eq!(sum.aggregation_temporality, AggregationTemporality::Cumulative as i32);
        let point = &sum.data_points[0];
        assert_eq!(point.value, Some(Point::AsInt(7)));
        assert_eq!((point.start_time_unix_nano, point.time_unix_nano), (SINCE, AT));
        assert_eq!(said(&point.attributes, "ending").as_deref(), Some("complete"));

        let stalled = named(&metrics, Metric::Stalled.entry().otlp_name());
        let Some(Data::Sum(sum)) = &stalled.data else { panic!("{stalled:?}") };
        assert_eq!(sum.data_points[0].value, Some(Point::AsDouble(0.5)));
        assert_eq!(stalled.unit, "s");
    }
}

#[test]
fn gauge_has_no_start_time() {
    let (metrics, _) = arrive(|collector| once(Protocol::Http, collector), reading());
    let memory = named(&metrics, Metric::ProcessMemory.entry().otlp_name());
    let points = match &memory.data {
        Some(Data::Gauge(gauge)) => {
            assert_eq!(gauge.data_points[0].start_time_unix_nano, 0);
            &gauge.data_points
        }
        // As in the table: memory is a sum that may fall.
        Some(Data::Sum(sum)) => {
            assert!(!sum.is_monotonic);
            &sum.data_points
        }
        other => panic!("{other:?}"),
    };
    assert_eq!((points[0].time_unix_nano, &points[0].value), (AT, &Some(Point::AsInt(1 << 20))));
}

#[test]
fn histogram_has_edges_and_exemplars() {
    let (metrics, _) = arrive(|collector| once(Protocol::Grpc, collector), reading());
    let first_token = named(&metrics, "gen_ai.server.time_to_first_token");
    let Some(Data::Histogram(histogram)) = &first_token.data else { panic!("{first_token:?}") };
    let point = &histogram.data_points[0];
    assert_eq!(point.explicit_bounds, [0.5, 1.0]);
    assert_eq!(point.bucket_counts, [2, 0, 1]);
    assert_eq!((point.count, point.sum), (3, Some(3.5)));
    assert_eq!(said(&point.attributes, "gen_ai.request.model").as_deref(), Some("m"));
    let exemplar = &point.exemplars[0];
    assert_eq!((&*exemplar.trace_id, &*exemplar.span_id), (&[9; 16][..], &[8; 8][..]));
    assert_eq!(exemplar.time_unix_nano, 1_500);
}

#[test]
fn exponential_buckets_are_sent_if_enabled_and_present() {
    let plan = |collector: &Collector| {
        let mut plan = once(Protocol::Http, collector);
        plan.metrics.as_mut().unwrap().histograms = Histograms::Exponential;
        plan
    };
    let mut reading = reading();
    let mut plain = native();
    plain.native = None;
    let plain = family(Metric::FirstByte, vec![(&["m"], Value::Histogram(Box::new(plain)))]);
    reading.families.push(plain);
    let (metrics, _) = arrive(plan, reading);
    let first_token = named(&metrics, "gen_ai.server.time_to_first_token");
    let Some(Data::ExponentialHistogram(histogram)) = &first_token.data else { panic!("{first_token:?}") };
    let point = &histogram.data_points[0];
    let positive = point.positive.as_ref().unwrap();
    assert_eq!((point.scale, point.zero_count, point.count), (0, 1, 3));
    // (1/4, 1/2] is bucket -2, and the buckets up to (1, 2] are empty.
    assert_eq!((positive.offset, &*positive.bucket_counts), (-2, &[1, 0, 1][..]));
    let first_byte = named(&metrics, Metric::FirstByte.entry().otlp_name());
    assert!(matches!(first_byte.data, Some(Data::Histogram(_))));
}

#[test]
fn too_many_exponential_buckets_are_merged() {
    let mut histogram = native();
    // 1 and 2^40, at a resolution of 256 buckets for each power of two.
    let buckets = vec![(1, 5), (40 * 256, 7)];
    histogram.native = Some(NativeReading { schema: 8, zero_count: 0, zero_threshold: 0.0, buckets });
    let value = Value::Histogram(Box::new(histogram));
    let families =
        vec![family(Metric::GenAiFirstToken, vec![(&["chat", "vllm", "m", "10.0.0.7", "8000"], value)])];
    let plan = |collector: &Collector| {
        let mut plan = once(Protocol::Http, collector);
        plan.metrics.as_mut().unwrap().histograms = Histograms::Exponential;
        plan
    };
    let (metrics, _) = arrive(plan, Reading { at_unix_ns: AT, since_unix_ns: SINCE, families });
    let Some(Data::ExponentialHistogram(histogram)) = &metrics[0].data else { panic!() };
    let point = &histogram.data_points[0];
    let positive = point.positive.as_ref().unwrap();
    // 10,240 buckets halved six times are 160.
    assert_eq!((point.scale, positive.offset, positive.bucket_counts.len()), (2, 0, 160));
    assert_eq!((positive.bucket_counts[0], positive.bucket_counts[159], point.count), (5, 7, 12));
}

#[test]
fn large_reading_is_split_within_request_limit() {
    BOTH.into_iter().for_each(large);
}

fn large(protocol: Protocol) {
    // 100,000 series of some 250 bytes.
    let name = "n".repeat(200);
    let samples = (0..50_000u64).map(|n| {
        let labels: Vec<Arc<str>> = vec![format!("{name}{n}").into()];
        Sample { labels: labels.into(), value: Value::Count(n) }
    });
    let samples: Vec<_> = samples.collect();
    let families = [Metric::Stalls, Metric::Characters]
        .map(|metric| Arc::new(FamilyReading { metric, currency: Currency::USD, samples: samples.clone() }))
        .into();
    let collector = Collector::new();
    let reading = Reading { at_unix_ns: AT, since_unix_ns: SINCE, families };
    let plan = once(protocol, &collector);
    let exporter = otlp::start(plan, Box::new(move || reading.clone())).unwrap();
    let counts = exporter.shutdown(LONG).metrics;
    assert_eq!((counts.made, counts.sent), (100_000, 100_000));
    let seen = collector.seen();
    assert!(seen.metrics.len() > 5, "{} requests", seen.metrics.len());
    for request in &seen.metrics {
        assert!(request.encoded_len() <= otlp::limits::REQUEST_MAX_BYTES, "{} bytes", request.encoded_len());
    }
    let mut numbers: Vec<_> = seen
        .metrics()
        .iter()
        .filter(|metric| metric.name == Metric::Stalls.entry().otlp_name())
        .flat_map(|metric| match &metric.data {
            Some(Data::Sum(sum)) => sum.data_points.clone(),
            other => panic!("{other:?}"),
        })
        .map(|point| match point.value {
            Some(Point::AsInt(number)) => number,
            other => panic!("{other:?}"),
        })
        .collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..50_000), "each series exactly once");
}

#[test]
fn metrics_are_exported_periodically() {
    let collector = Collector::new();
    let plan = plans::metrics(Protocol::Http, collector.address);
    let exporter = otlp::start(plan, Box::new(reading)).unwrap();
    drop(collector.once(|seen| seen.metrics.len() >= 3));
    let counts = exporter.shutdown(LONG);
    assert_eq!(counts.metrics.up, Some(true));
    assert_eq!(counts.of(Signal::Metric), Some(&counts.metrics));
    assert_eq!(counts.of(Signal::Span), None, "a disabled signal has no counts");
    let durations = counts.metrics.durations.reading();
    let exports: u64 = durations.buckets.iter().map(|(_, count)| count).sum();
    assert_eq!(exports, collector.seen().metrics.len() as u64);
    assert!(durations.sum > 0.0);
    assert_eq!(collector.seen().connections, 1, "on one connection");
    assert_eq!(counts.metrics.sent, collector.seen().metrics.len() as u64 * 4);
}
