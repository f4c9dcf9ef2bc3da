//! One request on a shared HTTP/2 connection, whose body is read from the client by what waits for the response.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::{HeaderMap, Method, Request, Response, StatusCode};

use super::body::Http2Body;
use super::head;
use super::upload::{Upload, is_over};
use super::waiting::{Heads, Place, Waiting};
use crate::engine::{SendError, SendFailure, UpstreamBody};

/// Receives the interim responses of a request; an extension of the request.
#[derive(Clone)]
pub(crate) struct OnInterim(pub(crate) Arc<Report>);

type Report = dyn Fn(StatusCode, &HeaderMap) + Send + Sync;

/// The place of one request on a connection, then that request.
pub(crate) struct Http2Stream<B> {
    place: Place,
    upload: Option<Rc<RefCell<Upload<B>>>>,
}

impl<B: UpstreamBody> Http2Stream<B> {
    /// A place without a request.
    pub(crate) fn new(place: Place) -> Self {
        Self { place, upload: None }
    }

    /// Queues the head of a request and returns what waits for its response. [`drive`](Self::drive) sends the body.
    pub(crate) fn send(&mut self, request: Request<B>) -> Http2Sending<B> {
        let (mut parts, body) = request.into_parts();
        let interim = parts.extensions.remove::<OnInterim>();
        let (is_empty, is_head) = (is_over(&parts, &body), parts.method == Method::HEAD);
        let Ok(head) = head::request(&parts) else {
            return Http2Sending::Unsent(Some(SendError { unsent: None, cause: SendFailure::Invalid }));
        };
        let Some((waiting, out)) = self.place.send(head, is_empty) else {
            let unsent = Some(Request::from_parts(parts, body));
            return Http2Sending::Unsent(Some(SendError { unsent, cause: SendFailure::Closed }));
        };
        let upload = Rc::new(RefCell::new(Upload::new(parts, body, out)));
        self.upload = Some(Rc::clone(&upload));
        Http2Sending::Sent(Sent { waiting, interim, upload, is_head })
    }

    /// Sends the body as far as the client and the server allow.
    pub(crate) fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(upload) = &self.upload {
            upload.borrow_mut().send(cx);
        }
    }
}

/// A request that was queued, or not.
pub(crate) enum Http2Sending<B> {
    /// The connection took the request.
    Sent(Sent<B>),
    /// The connection accepts no more requests.
    Unsent(Option<SendError<B>>),
}

/// A request that waits for its response.
pub(crate) struct Sent<B> {
    waiting: Waiting,
    interim: Option<OnInterim>,
    upload: Rc<RefCell<Upload<B>>>,
    /// True if the answer has no body, because the method is `HEAD`.
    is_head: bool,
}

impl<B: UpstreamBody> Http2Sending<B> {
    /// Waits for the head of the response.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Response<Http2Body>, SendError<B>>> {
        match self {
            Self::Sent(sent) => sent.poll(cx),
            Self::Unsent(error) => error.take().map_or(Poll::Pending, |error| Poll::Ready(Err(error))),
        }
    }
}

impl<B: UpstreamBody> Sent<B> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Response<Http2Body>, SendError<B>>> {
        if let Some(error) = self.upload.borrow().failure() {
            return Poll::Ready(Err(SendError { unsent: None, cause: SendFailure::Body(error.clone()) }));
        }
        loop {
            match ready!(self.waiting.poll(cx)) {
                Ok(Heads::Interim(interim)) => {
                    if let Some(OnInterim(report)) = &self.interim {
                        report(interim.status(), interim.headers());
                    }
                }
                Ok(Heads::Final(response)) => {
                    self.upload.borrow_mut().answered();
                    return Poll::Ready(Ok(Http2Body::of(response, self.is_head)));
                }
                Err(cause) => {
                    let is_unprocessed = cause.is_unprocessed();
                    let unsent = is_unprocessed.then(|| self.upload.borrow_mut().take_back()).flatten();
                    return Poll::Ready(Err(SendError { unsent, cause }));
                }
            }
        }
    }
}
