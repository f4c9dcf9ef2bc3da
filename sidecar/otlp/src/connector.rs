//! Connections to a collector, with or without TLS, and through the proxy of the environment.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use connect::{Address, ClientFiles, ConnectError, Offer, Stream, Target, Tls, TlsError, TlsFiles};
use hyper::Uri;
use hyper_util::rt::TokioIo;
use tonic::codegen::Service;

use crate::plan::{self, Protocol};
use crate::settings::variables::CERTIFICATE;

/// A stream as hyper's I/O type.
pub(crate) type Io = TokioIo<Stream>;

/// A collector, and how it is reached.
#[derive(Clone)]
pub(crate) struct Connector {
    target: Target,
    offer: Offer,
    timeout: Duration,
}

impl Connector {
    /// Reads the files of TLS, if the collector's URL is `https`.
    pub(crate) fn new(plan: &plan::Target) -> io::Result<Self> {
        let is_secure = plan.uri.scheme_str() == Some("https");
        let host = plan.uri.host().unwrap_or_default();
        let host = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        let address = Address::host(host, plan.uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 }));
        let tls =
            if is_secure { Some(Tls::read(&files(plan)).map_err(|error| failed(&error))?) } else { None };
        let offer = match plan.protocol {
            Protocol::Http => Offer::Http1,
            Protocol::Grpc => Offer::Http2,
        };
        let proxy = plan.proxy.clone().filter(|_| is_secure);
        Ok(Self { target: Target::through(address, tls, proxy), offer, timeout: plan.timeout })
    }

    pub(crate) async fn connect(self) -> Result<Io, ConnectError> {
        self.target.connect(self.offer, self.timeout).await.map(TokioIo::new)
    }
}

fn files(plan: &plan::Target) -> TlsFiles {
    let client = plan.client.as_ref();
    let client =
        client.map(|client| ClientFiles { cert: client.certificate.clone(), key: client.key.clone() });
    TlsFiles { ca: plan.certificate.clone(), client, ..TlsFiles::default() }
}

fn failed(error: &TlsError) -> io::Error {
    io::Error::other(match error {
        TlsError::NoSystemRoots => {
            format!("{error}: install ca-certificates, or set {} to a file", CERTIFICATE.general)
        }
        _ => error.to_string(),
    })
}

/// The interface for tonic, which passes the configured address.
impl Service<Uri> for Connector {
    type Response = Io;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Io, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        Box::pin(self.clone().connect())
    }
}
