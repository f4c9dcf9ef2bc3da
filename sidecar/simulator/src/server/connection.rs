//! Accepts connections and serves HTTP/1.1 on them.

use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::{Engine, Shape, route};
use crate::socket::{Reset, Socket};

/// Accepts until it is aborted, which drops all connections.
pub(super) async fn accept(listener: TcpListener, engine: Arc<Engine>) {
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

async fn serve(stream: TcpStream, engine: Arc<Engine>) {
    // Without it the kernel may delay a token until the previous one is acknowledged.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let reset = Reset::default();
    let socket = TokioIo::new(Socket::new(stream, reset.clone()));
    let llama = engine.options.shape == Shape::LlamaCpp;
    let service = service_fn(move |request| route::answer(request, Arc::clone(&engine), reset.clone()));
    // An error is a client that left or a fault; both are counted elsewhere.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        // As recorded: llama.cpp sends `Server` without a date, vLLM `server` with one.
        .title_case_headers(llama)
        .auto_date_header(!llama)
        .serve_connection(socket, service)
        .await;
}
