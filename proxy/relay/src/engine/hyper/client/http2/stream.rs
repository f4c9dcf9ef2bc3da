//! One request on a shared HTTP/2 connection. The future or body that waits for it polls its upload, as with HTTP/1.1.
//! Dropping it resets the stream, and the connection lives on (law 4).

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use h2::Reason;
use h2::client::ResponseFuture;
use http::{HeaderMap, Method, Request, Response, StatusCode};

use super::Link;
use super::body::Http2Body;
use super::head;
use super::upload::{Upload, is_over};
use crate::engine::{SendError, SendFailure, UpstreamBody};

/// Receives the interim responses of a request; an extension of the request.
#[derive(Clone)]
pub(crate) struct OnInterim(pub(crate) Arc<Report>);

type Report = dyn Fn(StatusCode, &HeaderMap) + Send + Sync;

/// The place of one request on a connection, then that request.
pub(crate) struct Http2Stream<B> {
    link: Rc<Link>,
    upload: Option<Rc<RefCell<Upload<B>>>>,
}

impl<B> Http2Stream<B> {
    pub(super) fn new(link: &Rc<Link>) -> Self {
        let streams = &link.traffic.streams;
        streams.set(streams.get() + 1);
        Self { link: Rc::clone(link), upload: None }
    }
}

impl<B> Drop for Http2Stream<B> {
    fn drop(&mut self) {
        let streams = &self.link.traffic.streams;
        streams.set(streams.get() - 1);
    }
}

impl<B: UpstreamBody> Http2Stream<B> {
    /// Queues the head of a request and returns what waits for its response. [`drive`](Self::drive) sends the body.
    pub(crate) fn send(&mut self, request: Request<B>) -> Http2Sending<B> {
        let (mut parts, body) = request.into_parts();
        let interim = parts.extensions.remove::<OnInterim>();
        let (is_empty, is_head) = (is_over(&parts, &body), parts.method == Method::HEAD);
        // A clone, because a sender remembers its last request while that waits to be opened.
        let Ok(head) = head::request(&parts) else {
            return Http2Sending::Unsent(Some(SendError { unsent: None, cause: SendFailure::Invalid }));
        };
        let Ok((response, out)) = self.link.sender.clone().send_request(head, is_empty) else {
            let unsent = Some(Request::from_parts(parts, body));
            return Http2Sending::Unsent(Some(SendError { unsent, cause: SendFailure::Closed }));
        };
        let upload = Rc::new(RefCell::new(Upload::new(parts, body, out)));
        self.upload = Some(Rc::clone(&upload));
        Http2Sending::Sent(Sent { link: Rc::clone(&self.link), response, interim, upload, is_head })
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
    link: Rc<Link>,
    response: ResponseFuture,
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
        while let Poll::Ready(Some(Ok(interim))) = self.response.poll_informational(cx) {
            // HTTP/2 has no 101 (RFC 9113 §8.6).
            if interim.status() == StatusCode::SWITCHING_PROTOCOLS {
                return Poll::Ready(Err(SendError { unsent: None, cause: SendFailure::Invalid }));
            }
            if let Some(OnInterim(report)) = &self.interim {
                report(interim.status(), interim.headers());
            }
        }
        Poll::Ready(match ready!(Pin::new(&mut self.response).poll(cx)) {
            Ok(response) if head::is_too_large(response.headers()) => {
                Err(SendError { unsent: None, cause: SendFailure::HeadTooLarge })
            }
            Ok(response) => {
                self.upload.borrow_mut().answered();
                Ok(Http2Body::of(response, self.is_head))
            }
            Err(error) => Err(self.failed(&error)),
        })
    }

    fn failed(&self, error: &h2::Error) -> SendError<B> {
        let traffic = &self.link.traffic;
        // A GOAWAY is the error of those streams only that the server has not processed (RFC 9113 §6.8).
        let unprocessed = match error.reason() {
            Some(Reason::HTTP_1_1_REQUIRED) => Some(SendFailure::NeedsHttp1),
            Some(Reason::REFUSED_STREAM) => Some(SendFailure::Refused),
            Some(Reason::NO_ERROR) if error.is_go_away() => Some(SendFailure::Refused),
            _ if error.is_go_away() => Some(SendFailure::ConnectionError),
            _ => None,
        };
        if let Some(cause) = unprocessed.filter(|_| error.is_remote()) {
            return SendError { unsent: self.upload.borrow_mut().take_back(), cause };
        }
        let cause = match traffic.tls_fault.borrow().clone() {
            Some(fault) => SendFailure::Tls(fault),
            None if traffic.is_silent.get() => SendFailure::Silent,
            None if error.is_remote() => SendFailure::Reset,
            None if error.is_library() => SendFailure::Invalid,
            None => SendFailure::Closed,
        };
        SendError { unsent: None, cause }
    }
}
