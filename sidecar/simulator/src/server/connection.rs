//! Accepts connections and serves HTTP/1.1 on them.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::Engine;
use crate::shape::Shape;

/// Accepts until it is aborted, which drops all connections.
pub(super) async fn accept<S, F>(
    listener: TcpListener,
    engine: Arc<Engine<S>>,
    serve: impl Fn(TcpStream, Arc<Engine<S>>) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                match accepted {
                    Ok((stream, _)) => {
                        engine.counters.connections.add(1);
                        connections.spawn(serve(stream, Arc::clone(&engine)));
                    }
                    // Most likely out of file descriptors; others will be closed.
                    Err(_) => tokio::time::sleep(ACCEPT_RETRY_DELAY).await,
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Maximum connections: more than any test needs, within a usual limit of file descriptors.
const MAX_CONNECTIONS: usize = 16_384;

/// The delay after a failed accept, which prevents a busy loop.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(10);

/// Serves one connection to its end.
pub(super) async fn serve<S: Shape>(stream: TcpStream, engine: Arc<Engine<S>>) {
    // Without it the kernel may delay a token until the previous one is acknowledged.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let service = service_fn(|request| engine.respond(request));
    // An error is a client that left.
    let _ =
        http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service).await;
}
