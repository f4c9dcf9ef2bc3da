//! The real binary with real stores: a Prometheus that scrapes it, and a VictoriaMetrics to which it exports by OTLP.

mod card;
mod daemon;
mod exposition;
#[expect(dead_code, reason = "what only the tests of rules and dashboards ask")]
mod expressions;
mod http;
mod programs;
mod prometheus;
mod repository;
mod traffic;
mod victoria;

#[path = "../process/meter_page.rs"]
mod meter_page;
#[path = "../process/proxy.rs"]
#[expect(dead_code, reason = "what only the tests of the process ask of the proxy")]
mod proxy;
#[path = "../process/tls_sides.rs"]
#[expect(dead_code, reason = "what only the tests of the process ask of it")]
mod tls_sides;
