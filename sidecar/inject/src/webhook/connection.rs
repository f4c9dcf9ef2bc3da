//! One connection of the API server, or of a probe.

use std::cell::RefCell;
use std::convert::Infallible;
use std::pin::pin;
use std::rc::Rc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsAcceptor;

use super::files::Loaded;
use super::limits::{
    BODY_MAX_BYTES, BODY_MAX_TIME, HANDSHAKE_MAX_TIME, HEAD_MAX_BYTES, HEAD_MAX_TIME, LARGE_BODY_MAX_TIME,
    SMALL_BODY_MAX_BYTES,
};
use super::slots::Slot;
use crate::review::{self, Unanswered};

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
    large: Rc<Semaphore>,
    slot: Slot,
) {
    tokio::select! {
        () = serve_requests(stream, current, phase, &large, &slot) => {}
        () = slot.evicted() => {}
    }
}

async fn serve_requests(
    stream: TcpStream,
    current: Rc<RefCell<Loaded>>,
    phase: watch::Receiver<Phase>,
    large: &Semaphore,
    slot: &Slot,
) {
    let acceptor = TlsAcceptor::from(current.borrow().tls.clone());
    // A peer that fails or is too slow gets no answer.
    let Ok(Ok(stream)) = timeout(HANDSHAKE_MAX_TIME, acceptor.accept(stream)).await else { return };
    // Verified in the handshake, if one was presented.
    let is_verified = stream.get_ref().1.peer_certificates().is_some();
    let seen = phase.clone();
    let service = service_fn(|request| {
        slot.touch();
        let phase = *seen.borrow();
        let current = current.clone();
        async move {
            let may_review = is_verified || !current.borrow().verifies_clients;
            Ok::<_, Infallible>(match (request.method(), may_review) {
                (&Method::POST, true) => answer_review(request, &current, large).await,
                (&Method::POST, false) => plain(StatusCode::FORBIDDEN, NO_CERTIFICATE),
                _ => answer_probe(&request, phase),
            })
        }
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

/// The answer to a review without the client certificate that is required.
const NO_CERTIFICATE: &str = "a review needs the API server's client certificate (--client-ca)\n";

fn answer_probe(request: &Request<Incoming>, phase: Phase) -> Response<Full<Bytes>> {
    match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/livez") => plain(StatusCode::OK, "ok\n"),
        (&Method::GET | &Method::HEAD, "/readyz") if phase == Phase::Ready => plain(StatusCode::OK, "ok\n"),
        (&Method::GET | &Method::HEAD, "/readyz") => plain(StatusCode::SERVICE_UNAVAILABLE, "stopping\n"),
        _ => plain(StatusCode::METHOD_NOT_ALLOWED, "POST an AdmissionReview\n"),
    }
}

async fn answer_review(
    request: Request<Incoming>,
    current: &RefCell<Loaded>,
    large: &Semaphore,
) -> Response<Full<Bytes>> {
    // The permit is held until the review is answered.
    let (body, _permit) = match timeout(BODY_MAX_TIME, read(request.into_body(), large)).await {
        Ok(Ok(Some(read))) => read,
        Ok(Ok(None)) => {
            return plain(
                StatusCode::PAYLOAD_TOO_LARGE,
                "the review is too large, or too slow for its size\n",
            );
        }
        Ok(Err(_)) => return plain(StatusCode::BAD_REQUEST, "the review is incomplete\n"),
        Err(_) => return plain(StatusCode::REQUEST_TIMEOUT, "the review takes too long\n"),
    };
    let config = current.borrow().config.clone();
    match review::answer(body, &config) {
        Ok(answer) => {
            tracing::info!(pod = answer.pod, outcome = answer.outcome, "review");
            let mut response = Response::new(Full::from(answer.review.to_string()));
            let json = HeaderValue::from_static("application/json");
            response.headers_mut().insert(CONTENT_TYPE, json);
            response
        }
        Err(error) => {
            tracing::warn!(%error, "a review has no answer");
            let status = match error {
                Unanswered::NotAReview => StatusCode::BAD_REQUEST,
                Unanswered::TooManyValues => StatusCode::PAYLOAD_TOO_LARGE,
            };
            plain(status, &format!("{error}\n"))
        }
    }
}

/// Reads a body. One that is too large, or too slow for its size, is read to its end and dropped, and the result is
/// `None`: a connection with unread data is reset when it closes, and the answer would be lost.
async fn read(
    mut body: Incoming,
    large: &Semaphore,
) -> Result<Option<(Vec<u8>, Option<SemaphorePermit<'_>>)>, hyper::Error> {
    let mut read = Some((Vec::new(), None));
    let mut deadline = None;
    loop {
        let frame = match deadline.filter(|_| read.is_some()) {
            Some(deadline) => timeout_at(deadline, body.frame()).await,
            None => Ok(body.frame().await),
        };
        let Ok(frame) = frame else {
            // Others may wait for its permit.
            read = None;
            continue;
        };
        let Some(frame) = frame else { return Ok(read) };
        let Ok(data) = frame?.into_data() else { continue };
        read = read.filter(|(read, _)| read.len() + data.len() <= BODY_MAX_BYTES);
        if let Some((read, permit)) = &mut read {
            if permit.is_none() && read.len() + data.len() > SMALL_BODY_MAX_BYTES {
                // Never closed, so a permit comes.
                *permit = large.acquire().await.ok();
                deadline = Some(Instant::now() + LARGE_BODY_MAX_TIME);
                let length =
                    body.size_hint().exact().and_then(|left| usize::try_from(left).ok()).unwrap_or(0);
                read.reserve_exact((data.len() + length).min(BODY_MAX_BYTES - read.len()));
            }
            read.extend_from_slice(&data);
        }
    }
}

fn plain(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text.to_owned()));
    *response.status_mut() = status;
    response
}
