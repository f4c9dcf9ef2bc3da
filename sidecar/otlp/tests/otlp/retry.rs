//! Retries.

use std::time::Duration;

use otlp::{Plan, Protocol, SignalCounts};
use tonic::Code;

use crate::collector::{Answer, Collector};
use crate::exchanges::{chat, finished};
use crate::plans::{self, BOTH, LONG};

fn run(plan: Plan) -> SignalCounts {
    let exporter = plans::start(plan);
    exporter.submit(finished(chat()));
    let counts = exporter.shutdown(LONG).spans;
    assert_eq!((counts.made, counts.queued), (2, 0));
    assert_eq!(counts.durations.buckets.iter().sum::<u64>(), 1, "one chain of attempts");
    counts
}

/// Starts a collector that gives this answer once and then accepts.
fn once(answer: Answer) -> Collector {
    Collector::answering(move |nth| if nth == 0 { answer.clone() } else { Answer::Taken })
}

#[test]
fn temporary_failure_is_retried_and_arrives_once() {
    let http = [429, 502, 503, 504].map(|status| (Protocol::Http, Answer::Status(status, None)));
    let grpc = [Code::Unavailable, Code::Aborted, Code::Cancelled, Code::DataLoss, Code::OutOfRange];
    let grpc = grpc.map(|code| (Protocol::Grpc, Answer::Code(code, None)));
    for (protocol, answer) in http.into_iter().chain(grpc) {
        let collector = once(answer.clone());
        let counts = run(plans::spans(protocol, collector.address));
        assert_eq!((counts.sent, counts.dropped()), (2, 0), "{answer:?}");
        let seen = collector.seen();
        assert_eq!((seen.heads.len(), seen.spans().len()), (2, 2), "{answer:?}");
    }
}

#[test]
fn permanent_failure_is_not_retried() {
    let http = [301, 400, 401, 403, 404, 413, 500, 501].map(|s| (Protocol::Http, Answer::Status(s, Some(0))));
    let grpc = [Code::InvalidArgument, Code::Unauthenticated, Code::Internal, Code::ResourceExhausted];
    let grpc = grpc.map(|code| (Protocol::Grpc, Answer::Code(code, None)));
    for (protocol, answer) in http.into_iter().chain(grpc) {
        let collector = once(answer.clone());
        let counts = run(plans::spans(protocol, collector.address));
        assert_eq!((counts.dropped_refused, counts.up), (2, Some(false)), "{answer:?}");
        assert_eq!(collector.seen().heads.len(), 1, "{answer:?}");
    }
}

#[test]
fn requested_wait_is_obeyed() {
    for (protocol, answer) in [
        (Protocol::Http, Answer::Status(503, Some(2))),
        (Protocol::Grpc, Answer::Code(Code::Unavailable, Some(2))),
        // `RESOURCE_EXHAUSTED` is retried only with a `RetryInfo`.
        (Protocol::Grpc, Answer::Code(Code::ResourceExhausted, Some(2))),
    ] {
        let collector = once(answer);
        assert_eq!(run(plans::spans(protocol, collector.address)).sent, 2);
        let seen = collector.seen();
        let between = seen.heads[1].2 - seen.heads[0].2;
        assert!(between >= Duration::from_secs(2), "{between:?}");
    }
}

#[test]
fn wait_beyond_deadline_is_not_started() {
    let collector = once(Answer::Status(503, Some(3600)));
    let mut plan = plans::spans(Protocol::Http, collector.address);
    plan.spans.as_mut().unwrap().within = Duration::from_secs(4);
    let exporter = plans::start(plan);
    exporter.submit(finished(chat()));
    let counts = exporter.shutdown(LONG).spans;
    assert_eq!(counts.dropped_unreachable, 2);
    assert!(counts.durations.sum_ns < 3_000_000_000, "it stopped at once: {}", counts.durations.sum_ns);
}

#[test]
fn partial_rejection_is_dropped_without_retry() {
    for protocol in BOTH {
        for (rejected, dropped) in [(0, 0), (1, 1), (2, 2), (99, 2), (-5, 0)] {
            let collector = Collector::answering(move |_| Answer::Rejected(rejected));
            let counts = run(plans::spans(protocol, collector.address));
            assert_eq!((counts.dropped_refused, counts.sent), (dropped, 2 - dropped), "{rejected}");
            assert_eq!(counts.up, Some(true));
            assert_eq!(collector.seen().heads.len(), 1);
        }
    }
}

#[test]
fn partial_rejections_of_metrics_and_logs_are_counted() {
    for protocol in BOTH {
        let collector = Collector::answering(|_| Answer::Rejected(1));
        let mut plan = plans::logs(protocol, collector.address);
        plan.metrics = plans::metrics(protocol, collector.address).metrics;
        plan.metrics.as_mut().unwrap().every = Duration::from_secs(3600);
        let samples = (0..3).map(|n| metrics::Sample {
            labels: Box::new([format!("m{n}").into()]),
            value: metrics::Value::Count(n),
        });
        let family = std::sync::Arc::new(metrics::FamilyReading {
            metric: metrics::Metric::Stalls,
            currency: metrics::Currency::USD,
            samples: samples.collect(),
        });
        let reading = metrics::Reading { families: vec![family], ..plans::empty() };
        let exporter = otlp::start(plan, Box::new(move || reading.clone())).unwrap();
        exporter.submit(finished(chat()));
        let counts = exporter.shutdown(LONG);
        assert_eq!((counts.metrics.sent, counts.metrics.dropped_refused), (2, 1));
        assert_eq!((counts.logs.sent, counts.logs.dropped_refused), (0, 1));
    }
}

#[test]
fn response_is_read_up_to_limit() {
    for protocol in BOTH {
        let collector = Collector::answering(|_| Answer::Wordy(1 << 20));
        let counts = run(plans::spans(protocol, collector.address));
        match protocol {
            // The status came first: the request was accepted.
            Protocol::Http => assert_eq!(counts.sent, 2),
            // The status comes last and is not read.
            Protocol::Grpc => assert_eq!(counts.dropped_refused, 2),
        }
        assert_eq!(collector.seen().heads.len(), 1);
    }
}
