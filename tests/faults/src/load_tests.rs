//! The driver against the simulated server: both must count the same.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use serde_json::json;
use simulator::load::{Failure, Load, run};
use simulator::params::Endpoint;

use crate::{Handle, Options, Server, Shape};

async fn server(options: Options) -> Handle {
    Server::bind("127.0.0.1:0".parse().unwrap(), options).await.unwrap()
}

#[tokio::test]
async fn client_and_server_count_the_same_tokens() {
    for (shape, endpoint) in [
        (Shape::Vllm, Endpoint::Chat),
        (Shape::Vllm, Endpoint::Completion),
        (Shape::LlamaCpp, Endpoint::Chat),
        (Shape::LlamaCpp, Endpoint::Completion),
        (Shape::LlamaCpp, Endpoint::Native),
    ] {
        let server = server(Options::instant(shape)).await;
        let report = run(&Load {
            endpoint,
            requests: 20,
            output_tokens: 30,
            concurrency: 4,
            fields: vec![("simulate".to_owned(), json!({ "text": "split" }))],
            ..Load::new(server.addr())
        })
        .await
        .unwrap();
        assert_eq!((report.completed, report.failed()), (20, 0), "{report:?}");
        assert_eq!(report.output_tokens, 600);
        assert_eq!(report.unreported, 0);
        let counts = server.counts();
        assert_eq!(counts.generated_tokens, report.output_tokens);
        assert_eq!(counts.prompt_tokens, report.prompt_tokens);
        assert_eq!((counts.requests, counts.completed), (20, 20));
        // Keep-alive: a client connects once.
        assert_eq!(counts.connections, 4);
    }
}

#[tokio::test]
async fn frames_are_counted_without_usage() {
    let server = server(Options::instant(Shape::Vllm)).await;
    let report = run(&Load { usage: false, requests: 3, output_tokens: 12, ..Load::new(server.addr()) })
        .await
        .unwrap();
    assert_eq!((report.completed, report.unreported), (3, 3));
    assert_eq!(report.output_tokens, 36);
}

#[tokio::test]
async fn each_fault_has_its_failure() {
    let server = server(Options::instant(Shape::Vllm)).await;
    for (fault, failure) in [
        ("error-status=503", Failure::Status(503)),
        ("error-in-band-after=5", Failure::InBand),
        ("cut-after=0", Failure::Cut),
        ("cut-after=7", Failure::Cut),
        ("end-after=7", Failure::Cut),
        ("reset-after=7", Failure::Cut),
        ("no-head", Failure::NoResponse),
        ("hang-after=4", Failure::Timeout),
        ("typing-mistake", Failure::Status(400)),
    ] {
        // Only the hang may time out.
        let timeout = match failure {
            Failure::Timeout => Duration::from_millis(50),
            _ => Duration::from_secs(10),
        };
        let report = run(&Load {
            requests: 2,
            timeout,
            headers: vec![("x-simulate".to_owned(), fault.to_owned())],
            ..Load::new(server.addr())
        })
        .await
        .unwrap();
        assert_eq!(report.failures, BTreeMap::from([(failure, 2)]), "{fault}");
    }
    let gone = |counts: &crate::Counts| counts.running == 0;
    server.until(Duration::from_secs(2), gone).await.unwrap();
}

#[tokio::test]
async fn absent_server_is_a_connect_failure() {
    let server = server(Options::instant(Shape::Vllm)).await;
    let load = Load { requests: 2, ..Load::new(server.addr()) };
    server.shutdown().await;
    let report = run(&load).await.unwrap();
    assert_eq!(report.failures, BTreeMap::from([(Failure::Connect, 2)]));
}

#[tokio::test]
async fn leaving_clients_are_counted_on_both_sides() {
    let server = server(Options::default()).await;
    let report = run(&Load {
        requests: 8,
        output_tokens: 10_000,
        leave_after: Some(3),
        concurrency: 8,
        ..Load::new(server.addr())
    })
    .await
    .unwrap();
    assert_eq!((report.left, report.completed, report.failed()), (8, 0, 0));
    let counts = server.until(Duration::from_secs(2), |counts| counts.aborted == 8).await.unwrap();
    assert_eq!(counts.running, 0);
    // Of 80,000; the exact number depends on the machine.
    assert!(counts.generated_tokens < 40_000, "{counts:?}");
}

#[tokio::test]
async fn invalid_loads_are_rejected() {
    let local = || Load::new("127.0.0.1:1".parse().unwrap());
    for load in [
        Load::new("192.0.2.1:80".parse().unwrap()),
        Load { requests: u64::MAX, ..local() },
        Load { concurrency: 0, ..local() },
        Load { timeout: Duration::MAX, ..local() },
    ] {
        let refused = run(&load).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{load:?}");
    }
}

#[tokio::test]
async fn dropped_run_closes_its_connections() {
    let server = server(Options::default()).await;
    let load = Load { requests: 5, output_tokens: 10_000, concurrency: 5, ..Load::new(server.addr()) };
    let limit = Duration::from_secs(5);
    tokio::select! {
        report = run(&load) => panic!("ended: {report:?}"),
        running = server.until(limit, |counts| counts.running == 5) => { running.unwrap(); }
    }
    let counts = server.until(limit, |counts| counts.aborted == 5).await;
    assert_eq!(counts.unwrap().running, 0);
}
