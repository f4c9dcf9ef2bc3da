//! Exemplars: the latest sampled trace of each bucket, never torn.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use meter::Observer;
use meter::{Body, Close, Identity, LoadSpan, Meter, Record, Tick, Trace, Weight};
use metrics::{Exemplar, Metric, Metrics, Options, Reading, Value};
use scan::{Delta, Dialect, Event, Extent, Request, Sink};

use crate::records::plain;
use crate::traces::trace;

const WITH_EXEMPLARS: [Metric; 4] =
    [Metric::GenAiFirstToken, Metric::FirstToken, Metric::InterToken, Metric::ChunkGap];

fn exemplars(reading: &Reading, metric: Metric) -> Vec<Exemplar> {
    let family = reading.families.iter().find(|family| family.metric == metric).unwrap();
    let histograms = family.samples.iter().filter_map(|sample| match &sample.value {
        Value::Histogram(of) => Some(of.exemplars.clone()),
        _ => None,
    });
    histograms.flatten().collect()
}

fn read(records: impl IntoIterator<Item = Record>) -> Reading {
    let metrics = Metrics::new(Options::default());
    let mut worker = metrics.worker();
    let model = worker.model("m");
    for record in records {
        worker.begin(model);
        worker.end(model, &record);
    }
    metrics.reading()
}

fn traced(trace: Trace) -> Record {
    let mut record = plain("m");
    record.identity.trace = Some(Box::new(trace));
    record
}

#[test]
fn outlier_links_to_its_trace() {
    let reading = read([traced(trace(7))]);
    for (metric, value) in WITH_EXEMPLARS.into_iter().zip([0.05, 0.05, 0.01, 0.01]) {
        let [exemplar] = exemplars(&reading, metric)[..] else { panic!("{metric:?}") };
        assert_eq!(exemplar.value, value, "{metric:?}");
        assert_eq!((exemplar.trace_id, exemplar.span_id), (trace(7).trace_id, 7u64.to_be_bytes()));
        assert_eq!(exemplar.at_unix_ns, 1_700_000_000_171_000_000, "the time at which it ended");
    }
    let others = Metric::ALL.iter().filter(|metric| !WITH_EXEMPLARS.contains(metric));
    let others = others.filter(|metric| reading.families.iter().any(|family| family.metric == **metric));
    assert!(others.into_iter().all(|metric| exemplars(&reading, *metric).is_empty()));
}

#[test]
fn exchange_without_stored_trace_has_no_exemplar() {
    let none = |trace: Option<Trace>| {
        let mut record = plain("m");
        record.identity.trace = trace.map(Box::new);
        let reading = read([record]);
        WITH_EXEMPLARS.into_iter().all(|metric| exemplars(&reading, metric).is_empty())
    };
    assert!(none(None));
    assert!(none(Some(Trace { sampled: false, ..trace(7) })));
    assert!(none(Some(Trace { spans: None, parent: None, ..trace(7) })), "no span to refer to");
    let caller = read([traced(Trace { spans: None, ..trace(7) })]);
    assert_eq!(
        exemplars(&caller, Metric::FirstToken)[0].span_id,
        [2; 8],
        "the caller's span if the proxy has none"
    );
}

#[test]
fn spread_gap_is_no_exemplar_of_tokens() {
    let mut spread = traced(trace(1));
    spread.timing.weight = Weight::Spread;
    let reading = read([spread]);
    assert!(exemplars(&reading, Metric::InterToken).is_empty());
    assert_eq!(exemplars(&reading, Metric::ChunkGap).len(), 1);
}

/// A meter sees ten tokens per frame and a second between frames.
#[test]
fn token_gap_is_frame_gap_divided_by_tokens() {
    let tick = |ms: u64| Tick(ms * 1_000_000);
    let mut meter = Meter::new(Dialect::OpenaiChat, tick(0), 10_000_000_000);
    meter.requested(Request { answers: 1, prompts: 1, ..Request::default() }, tick(0));
    meter.answered(200, Body::Frames);
    for frame in 0..5 {
        let mut reading = meter.read(tick(100 + 1000 * frame));
        reading.event(Event::Text(Delta { choice: 0, chars: 40, tokens: Some(10) }));
        reading.frame(Extent { from: 0, to: 0, whole: true, is_usage: false, usage: None, timings: None });
    }
    let mut identity = Identity::new("gpu-1", "vllm", Dialect::OpenaiChat, "m");
    identity.trace = Some(Box::new(trace(1)));
    let reading = read([meter.end(identity, Close::Cut, LoadSpan::single(), tick(5000))]);
    for (metric, value) in [(Metric::InterToken, 0.1), (Metric::ChunkGap, 1.0)] {
        let [exemplar] = exemplars(&reading, metric)[..] else { panic!("{metric:?}") };
        assert_eq!(exemplar.value, value, "{metric:?}");
        let family = reading.families.iter().find(|family| family.metric == metric).unwrap();
        let Value::Histogram(of) = &family.samples[0].value else { panic!("{metric:?}") };
        let (upper, n) = of.buckets[exemplar.bucket];
        assert!(value <= upper && n > 0, "{metric:?}: {n} observations up to {upper}");
    }
}

#[test]
fn latest_exemplar_of_all_workers_is_kept() {
    let metrics = Metrics::new(Options::default());
    let mut workers = [metrics.worker(), metrics.worker()];
    for (at, (ms, later)) in [(50, 3), (55, 1), (5, 0), (51, 2)].into_iter().enumerate() {
        let mut record = traced(trace(ms));
        record.timing.first_token_ns = Some(ms * 1_000_000);
        record.identity.started_unix_ns += later;
        let worker = &mut workers[at % 2];
        let model = worker.model("m");
        worker.begin(model);
        worker.end(model, &record);
    }
    let kept = exemplars(&metrics.reading(), Metric::FirstToken);
    let kept: Vec<_> = kept.iter().map(|exemplar| (exemplar.bucket, exemplar.value)).collect();
    assert_eq!(kept, [(1, 0.005), (5, 0.05)]);
}

#[test]
fn exemplar_is_never_torn() {
    const EXCHANGES: u64 = 30_000;
    let metrics = Metrics::new(Options::default());
    let done = AtomicBool::new(false);
    let seen = thread::scope(|scope| {
        let mut cells = metrics.worker();
        let (done, metrics) = (&done, &metrics);
        scope.spawn(move || {
            let model = cells.model("m");
            let mut record = traced(trace(1));
            for n in 1..=EXCHANGES {
                // All are in one bucket, so that each overwrites the previous one.
                record.timing.first_token_ns = Some(41_000_000 + n);
                record.identity.started_unix_ns += 1;
                record.identity.trace = Some(Box::new(trace(41_000_000 + n)));
                cells.begin(model);
                cells.end(model, &record);
            }
            done.store(true, Relaxed);
        });
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(move || {
                    let mut seen = 0u64;
                    while !done.load(Relaxed) || seen == 0 {
                        for exemplar in exemplars(&metrics.reading(), Metric::GenAiFirstToken) {
                            let ns = (exemplar.value * 1e9).round() as u64;
                            assert_eq!(exemplar.trace_id, trace(ns).trace_id);
                            assert_eq!(exemplar.span_id, ns.to_be_bytes());
                            assert_eq!(exemplar.at_unix_ns % 1_000_000, ns - 41_000_000);
                            seen += 1;
                        }
                    }
                    seen
                })
            })
            .collect();
        readers.into_iter().map(|reader| reader.join().unwrap()).sum::<u64>()
    });
    assert!(seen > 0);
}
