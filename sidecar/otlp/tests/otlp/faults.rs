//! Faulty collectors: submitting never blocks, memory is bounded, every loss is counted, and a shutdown ends in time.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use otlp::{Protocol, SignalCounts};

use crate::exchanges::{chat, finished};
use crate::fault::{Fault, faulty};
use crate::plans::{self, BOTH};

/// The outcome of items that are not dropped for other reasons.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    Sent,
    Refused,
    Unreachable,
}

const CAPACITY: u64 = 64;

fn check_counts(counts: &SignalCounts, what: &str) {
    assert_eq!(counts.made, counts.sent + counts.dropped() + counts.queued, "{what}: {counts:?}");
    assert!(counts.queued <= CAPACITY, "{what}: {counts:?}");
}

/// Submits under load from two threads to this collector, then shuts down.
fn check_fault(protocol: Protocol, fault: Fault, outcome: Outcome) {
    let what = format!("{protocol:?} {fault:?}");
    let collector = faulty(fault);
    let mut plan = plans::spans(protocol, collector.address);
    let queued = plan.spans.as_mut().unwrap();
    if outcome == Outcome::Unreachable {
        queued.within = Duration::from_millis(300);
        queued.target.timeout = Duration::from_millis(150);
    }
    plan.logs = plan.spans.clone();
    let exporter = plans::start(plan);
    let exchange = finished(chat());
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..2000 {
                    exporter.submit(exchange.clone());
                }
            });
        }
        for _ in 0..100 {
            let counts = exporter.counts();
            check_counts(&counts.spans, &what);
            check_counts(&counts.logs, &what);
        }
    });
    // 4000 exchanges; a wait for the collector per exchange would take minutes.
    assert!(began.elapsed() < Duration::from_secs(20), "{what}: {:?}", began.elapsed());
    // Waits until one export has ended.
    while exporter.counts().spans.up.is_none() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}: no export ends");
        std::thread::sleep(Duration::from_millis(5));
    }
    check_counts(&exporter.counts().spans, &what);

    let stopping = Instant::now();
    let counts = exporter.shutdown(Duration::from_millis(200));
    assert!(stopping.elapsed() < Duration::from_secs(5), "{what}: {:?}", stopping.elapsed());
    exporter.submit(exchange.clone());
    for (counts, made) in [(&counts.spans, 8000), (&counts.logs, 4000)] {
        check_counts(counts, &what);
        assert_eq!((counts.made, counts.queued), (made, 0), "{what}");
        assert!(counts.dropped_full > 0, "{what}: {counts:?}");
        assert_eq!(counts.sent > 0, outcome == Outcome::Sent, "{what}: {counts:?}");
        assert_eq!(counts.dropped_refused > 0, outcome == Outcome::Refused, "{what}: {counts:?}");
    }
    assert_eq!(
        counts.spans.dropped_unreachable > 0,
        outcome == Outcome::Unreachable,
        "{what}: {:?}",
        counts.spans
    );
    let after = exporter.counts().spans;
    assert_eq!((after.made, after.dropped_shutdown), (8002, counts.spans.dropped_shutdown + 2));
    assert_eq!(collector.redirected.load(Ordering::SeqCst), 0, "{what}: a redirect was followed");
}

#[test]
fn unreachable_collector_is_survived() {
    for protocol in BOTH {
        check_fault(protocol, Fault::Down, Outcome::Unreachable);
    }
}

#[test]
fn silent_collector_is_survived() {
    for protocol in BOTH {
        check_fault(protocol, Fault::Blackhole, Outcome::Unreachable);
    }
}

#[test]
fn slow_collector_is_survived() {
    for protocol in BOTH {
        check_fault(protocol, Fault::Slow, Outcome::Unreachable);
    }
}

#[test]
fn client_error_status_is_survived() {
    check_fault(Protocol::Http, Fault::Status(400), Outcome::Refused);
    check_fault(Protocol::Http, Fault::Status(401), Outcome::Refused);
}

#[test]
fn server_error_status_is_survived() {
    check_fault(Protocol::Http, Fault::Status(500), Outcome::Refused);
    check_fault(Protocol::Http, Fault::Status(503), Outcome::Unreachable);
}

#[test]
fn endless_response_is_survived() {
    check_fault(Protocol::Http, Fault::Huge, Outcome::Sent);
    check_fault(Protocol::Http, Fault::HugeHead, Outcome::Unreachable);
    check_fault(Protocol::Grpc, Fault::Huge, Outcome::Unreachable);
}

#[test]
fn invalid_response_is_survived() {
    for protocol in BOTH {
        check_fault(protocol, Fault::Noise, Outcome::Unreachable);
    }
    check_fault(Protocol::Http, Fault::Garbage, Outcome::Sent);
}

#[test]
fn decompression_bomb_is_survived() {
    check_fault(Protocol::Http, Fault::Bomb, Outcome::Sent);
}

#[test]
fn redirect_is_survived() {
    check_fault(Protocol::Http, Fault::Redirect, Outcome::Refused);
}

#[test]
fn reset_is_survived() {
    for protocol in BOTH {
        check_fault(protocol, Fault::Reset, Outcome::Unreachable);
    }
}
