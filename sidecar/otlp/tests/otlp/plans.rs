//! Export plans for the tests.

use std::net::SocketAddr;
use std::time::Duration;

use metrics::Reading;
use otlp::{Exporter, Histograms, Periodic, Plan, Protocol, Queued, Target, Upstream};

pub(crate) const BOTH: [Protocol; 2] = [Protocol::Http, Protocol::Grpc];

/// A timeout that no successful operation reaches.
pub(crate) const LONG: Duration = Duration::from_secs(20);

pub(crate) fn target(protocol: Protocol, address: SocketAddr, path: &str) -> Target {
    let uri = match protocol {
        Protocol::Http => format!("http://{address}/v1/{path}"),
        Protocol::Grpc => format!("http://{address}/"),
    };
    Target {
        protocol,
        uri: uri.parse().unwrap(),
        headers: Vec::new(),
        gzip: false,
        timeout: Duration::from_secs(10),
        certificate: None,
        client: None,
        proxy: None,
    }
}

pub(crate) fn queued(target: Target) -> Queued {
    let (delay, within) = (Duration::from_millis(10), LONG);
    Queued { target, capacity: 64, batch: 16, delay, within }
}

fn nothing() -> Plan {
    let upstream = Upstream { name: "gpu-1".into(), host: "10.0.0.7".into(), port: Some(8000) };
    let resource = vec![("service.name".to_owned(), "tokenmeter".to_owned())];
    Plan { resource, text_limit: 1024, upstreams: vec![upstream], ..Plan::default() }
}

pub(crate) fn spans(protocol: Protocol, address: SocketAddr) -> Plan {
    Plan { spans: Some(queued(target(protocol, address, "traces"))), ..nothing() }
}

pub(crate) fn logs(protocol: Protocol, address: SocketAddr) -> Plan {
    Plan { logs: Some(queued(target(protocol, address, "logs"))), ..nothing() }
}

pub(crate) fn metrics(protocol: Protocol, address: SocketAddr) -> Plan {
    let target = target(protocol, address, "metrics");
    let every = Duration::from_millis(50);
    let histograms = Histograms::Explicit;
    Plan { metrics: Some(Periodic { target, every, within: LONG, histograms }), ..nothing() }
}

pub(crate) fn empty() -> Reading {
    Reading { at_unix_ns: 2, since_unix_ns: 1, families: Vec::new() }
}

pub(crate) fn start(plan: Plan) -> Exporter {
    otlp::start(plan, Box::new(empty)).unwrap()
}
