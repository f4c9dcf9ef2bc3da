//! One connection of the API server, or of a probe.

use std::cell::RefCell;
use std::convert::Infallible;
use std::pin::pin;
use std::rc::Rc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::files::Loaded;
use super::limits::{BODY_MAX_BYTES, BODY_MAX_TIME, HANDSHAKE_MAX_TIME, HEAD_MAX_BYTES, HEAD_MAX_TIME};
use super::slots::Slot;
use crate::review;

/// The phase of the webhook's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It serves.
    Ready,
    /// It serves, and its readiness fails.
    Stopping,
    /// Idle connections close.
    Closing,
}

/// Serves one connection until its end or its eviction.
pub(super) async fn serve(
    stream: TcpStream,
    current: Rc<RefCell<Loaded>>,
    phase: watch::Receiver<Phase>,
    slot: Slot,
) {
    tokio::select! {
        () = serve_requests(stream, current, phase, &slot) => {}
        () = slot.evicted() => {}
    }
}

async fn serve_requests(
    stream: TcpStream,
    current: Rc<RefCell<Loaded>>,
    phase: watch::Receiver<Phase>,
    slot: &Slot,
) {
    let acceptor = TlsAcceptor::from(current.borrow().tls.clone());
    // A peer that fails or is too slow gets no answer.
    let Ok(Ok(stream)) = timeout(HANDSHAKE_MAX_TIME, acceptor.accept(stream)).await else { return };
    let seen = phase.clone();
    let service = service_fn(|request| {
        slot.touch();
        let phase = *seen.borrow();
        let current = current.clone();
        async move { Ok::<_, Infallible>(answer(request, &current, phase).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_MAX_TIME).max_buf_size(HEAD_MAX_BYTES);
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut phase = phase;
    let closing = async { drop(phase.wait_for(|phase| *phase == Phase::Closing).await) };
    tokio::select! {
        // An error means that the peer left or was too slow; there is no peer to answer.
        _ = &mut serving => {}
        () = closing => {
            serving.as_mut().graceful_shutdown();
            let _ = serving.await;
        }
    }
}

async fn answer(
    request: Request<Incoming>,
    current: &RefCell<Loaded>,
    phase: Phase,
) -> Response<Full<Bytes>> {
    match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/livez") => plain(StatusCode::OK, "ok\n"),
        (&Method::GET | &Method::HEAD, "/readyz") if phase == Phase::Ready => plain(StatusCode::OK, "ok\n"),
        (&Method::GET | &Method::HEAD, "/readyz") => plain(StatusCode::SERVICE_UNAVAILABLE, "stopping\n"),
        (&Method::POST, _) => answer_review(request, current).await,
        _ => plain(StatusCode::METHOD_NOT_ALLOWED, "POST an AdmissionReview\n"),
    }
}

async fn answer_review(request: Request<Incoming>, current: &RefCell<Loaded>) -> Response<Full<Bytes>> {
    let body = match timeout(BODY_MAX_TIME, read(request.into_body())).await {
        Ok(Ok(Some(body))) => body,
        Ok(Ok(None)) => return plain(StatusCode::PAYLOAD_TOO_LARGE, "the review is too large\n"),
        Ok(Err(_)) => return plain(StatusCode::BAD_REQUEST, "the review is incomplete\n"),
        Err(_) => return plain(StatusCode::REQUEST_TIMEOUT, "the review takes too long\n"),
    };
    let config = current.borrow().config.clone();
    match review::answer(&body, &config) {
        Ok(answer) => {
            tracing::info!(pod = answer.pod, outcome = answer.outcome, "review");
            let mut response = Response::new(Full::from(answer.review.to_string()));
            let json = HeaderValue::from_static("application/json");
            response.headers_mut().insert(CONTENT_TYPE, json);
            response
        }
        Err(error) => plain(StatusCode::BAD_REQUEST, &format!("{error}\n")),
    }
}

/// Reads a body. One that is too large is read to its end and dropped, and the result is `None`: a connection with
/// unread data is reset when it closes, and the answer would be lost.
async fn read(mut body: Incoming) -> Result<Option<Vec<u8>>, hyper::Error> {
    let mut read = Some(Vec::new());
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        read = read.filter(|read| read.len() + data.len() <= BODY_MAX_BYTES);
        if let Some(read) = &mut read {
            read.extend_from_slice(&data);
        }
    }
    Ok(read)
}

fn plain(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text.to_owned()));
    *response.status_mut() = status;
    response
}
