//! The export plan as plain values, made by [`mod@crate::settings`] or by the caller. Invariant: it bounds every wait,
//! queue and retry.

use std::path::PathBuf;
use std::time::Duration;

use connect::HttpProxy;
use hyper::Uri;
use hyper::header::{HeaderName, HeaderValue};
use metrics::Upstream;
use scan::Dialect;

/// The exported signals and their targets.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The resource of this process: attribute names and values.
    pub resource: Vec<(String, String)>,
    /// Maximum bytes of an attribute's text; longer ones are truncated.
    pub text_limit: usize,
    /// The export of metrics, if enabled.
    pub metrics: Option<Periodic>,
    /// The export of spans, if enabled.
    pub spans: Option<Queued>,
    /// The export of log records, if enabled.
    pub logs: Option<Queued>,
    /// The event name of log records.
    pub event: EventName,
    /// The extent of log records.
    pub detail: Detail,
    /// The addresses of the upstreams, for the attributes `server.address` and `server.port` of spans.
    pub upstreams: Vec<Upstream>,
}

/// The event name of the log records of inferences; those of embeddings and rankings are always
/// `tokenmeter.exchange`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventName {
    /// `tokenmeter.exchange`.
    #[default]
    Exchange,
    /// The convention's `gen_ai.client.inference.operation.details`.
    OperationDetails,
}

impl EventName {
    /// Returns the name for an exchange of this dialect.
    pub(crate) fn of(self, dialect: Dialect) -> &'static str {
        match self {
            Self::OperationDetails if dialect.generates() => "gen_ai.client.inference.operation.details",
            _ => "tokenmeter.exchange",
        }
    }
}

/// The extent of log records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// The values that users ask for: tokens, times, tenant, cost.
    #[default]
    Standard,
    /// Also the sums and buckets from which tokenmeter makes its histograms and shares.
    Full,
}

/// A signal that is read periodically.
#[derive(Clone, Debug)]
pub struct Periodic {
    /// The target.
    pub target: Target,
    /// Time from the start of one export to the start of the next.
    pub every: Duration,
    /// Maximum time of one export, all attempts and waits included.
    pub within: Duration,
    /// The encoding of histograms.
    pub histograms: Histograms,
}

/// A signal that is queued.
#[derive(Clone, Debug)]
pub struct Queued {
    /// The target.
    pub target: Target,
    /// Maximum number of items queued or in flight.
    pub capacity: usize,
    /// Maximum number of items in one request.
    pub batch: usize,
    /// Maximum time that an item waits for a full batch.
    pub delay: Duration,
    /// Maximum time for one batch, all attempts and waits included.
    pub within: Duration,
}

/// The encoding of histograms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Histograms {
    /// Explicit buckets with the edges of the table.
    #[default]
    Explicit,
    /// Exponential buckets, for histograms with native buckets.
    Exponential,
}

/// A collector's address for one signal, and the transport.
#[derive(Clone, Debug)]
pub struct Target {
    /// The protocol.
    pub protocol: Protocol,
    /// `http` or `https`; over HTTP with the full path of the signal.
    pub uri: Uri,
    /// Header fields of every request. Their values are secrets and are never printed.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// True if requests are compressed.
    pub gzip: bool,
    /// Maximum time of one attempt, the connection included.
    pub timeout: Duration,
    /// Trusted root certificates (PEM), instead of the system's.
    pub certificate: Option<PathBuf>,
    /// The client certificate, if the collector requires one.
    pub client: Option<ClientCertificate>,
    /// The proxy on the way to an `https` collector.
    pub proxy: Option<HttpProxy>,
}

impl Target {
    /// Returns scheme, host and port for messages; a path may contain a secret.
    pub fn origin(&self) -> String {
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        format!("{}://{authority}", self.uri.scheme_str().unwrap_or_default())
    }
}

/// The files of a client certificate, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The certificate chain.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The protocol to the collector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Protobuf in HTTP/1.1 requests.
    #[default]
    Http,
    /// gRPC over HTTP/2.
    Grpc,
}

meter::listed_enum! {
    /// A signal of OpenTelemetry.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Signal {
        /// All samples, periodically. Items are data points.
        Metric = "metric",
        /// The spans of sampled exchanges.
        Span = "span",
        /// One record for each exchange.
        Log = "log",
    }
    /// Returns the label value.
    pub fn name(self);
}

impl Signal {
    /// Returns its path over HTTP, relative to the base URL.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Metric => "v1/metrics",
            Self::Span => "v1/traces",
            Self::Log => "v1/logs",
        }
    }

    /// Returns its method over gRPC.
    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::Metric => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
            Self::Span => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
            Self::Log => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
        }
    }

    /// Returns its word in the names of variables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Metric => "METRICS",
            Self::Span => "TRACES",
            Self::Log => "LOGS",
        }
    }
}
