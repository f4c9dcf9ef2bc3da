//! Every way in which a collector can misbehave: submitting goes on, memory is bounded, nothing is
//! lost without being counted, and leaving takes no longer than it may.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use otlp::{Protocol, SignalCounts};

use crate::exchanges::{chat, finished};
use crate::fault::{Fault, faulty};
use crate::plans::{self, BOTH};

/// What becomes of those that are not dropped for other reasons.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Sent,
    Refused,
    Unreachable,
}

const CAPACITY: u64 = 64;

fn agree(counts: &SignalCounts, what: &str) {
    assert_eq!(counts.made, counts.sent + counts.dropped() + counts.queued, "{what}: {counts:?}");
    assert!(counts.queued <= CAPACITY, "{what}: {counts:?}");
}

/// Under load from two threads against this collector, and then the end.
fn endure(protocol: Protocol, fault: Fault, fate: Fate) {
    let what = format!("{protocol:?} {fault:?}");
    let collector = faulty(fault);
    let mut plan = plans::spans(protocol, collector.address);
    let queued = plan.spans.as_mut().unwrap();
    if fate == Fate::Unreachable {
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
            agree(&counts.spans, &what);
            agree(&counts.logs, &what);
        }
    });
    // 4000 exchanges; a single wait for the collector for each would take minutes.
    assert!(began.elapsed() < Duration::from_secs(20), "{what}: {:?}", began.elapsed());
    // Until one export has ended.
    while exporter.counts().spans.up.is_none() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}: no export ends");
        std::thread::sleep(Duration::from_millis(5));
    }
    agree(&exporter.counts().spans, &what);

    let leaving = Instant::now();
    let counts = exporter.shutdown(Duration::from_millis(200));
    assert!(leaving.elapsed() < Duration::from_secs(5), "{what}: {:?}", leaving.elapsed());
    exporter.submit(exchange.clone());
    for (counts, made) in [(&counts.spans, 8000), (&counts.logs, 4000)] {
        agree(counts, &what);
        assert_eq!((counts.made, counts.queued), (made, 0), "{what}");
        assert!(counts.dropped_full > 0, "{what}: {counts:?}");
        assert_eq!(counts.sent > 0, fate == Fate::Sent, "{what}: {counts:?}");
        assert_eq!(counts.dropped_refused > 0, fate == Fate::Refused, "{what}: {counts:?}");
    }
    assert_eq!(counts.spans.dropped_unreachable > 0, fate == Fate::Unreachable, "{what}: {:?}", counts.spans);
    let after = exporter.counts().spans;
    assert_eq!((after.made, after.dropped_shutdown), (8002, counts.spans.dropped_shutdown + 2));
    assert_eq!(collector.elsewhere.load(Ordering::SeqCst), 0, "{what}: a redirect was followed");
}

#[test]
fn down() {
    for protocol in BOTH {
        endure(protocol, Fault::Down, Fate::Unreachable);
    }
}

#[test]
fn blackholed() {
    for protocol in BOTH {
        endure(protocol, Fault::Blackhole, Fate::Unreachable);
    }
}

#[test]
fn slow() {
    for protocol in BOTH {
        endure(protocol, Fault::Slow, Fate::Unreachable);
    }
}

#[test]
fn saying_no() {
    endure(Protocol::Http, Fault::Status(400), Fate::Refused);
    endure(Protocol::Http, Fault::Status(401), Fate::Refused);
}

#[test]
fn failing() {
    endure(Protocol::Http, Fault::Status(500), Fate::Refused);
    endure(Protocol::Http, Fault::Status(503), Fate::Unreachable);
}

#[test]
fn saying_too_much() {
    endure(Protocol::Http, Fault::Huge, Fate::Sent);
    endure(Protocol::Http, Fault::HugeHead, Fate::Unreachable);
    endure(Protocol::Grpc, Fault::Huge, Fate::Unreachable);
}

#[test]
fn talking_nonsense() {
    for protocol in BOTH {
        endure(protocol, Fault::Noise, Fate::Unreachable);
    }
    endure(Protocol::Http, Fault::Garbage, Fate::Sent);
}

#[test]
fn answering_a_bomb() {
    endure(Protocol::Http, Fault::Bomb, Fate::Sent);
}

#[test]
fn pointing_elsewhere() {
    endure(Protocol::Http, Fault::Redirect, Fate::Refused);
}

#[test]
fn resetting() {
    for protocol in BOTH {
        endure(protocol, Fault::Reset, Fate::Unreachable);
    }
}
