//! Accepting connections and speaking HTTP/1.1 on them.

use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::{Engine, Shape, route};
use crate::socket::{Reset, Socket};

/// Accepts until it is aborted; all connections end with it.
pub(super) async fn accept(listener: TcpListener, engine: Arc<Engine>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < MOST_CONNECTIONS => {
                match accepted {
                    Ok((stream, _)) => {
                        engine.counters.connections.add(1);
                        connections.spawn(serve(stream, Arc::clone(&engine)));
                    }
                    // Out of file descriptors, most likely; some will be closed.
                    Err(_) => tokio::time::sleep(AFTER_FAILURE).await,
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// 16,384 connections: beyond any test here, within a usual limit of file descriptors.
const MOST_CONNECTIONS: usize = 16_384;

/// 10 ms: soon enough for a client that waits to be accepted, and no busy loop.
const AFTER_FAILURE: Duration = Duration::from_millis(10);

async fn serve(stream: TcpStream, engine: Arc<Engine>) {
    // Without it the kernel may hold a token back until the one before it was acknowledged.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let reset = Reset::default();
    let socket = TokioIo::new(Socket::new(stream, reset.clone()));
    let llama = engine.options.shape == Shape::LlamaCpp;
    let service = service_fn(move |request| route::answer(request, Arc::clone(&engine), reset.clone()));
    // An error here is a client that left or a fault that struck: both are counted elsewhere.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        // Recorded: one prints `Server`, without a date; the other `server`, with one.
        .title_case_headers(llama)
        .auto_date_header(!llama)
        .serve_connection(socket, service)
        .await;
}
