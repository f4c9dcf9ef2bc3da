//! Clients that use HTTP/2 without TLS, with prior knowledge.

use std::net::SocketAddr;

use bytes::Bytes;
use hyper::body::Body;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use super::DEADLINE;

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
    let socket = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let mut client = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    let (sender, connection) = client.initial_stream_window_size(window).handshake(socket).await.unwrap();
    tokio::spawn(connection);
    sender
}
