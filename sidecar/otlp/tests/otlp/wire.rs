//! Requests on the wire.

use std::sync::Arc;
use std::time::{Duration, Instant};

use otlp::settings::{Overrides, resolve};
use otlp::{Plan, Protocol};

use crate::collector::Collector;
use crate::exchanges::{chat, finished, said};
use crate::plans::{self, BOTH, LONG};

/// Sends the spans of one exchange with this plan.
fn send(plan: Plan) {
    let exporter = plans::start(plan);
    exporter.submit(finished(chat()));
    let counts = exporter.shutdown(LONG);
    assert_eq!(counts.spans.sent, 2);
}

#[test]
fn headers_and_compression_follow_plan() {
    for protocol in BOTH {
        let collector = Collector::new();
        let mut plan = plans::spans(protocol, collector.address);
        let target = &mut plan.spans.as_mut().unwrap().target;
        target.gzip = true;
        target.headers = vec![("x-tenant".parse().unwrap(), "blue".parse().unwrap())];
        send(plan);
        let seen = collector.seen();
        assert_eq!(seen.spans().len(), 2);
        let (path, head, _) = &seen.heads[0];
        assert_eq!(head["x-tenant"], "blue");
        assert!(head["user-agent"].starts_with("tokenmeter/"), "{}", head["user-agent"]);
        match protocol {
            Protocol::Http => {
                assert_eq!(path, "/v1/traces");
                assert_eq!(head["content-encoding"], "gzip");
                assert_eq!(head["accept-encoding"], "identity");
                assert_eq!(head["content-type"], "application/x-protobuf");
                assert_eq!(head["host"], collector.address.to_string());
            }
            Protocol::Grpc => {
                assert_eq!(head["grpc-encoding"], "gzip");
                assert!(!head.contains_key("grpc-accept-encoding"), "compressed responses are not requested");
            }
        }
    }
}

#[test]
fn each_batch_has_resource_and_reuses_connection() {
    for protocol in BOTH {
        let collector = Collector::new();
        let exporter = plans::start(plans::spans(protocol, collector.address));
        for round in 1..=3 {
            exporter.submit(finished(chat()));
            let seen = collector.once(|seen| seen.traces.len() == round);
            let resource = seen.traces[round - 1].resource_spans[0].resource.as_ref().unwrap();
            assert_eq!(said(&resource.attributes, "service.name").as_deref(), Some("tokenmeter"));
            let scope = seen.traces[round - 1].resource_spans[0].scope_spans[0].scope.as_ref().unwrap();
            assert_eq!(scope.name, "tokenmeter");
        }
        assert_eq!(collector.seen().connections, 1, "{protocol:?}");
    }
}

#[test]
fn full_batch_does_not_wait_for_delay() {
    let collector = Collector::new();
    let mut plan = plans::spans(Protocol::Http, collector.address);
    plan.spans.as_mut().unwrap().delay = Duration::from_secs(3600);
    let exporter = plans::start(plan);
    for _ in 0..20 {
        exporter.submit(finished(chat()));
    }
    // Two batches of 16 spans; the other 8 wait for more.
    drop(collector.once(|seen| seen.spans().len() == 32));
    let counts = exporter.counts().spans;
    assert_eq!((counts.made, counts.dropped()), (40, 0));
    assert_eq!(exporter.shutdown(LONG).spans.sent, 40);
    assert!(collector.seen().traces.iter().all(|r| r.resource_spans[0].scope_spans[0].spans.len() <= 16));
}

#[test]
fn request_follows_variables() {
    for protocol in ["http/protobuf", "grpc"] {
        let collector = Collector::new();
        let variables = |name: &str| {
            Some(match name {
                "OTEL_EXPORTER_OTLP_ENDPOINT" => format!("http://{}/base/", collector.address),
                "OTEL_EXPORTER_OTLP_PROTOCOL" => protocol.to_owned(),
                "OTEL_EXPORTER_OTLP_HEADERS" => "authorization=Bearer%20s3cret".to_owned(),
                "OTEL_EXPORTER_OTLP_COMPRESSION" => "gzip".to_owned(),
                "OTEL_LOGS_EXPORTER" => "otlp".to_owned(),
                "OTEL_SERVICE_NAME" => "meter".to_owned(),
                "K8S_POD_NAME" => "pod-1".to_owned(),
                "KUBERNETES_SERVICE_HOST" => "10.96.0.1".to_owned(),
                _ => return None,
            })
        };
        let plan = resolve(&variables, &Overrides::default()).plan.unwrap();
        assert!(!format!("{plan:?}").contains("s3cret"), "the debug output of a plan has no secret");
        let exporter = plans::start(plan);
        exporter.submit(finished(chat()));
        let counts = exporter.shutdown(LONG);
        assert_eq!((counts.spans.sent, counts.logs.sent), (2, 1));
        let seen = collector.seen();
        let resource = seen.logs[0].resource_logs[0].resource.as_ref().unwrap();
        assert_eq!(said(&resource.attributes, "service.name").as_deref(), Some("meter"));
        assert_eq!(said(&resource.attributes, "k8s.pod.name").as_deref(), Some("pod-1"));
        for (path, head, _) in &seen.heads {
            assert_eq!(head["authorization"], "Bearer s3cret");
            assert!(protocol == "grpc" || path.starts_with("/base/v1/"), "{path}");
        }
    }
}

#[test]
fn blocked_signal_does_not_delay_others() {
    // The kernel accepts connections, and no process reads them.
    let blackhole = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    for protocol in BOTH {
        let collector = Collector::new();
        let mut plan = plans::spans(protocol, blackhole.local_addr().unwrap());
        plan.metrics = plans::metrics(protocol, collector.address).metrics;
        plan.logs = plans::logs(protocol, collector.address).logs;
        let exporter = otlp::start(plan, Box::new(one_sample)).unwrap();
        for _ in 0..10 {
            exporter.submit(finished(chat()));
        }
        drop(collector.once(|seen| seen.log_records().len() == 10 && seen.metrics.len() > 2));
        let counts = exporter.shutdown(Duration::from_millis(100));
        assert_eq!((counts.spans.sent, counts.spans.dropped_shutdown), (0, 20));
    }
}

fn one_sample() -> metrics::Reading {
    let sample = metrics::Sample { labels: Box::default(), value: metrics::Value::Count(1) };
    let family = Arc::new(metrics::FamilyReading {
        metric: metrics::Metric::ProcessFiles,
        currency: metrics::Currency::USD,
        samples: vec![sample],
    });
    metrics::Reading { families: vec![family], ..plans::empty() }
}

#[test]
fn shutdown_leaves_nothing_behind() {
    let blackhole = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    for protocol in BOTH {
        let mut plan = plans::spans(protocol, blackhole.local_addr().unwrap());
        plan.metrics = plans::metrics(protocol, blackhole.local_addr().unwrap()).metrics;
        let held = Arc::new(());
        let clone = Arc::clone(&held);
        let reading = move || {
            assert!(Arc::strong_count(&clone) > 1);
            one_sample()
        };
        let exporter = otlp::start(plan, Box::new(reading)).unwrap();
        exporter.submit(finished(chat()));
        let counts = exporter.shutdown(Duration::from_millis(300));
        assert_eq!(counts.spans.dropped_shutdown, 2);
        // A second shutdown changes nothing.
        assert_eq!(exporter.shutdown(LONG), counts);
        // On a busy machine the call returns before the thread has ended.
        let deadline = Instant::now() + LONG;
        while Arc::strong_count(&held) > 1 {
            assert!(Instant::now() < deadline, "the thread has not ended, or not dropped its state");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
