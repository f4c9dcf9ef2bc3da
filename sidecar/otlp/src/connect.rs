//! Connections to a collector, with or without TLS. They are direct: proxies in the environment are ignored.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::Uri;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::codegen::Service;

/// A bidirectional byte stream.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A stream as hyper's I/O type.
pub(crate) type Io = TokioIo<Box<dyn Stream>>;

/// The address of a collector, and its TLS configuration.
#[derive(Clone)]
pub(crate) struct Connector {
    host: Arc<str>,
    port: u16,
    tls: Option<Arc<ClientConfig>>,
}

impl Connector {
    pub(crate) fn new(uri: &Uri, tls: Option<Arc<ClientConfig>>) -> Self {
        let host = uri.host().unwrap_or_default();
        let host = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host).into();
        let port = uri.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 });
        Self { host, port, tls }
    }

    pub(crate) async fn connect(self) -> io::Result<Io> {
        let tcp = TcpStream::connect((&*self.host, self.port)).await?;
        tcp.set_nodelay(true)?;
        let stream: Box<dyn Stream> = match self.tls {
            None => Box::new(tcp),
            Some(tls) => {
                let name = ServerName::try_from(self.host.to_string()).map_err(io::Error::other)?;
                Box::new(TlsConnector::from(tls).connect(name, tcp).await?)
            }
        };
        Ok(TokioIo::new(stream))
    }
}

/// The interface for tonic, which passes the configured address.
impl Service<Uri> for Connector {
    type Response = Io;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Io>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        Box::pin(self.clone().connect())
    }
}
