//! made = sent + dropped + queued, compared with the collector's own counts.

use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use otlp::Protocol;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tonic::Code;

use crate::collector::{Answer, Collector};
use crate::exchanges::{chat, finished, untraced};
use crate::plans;

fn answers() -> impl Strategy<Value = Answer> {
    prop_oneof![
        3 => Just(Answer::Taken),
        2 => (0i64..40).prop_map(Answer::Rejected),
        1 => Just(Answer::Status(400, None)),
        1 => Just(Answer::Status(503, Some(3600))),
        1 => Just(Answer::Code(Code::InvalidArgument, None)),
        1 => Just(Answer::Code(Code::Unavailable, Some(100))),
    ]
}

fn items(request: &ExportTraceServiceRequest) -> u64 {
    request.resource_spans[0].scope_spans[0].spans.len() as u64
}

#[test]
fn counts_agree_with_collector() {
    let grpc = any::<bool>();
    let submits = proptest::collection::vec(any::<bool>(), 1..120);
    let answers = proptest::collection::vec(answers(), 40);
    TestRunner::new(chance::cases(24))
        .run(&(grpc, submits, answers), |(grpc, submits, answers)| {
            check(if grpc { Protocol::Grpc } else { Protocol::Http }, &submits, answers);
            Ok(())
        })
        .unwrap();
}

fn check(protocol: Protocol, submits: &[bool], answers: Vec<Answer>) {
    // An answer of the other protocol becomes a rejection of this one.
    let answers = answers.into_iter().map(move |answer| match (protocol, answer) {
        (Protocol::Http, Answer::Code(..)) => Answer::Status(404, None),
        (Protocol::Grpc, Answer::Status(..)) => Answer::Code(Code::PermissionDenied, None),
        (_, answer) => answer,
    });
    let answers: Vec<_> = answers.collect();
    let given = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&given);
    let collector = Collector::answering(move |nth| {
        let answer = answers[nth % answers.len()].clone();
        log.lock().unwrap().push(answer.clone());
        answer
    });
    // A requested wait exceeds the deadline, so that each batch has one attempt.
    let exporter = plans::start(plans::spans(protocol, collector.address));
    for &traced in submits {
        exporter.submit(finished(if traced { chat() } else { untraced() }));
    }
    let counts = exporter.shutdown(plans::LONG).spans;

    let made = submits.iter().filter(|&&traced| traced).count() as u64 * 2;
    let (mut sent, mut refused, mut nth) = (0, 0, 0);
    let seen = collector.seen();
    for answer in given.lock().unwrap().iter() {
        let rejected = match answer {
            Answer::Taken => 0,
            Answer::Rejected(rejected) => *rejected as u64,
            _ => continue,
        };
        let items = items(&seen.traces[nth]);
        nth += 1;
        refused += rejected.min(items);
        sent += items - rejected.min(items);
    }
    assert_eq!(counts.made, made);
    assert_eq!(counts.sent, sent, "{counts:?}");
    assert!(counts.dropped_refused >= refused, "{counts:?}");
    assert_eq!((counts.queued, counts.dropped_shutdown), (0, 0), "{counts:?}");
    assert_eq!(counts.made, counts.sent + counts.dropped());
}
