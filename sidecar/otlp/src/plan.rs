//! What is sent where, as plain values. Made by [`mod@crate::settings`] or by hand; the law: everything
//! that waits, grows or repeats has its bound here.

use std::path::PathBuf;
use std::time::Duration;

use hyper::Uri;
use hyper::header::{HeaderName, HeaderValue};
use metrics::Upstream;
use scan::Dialect;

/// What is sent, and where.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// What describes this process: attribute names and values.
    pub resource: Vec<(String, String)>,
    /// Longest text of an attribute in bytes; the rest is cut off.
    pub text_limit: usize,
    /// Metrics, if they are sent.
    pub metrics: Option<Periodic>,
    /// Spans, if they are sent.
    pub spans: Option<Queued>,
    /// Log records, if they are sent.
    pub logs: Option<Queued>,
    /// The event name of log records.
    pub event: EventName,
    /// Where the upstreams are, for the attributes `server.address` and `server.port` of spans.
    pub upstreams: Vec<Upstream>,
}

/// The event name of the log records of inferences; those of embeddings and rankings have no other than ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventName {
    /// `tokenmeter.exchange`.
    #[default]
    Exchange,
    /// The convention's `gen_ai.client.inference.operation.details`.
    OperationDetails,
}

impl EventName {
    /// The name for an exchange of this dialect.
    pub(crate) fn of(self, dialect: Dialect) -> &'static str {
        match self {
            Self::OperationDetails if dialect.generates() => "gen_ai.client.inference.operation.details",
            _ => "tokenmeter.exchange",
        }
    }
}

/// A signal that is read again and again.
#[derive(Clone, Debug)]
pub struct Periodic {
    /// Where to.
    pub target: Target,
    /// From the start of one export to the start of the next.
    pub every: Duration,
    /// Longest time for one export, all its attempts and waits included.
    pub within: Duration,
    /// How histograms are written.
    pub histograms: Histograms,
}

/// A signal that waits in a queue.
#[derive(Clone, Debug)]
pub struct Queued {
    /// Where to.
    pub target: Target,
    /// Most items that wait or are on their way.
    pub capacity: usize,
    /// Most items in one request.
    pub batch: usize,
    /// Longest time that an item waits for others.
    pub delay: Duration,
    /// Longest time for one batch, all its attempts and waits included.
    pub within: Duration,
}

/// How histograms are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Histograms {
    /// With the edges of the table.
    #[default]
    Explicit,
    /// With exponential buckets, where the metrics keep them.
    Exponential,
}

/// A collector's address for one signal, and how it is spoken to.
#[derive(Clone, Debug)]
pub struct Target {
    /// What is spoken.
    pub protocol: Protocol,
    /// `http` or `https`; over HTTP with the signal's whole path.
    pub uri: Uri,
    /// Sent with every request. Their values are secrets and are never printed.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Whether requests are compressed.
    pub gzip: bool,
    /// Longest time for one attempt, the connection included.
    pub timeout: Duration,
    /// Certificates (PEM) of those who may vouch for the collector, instead of the system's.
    pub certificate: Option<PathBuf>,
    /// Our own certificate, if the collector wants one.
    pub client: Option<ClientCertificate>,
}

impl Target {
    /// Scheme, host and port, for messages: a path may hold a secret.
    pub fn origin(&self) -> String {
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        format!("{}://{authority}", self.uri.scheme_str().unwrap_or_default())
    }
}

/// Files in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The certificate and what leads from it to its root.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// What is spoken to the collector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Protobuf in HTTP/1.1 requests.
    #[default]
    Http,
    /// gRPC over HTTP/2.
    Grpc,
}

/// What there is to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// All samples, again and again. Items are data points.
    Metric,
    /// The spans of exchanges that are traced.
    Span,
    /// One record for each exchange.
    Log,
}

impl Signal {
    /// Every signal.
    pub const ALL: [Self; 3] = [Self::Metric, Self::Span, Self::Log];

    /// The label value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Metric => "metric",
            Self::Span => "span",
            Self::Log => "log",
        }
    }

    /// Its path over HTTP, below the base.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Metric => "v1/metrics",
            Self::Span => "v1/traces",
            Self::Log => "v1/logs",
        }
    }

    /// Its method over gRPC.
    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::Metric => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
            Self::Span => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
            Self::Log => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
        }
    }

    /// What its variables have in their names.
    pub fn word(self) -> &'static str {
        match self {
            Self::Metric => "METRICS",
            Self::Span => "TRACES",
            Self::Log => "LOGS",
        }
    }
}
