//! The twin: `opentelemetry-otlp`'s exporters receive the same exchanges and numbers through the SDK's API and send the
//! same requests. Whole requests are compared, so every difference is listed in this folder with its reason.
//!
//! The order of attributes may always differ, because they are a set.

mod logs;
mod metrics;
mod spans;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_otlp::{ExporterBuildError, LogExporter, MetricExporter, SpanExporter};
use opentelemetry_otlp::{Protocol as Official, WithExportConfig};
use opentelemetry_proto::tonic::common::v1::KeyValue as Sent;
use opentelemetry_proto::tonic::resource::v1::Resource as SentResource;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::LogBatch;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::{Temporality, exporter::PushMetricExporter};
use opentelemetry_sdk::trace::SpanData;
use otlp::{Plan, Protocol};
use tokio::runtime::Runtime;

use crate::collector::Collector;

/// An exporter and its runtime, because the SDK's threads have none.
#[derive(Debug)]
struct Twin<E> {
    exporter: E,
    runtime: Arc<Runtime>,
}

impl<E> Twin<E> {
    fn new(make: impl FnOnce() -> Result<E, ExporterBuildError>) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let exporter = {
            let _inside = runtime.enter();
            make().unwrap()
        };
        Self { exporter, runtime: Arc::new(runtime) }
    }
}

/// Returns the endpoint; over HTTP an endpoint set in code is used unchanged.
macro_rules! twin {
    ($exporter:ident, $protocol:expr, $collector:expr, $path:literal) => {
        Twin::new(|| match $protocol {
            Protocol::Http => $exporter::builder()
                .with_http()
                .with_protocol(Official::HttpBinary)
                .with_endpoint(format!("http://{}/{}", $collector.address, $path))
                .build(),
            Protocol::Grpc => $exporter::builder()
                .with_tonic()
                .with_endpoint(format!("http://{}", $collector.address))
                .build(),
        })
    };
}

impl Twin<SpanExporter> {
    fn spans(protocol: Protocol, collector: &Collector) -> Self {
        twin!(SpanExporter, protocol, collector, "v1/traces")
    }

    fn send(mut self, spans: Vec<SpanData>) {
        use opentelemetry_sdk::trace::SpanExporter as _;
        self.exporter.set_resource(&resource());
        self.runtime.block_on(self.exporter.export(spans)).unwrap();
    }
}

impl Twin<MetricExporter> {
    fn metrics(protocol: Protocol, collector: &Collector) -> Self {
        twin!(MetricExporter, protocol, collector, "v1/metrics")
    }
}

impl Twin<LogExporter> {
    fn logs(protocol: Protocol, collector: &Collector) -> Self {
        twin!(LogExporter, protocol, collector, "v1/logs")
    }
}

impl PushMetricExporter for Twin<MetricExporter> {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        self.runtime.block_on(self.exporter.export(metrics))
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn temporality(&self) -> Temporality {
        self.exporter.temporality()
    }
}

impl opentelemetry_sdk::logs::LogExporter for Twin<LogExporter> {
    async fn export(&self, batch: LogBatch<'_>) -> OTelSdkResult {
        self.runtime.block_on(self.exporter.export(batch))
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

/// Adds a numeric attribute to the resource.
fn plan(plan: Plan) -> Plan {
    let text = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    Plan { resource: vec![text("service.name", "tokenmeter"), text("process.pid", "4711")], ..plan }
}

fn resource() -> Resource {
    let attributes = [KeyValue::new("service.name", "tokenmeter"), KeyValue::new("process.pid", 4711)];
    Resource::builder_empty().with_attributes(attributes).build()
}

fn scope() -> InstrumentationScope {
    InstrumentationScope::builder("tokenmeter").with_version(env!("CARGO_PKG_VERSION")).build()
}

fn time(unix_ns: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_nanos(unix_ns)
}

fn text(text: impl Into<String>) -> Value {
    Value::String(text.into().into())
}

fn texts(texts: &[&'static str]) -> Value {
    Value::Array(texts.iter().map(|&text| text.into()).collect::<Vec<opentelemetry::StringValue>>().into())
}

/// Asserts equality and prints only the lines that differ, because requests are long.
fn assert_same<T: Debug + PartialEq>(ours: &T, theirs: &T, what: &str) {
    if ours != theirs {
        let (one, other) = (format!("{ours:#?}"), format!("{theirs:#?}"));
        let lines = one.lines().zip(other.lines()).enumerate().filter(|(_, (one, other))| one != other);
        let lines: Vec<_> = lines.take(20).collect();
        panic!(
            "{what}: tokenmeter's and the official request have {} and {} bytes, {lines:#?}",
            one.len(),
            other.len()
        );
    }
}

fn sort(attributes: &mut [Sent]) {
    attributes.sort_by(|one, other| one.key.cmp(&other.key));
}

fn sort_resource(resource: &mut Option<SentResource>) {
    sort(&mut resource.as_mut().unwrap().attributes);
}
