//! A faithful collector: both protocols on one port, in plain text or TLS, on tonic's server and
//! the published services. Responds as configured, and stores every accepted request.

#![expect(clippy::unwrap_used, reason = "a panic here fails the test")]

use std::collections::HashMap;
use std::io::Read;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use opentelemetry_proto::tonic::collector::logs::v1::logs_service_server::{LogsService, LogsServiceServer};
use opentelemetry_proto::tonic::collector::logs::v1::*;
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::*;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::*;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;
use tonic::codec::CompressionEncoding;
use tonic::codegen::Service as _;
use tonic::service::Routes;
use tonic::{Code, Status};

pub use opentelemetry_proto::tonic::metrics::v1::{Exemplar, Metric, metric::Data};

/// The collector's response to a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// All items are accepted.
    Taken,
    /// This number of items is rejected.
    Rejected(i64),
    /// Over HTTP: a status and `Retry-After` in seconds.
    Status(u16, Option<u32>),
    /// Over gRPC: a status and the seconds of `google.rpc.RetryInfo`.
    Code(Code, Option<u8>),
    /// A message of this number of bytes.
    Wordy(usize),
}

/// The received requests; over HTTP the path determines the signal.
#[derive(Default)]
pub struct Seen {
    /// Requests with spans.
    pub traces: Vec<ExportTraceServiceRequest>,
    /// Requests with metrics.
    pub metrics: Vec<ExportMetricsServiceRequest>,
    /// Requests with log records.
    pub logs: Vec<ExportLogsServiceRequest>,
    /// Path, header fields and time of every request.
    pub heads: Vec<(String, HashMap<String, String>, Instant)>,
    /// The body of every accepted request, uncompressed: over HTTP the received bytes, over
    /// gRPC the encoded message.
    pub bodies: Vec<Vec<u8>>,
    /// The number of connections.
    pub connections: usize,
}

impl Seen {
    /// Returns all spans.
    pub fn spans(&self) -> Vec<Span> {
        let scopes = self.traces.iter().flat_map(|r| &r.resource_spans).flat_map(|r| &r.scope_spans);
        scopes.flat_map(|scope| scope.spans.clone()).collect()
    }

    /// Returns all log records.
    pub fn log_records(&self) -> Vec<LogRecord> {
        let scopes = self.logs.iter().flat_map(|r| &r.resource_logs).flat_map(|r| &r.scope_logs);
        scopes.flat_map(|scope| scope.log_records.clone()).collect()
    }

    /// Returns all metrics, repetitions included.
    pub fn metrics(&self) -> Vec<Metric> {
        let scopes = self.metrics.iter().flat_map(|r| &r.resource_metrics).flat_map(|r| &r.scope_metrics);
        scopes.flat_map(|scope| scope.metrics.clone()).collect()
    }
}

/// Returns an attribute as text; `None` if absent.
///
/// # Panics
///
/// The attribute is present twice, or of a kind that is never sent.
pub fn said(attributes: &[KeyValue], key: &str) -> Option<String> {
    let mut found = attributes.iter().filter(|attribute| attribute.key == key);
    let value = found.next()?.value.as_ref().map(text);
    assert!(found.next().is_none(), "{key} is there twice");
    value
}

fn text(value: &AnyValue) -> String {
    match value.value.as_ref().unwrap() {
        Value::StringValue(text) => text.clone(),
        Value::BoolValue(truth) => truth.to_string(),
        Value::IntValue(number) => number.to_string(),
        Value::DoubleValue(number) => number.to_string(),
        Value::ArrayValue(list) => list.values.iter().map(text).collect::<Vec<_>>().join(" "),
        other => panic!("{other:?} is never sent"),
    }
}

type Answers = dyn Fn(usize) -> Answer + Send + Sync;

struct Inner {
    seen: Mutex<Seen>,
    changed: Condvar,
    answers: Box<Answers>,
}

impl Inner {
    /// Stores a request that is accepted, also in part.
    fn receive(&self, head: (String, HashMap<String, String>), keep: impl FnOnce(&mut Seen)) -> Answer {
        let mut seen = self.seen.lock().unwrap();
        seen.heads.push((head.0, head.1, Instant::now()));
        let answer = (self.answers)(seen.heads.len() - 1);
        if matches!(answer, Answer::Taken | Answer::Rejected(_) | Answer::Wordy(_)) {
            keep(&mut seen);
        }
        self.changed.notify_all();
        answer
    }
}

/// A collector on a port of its own; dropping it ends its thread.
pub struct Collector {
    /// Its address.
    pub address: SocketAddr,
    inner: Arc<Inner>,
    _stop: oneshot::Sender<()>,
}

impl Collector {
    /// Returns a collector that accepts everything.
    #[expect(clippy::new_without_default, reason = "nothing about a port and a thread is a default")]
    pub fn new() -> Self {
        Self::start(None, |_| Answer::Taken)
    }

    /// Returns a collector whose responses depend on the number of earlier requests.
    pub fn answering(answers: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        Self::start(None, answers)
    }

    /// Starts one, with TLS if there is a configuration.
    ///
    /// # Panics
    ///
    /// No port is available.
    pub fn start(
        tls: Option<ServerConfig>,
        answers: impl Fn(usize) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let (seen, changed) = (Mutex::default(), Condvar::new());
        let inner = Arc::new(Inner { seen, changed, answers: Box::new(answers) });
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let shared = Arc::clone(&inner);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                tokio::select! {
                    () = serve(listener, tls.map(Arc::new), shared) => {}
                    _ = stopped => {}
                }
            });
        });
        Self { address, inner, _stop: stop }
    }

    /// Returns the requests so far.
    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.inner.seen.lock().unwrap()
    }

    /// Waits for enough requests and returns them.
    ///
    /// # Panics
    ///
    /// There are not enough within twenty seconds.
    pub fn once(&self, enough: impl Fn(&Seen) -> bool) -> MutexGuard<'_, Seen> {
        let (seen, late) = self
            .inner
            .changed
            .wait_timeout_while(self.seen(), Duration::from_secs(20), |seen| !enough(seen))
            .unwrap();
        assert!(!late.timed_out(), "only {} requests came", seen.heads.len());
        seen
    }
}

async fn serve(listener: std::net::TcpListener, tls: Option<Arc<ServerConfig>>, inner: Arc<Inner>) {
    listener.set_nonblocking(true).unwrap();
    let listener = TcpListener::from_std(listener).unwrap();
    loop {
        let (tcp, _) = listener.accept().await.unwrap();
        inner.seen.lock().unwrap().connections += 1;
        let (tls, inner) = (tls.clone(), Arc::clone(&inner));
        tokio::spawn(async move {
            // A failed handshake is dropped; some tests depend on it.
            match tls {
                None => connection(tcp, inner).await,
                Some(tls) => {
                    if let Ok(stream) = TlsAcceptor::from(tls).accept(tcp).await {
                        connection(stream, inner).await;
                    }
                }
            }
        });
    }
}

async fn connection<S>(stream: S, inner: Arc<Inner>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    let gzip = CompressionEncoding::Gzip;
    let service = ServiceImpl(Arc::clone(&inner));
    let routes = Routes::new(TraceServiceServer::new(service.clone()).accept_compressed(gzip))
        .add_service(MetricsServiceServer::new(service.clone()).accept_compressed(gzip))
        .add_service(LogsServiceServer::new(service).accept_compressed(gzip))
        .prepare();
    let service = service_fn(move |request: Request<Incoming>| {
        let (mut routes, inner) = (routes.clone(), Arc::clone(&inner));
        async move {
            let kind = request.headers().get("content-type");
            if kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc")) {
                return routes.call(request).await;
            }
            Ok(handle_http(request, &inner).await)
        }
    });
    // An error is a client that left.
    let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}

fn fields<'a>(all: impl Iterator<Item = (&'a str, &'a [u8])>) -> HashMap<String, String> {
    all.map(|(name, value)| (name.to_owned(), String::from_utf8_lossy(value).into_owned())).collect()
}

async fn handle_http(request: Request<Incoming>, inner: &Inner) -> Response<tonic::body::Body> {
    let (head, body) = request.into_parts();
    let path = head.uri.path_and_query().unwrap().to_string();
    let headers = fields(head.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())));
    let mut bytes = body.collect().await.map(|body| body.to_bytes().to_vec()).unwrap_or_default();
    if headers.get("content-encoding").is_some_and(|coding| coding == "gzip") {
        let mut plain = Vec::new();
        GzDecoder::new(&*bytes).read_to_end(&mut plain).unwrap();
        bytes = plain;
    }
    let signal = path.split('?').next().unwrap().rsplit('/').next().unwrap().to_owned();
    let answer = inner.receive((path, headers), |seen| {
        match &*signal {
            "traces" => seen.traces.push(Message::decode(&*bytes).unwrap()),
            "metrics" => seen.metrics.push(Message::decode(&*bytes).unwrap()),
            "logs" => seen.logs.push(Message::decode(&*bytes).unwrap()),
            other => panic!("no signal is sent to {other}"),
        }
        seen.bodies.push(bytes);
    });
    let mut response = Response::builder().header("content-type", "application/x-protobuf");
    let body = match answer {
        // The replies of the three services have the same encoding.
        Answer::Rejected(rejected_spans) => partial(rejected_spans, 0).encode_to_vec(),
        Answer::Wordy(bytes) => partial(0, bytes).encode_to_vec(),
        Answer::Status(status, wait) => {
            response = response.status(status);
            if let Some(seconds) = wait {
                response = response.header("retry-after", seconds);
            }
            Vec::new()
        }
        Answer::Taken | Answer::Code(..) => Vec::new(),
    };
    response.body(tonic::body::Body::new(Full::from(body))).unwrap()
}

fn partial(rejected_spans: i64, words: usize) -> ExportTraceServiceResponse {
    let error_message = "w".repeat(words);
    ExportTraceServiceResponse {
        partial_success: Some(ExportTracePartialSuccess { rejected_spans, error_message }),
    }
}

/// Encodes a `google.rpc.Status` with one detail.
fn retry_info(seconds: u8) -> Vec<u8> {
    assert!((1..128).contains(&seconds), "one byte holds it");
    let name = b"type.googleapis.com/google.rpc.RetryInfo";
    let info = [0x0a, 2, 0x08, seconds];
    let mut any = vec![0x0a, name.len() as u8];
    any.extend_from_slice(name);
    any.extend_from_slice(&[0x12, info.len() as u8]);
    any.extend_from_slice(&info);
    [vec![0x1a, any.len() as u8], any].concat()
}

/// The published services.
#[derive(Clone)]
struct ServiceImpl(Arc<Inner>);

impl ServiceImpl {
    fn receive<T: Message>(
        &self,
        path: &str,
        request: tonic::Request<T>,
        keep: impl FnOnce(&mut Seen, T),
    ) -> Result<ExportTraceServiceResponse, Status> {
        let metadata = request.metadata().clone().into_headers();
        let headers = fields(metadata.iter().map(|(name, value)| (name.as_str(), value.as_bytes())));
        let message = request.into_inner();
        let keep = |seen: &mut Seen| {
            seen.bodies.push(message.encode_to_vec());
            keep(seen, message);
        };
        match self.0.receive((path.to_owned(), headers), keep) {
            Answer::Taken => Ok(ExportTraceServiceResponse::default()),
            Answer::Rejected(items) => Ok(partial(items, 0)),
            Answer::Wordy(bytes) => Ok(partial(0, bytes)),
            Answer::Code(code, None) => Err(Status::new(code, "told to")),
            Answer::Code(code, Some(seconds)) => {
                Err(Status::with_details(code, "told to", retry_info(seconds).into()))
            }
            Answer::Status(..) => Err(Status::internal("a status is for HTTP")),
        }
    }
}

#[tonic::async_trait]
impl TraceService for ServiceImpl {
    async fn export(
        &self,
        request: tonic::Request<ExportTraceServiceRequest>,
    ) -> Result<tonic::Response<ExportTraceServiceResponse>, Status> {
        self.receive("traces", request, |seen, message| seen.traces.push(message)).map(tonic::Response::new)
    }
}

#[tonic::async_trait]
impl MetricsService for ServiceImpl {
    async fn export(
        &self,
        request: tonic::Request<ExportMetricsServiceRequest>,
    ) -> Result<tonic::Response<ExportMetricsServiceResponse>, Status> {
        let reply = self.receive("metrics", request, |seen, message| seen.metrics.push(message))?;
        Ok(tonic::Response::new(Message::decode(&*reply.encode_to_vec()).unwrap()))
    }
}

#[tonic::async_trait]
impl LogsService for ServiceImpl {
    async fn export(
        &self,
        request: tonic::Request<ExportLogsServiceRequest>,
    ) -> Result<tonic::Response<ExportLogsServiceResponse>, Status> {
        let reply = self.receive("logs", request, |seen, message| seen.logs.push(message))?;
        Ok(tonic::Response::new(Message::decode(&*reply.encode_to_vec()).unwrap()))
    }
}
