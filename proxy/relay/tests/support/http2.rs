//! Clients that use HTTP/2: with prior knowledge, or agreed within TLS with a proxy that has it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use hyper::body::Body;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{DEADLINE, tls};

/// Runs a client to its end.
pub(crate) fn run(client: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::time::timeout(DEADLINE, client).await.unwrap();
    });
}

pub(crate) async fn connect<B>(address: SocketAddr) -> SendRequest<B>
where
    B: Body<Data = Bytes, Error = std::convert::Infallible> + Send + Unpin + 'static,
{
    // hyper's own window.
    connect_with_window(address, 2 << 20).await
}

/// A client with a window of this many bytes for each answer.
pub(crate) async fn connect_with_window<B>(address: SocketAddr, window: u32) -> SendRequest<B>
where
    B: Body<Data = Bytes, Error = std::convert::Infallible> + Send + Unpin + 'static,
{
    let socket = TcpStream::connect(address).await.unwrap();
    start(socket, window).await
}

/// Starts HTTP/2 on a connected socket.
pub(crate) async fn start<B>(socket: TcpStream, window: u32) -> SendRequest<B>
where
    B: Body<Data = Bytes, Error = std::convert::Infallible> + Send + Unpin + 'static,
{
    start_with_task(socket, window).await.0
}

/// As [`start`]; with the task of the connection, which ends with it.
pub(crate) async fn start_with_task<B>(socket: TcpStream, window: u32) -> (SendRequest<B>, JoinHandle<()>)
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: std::error::Error + Send + Sync,
{
    if !tls::is_expected_at(socket.peer_addr().unwrap()) {
        return handshake(socket, window).await;
    }
    handshake(agree(socket, tls::client(&["h2"])).await.unwrap(), window).await
}

/// A client of a proxy with TLS, with this configuration; it agrees on HTTP/2.
pub(crate) async fn connect_with_tls<B>(
    address: SocketAddr,
    config: Arc<ClientConfig>,
) -> io::Result<SendRequest<B>>
where
    B: Body<Data = Bytes, Error = std::convert::Infallible> + Send + Unpin + 'static,
{
    let mut socket = agree(TcpStream::connect(address).await?, config).await?;
    // With TLS 1.3, a refused certificate shows after the client's handshake.
    socket.flush().await?;
    Ok(handshake(socket, 2 << 20).await.0)
}

async fn agree(socket: TcpStream, config: Arc<ClientConfig>) -> io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from(tls::NAME).unwrap();
    let socket = TlsConnector::from(config).connect(name, socket).await?;
    assert_eq!(socket.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    Ok(socket)
}

async fn handshake<B>(
    socket: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    window: u32,
) -> (SendRequest<B>, JoinHandle<()>)
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: std::error::Error + Send + Sync,
{
    let mut client = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    client.initial_stream_window_size(window);
    let (sender, connection) = client.handshake(TokioIo::new(socket)).await.unwrap();
    let task = tokio::spawn(async move { drop(connection.await) });
    (sender, task)
}
