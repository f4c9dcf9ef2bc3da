//! The place of one request on a shared HTTP/2 connection, and the wait for its response. Dropping the wait, or the body
//! after it, resets the stream, and the connection lives on (law 4).

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use h2::client::ResponseFuture;
use h2::{Reason, RecvStream};
use http::{Request, Response, StatusCode};

use super::head;
use super::outgoing::Outgoing;
use super::shared_connection::Link;
use crate::wire::failure::SendFailure;

/// The place of one request on a connection.
pub(crate) struct Place(Rc<Link>);

impl Place {
    pub(super) fn new(link: &Rc<Link>) -> Self {
        let streams = &link.traffic.streams;
        streams.set(streams.get() + 1);
        Self(Rc::clone(link))
    }

    /// Queues the head of a request; `is_empty`: it has no body. `None`: the connection accepts no more requests.
    pub(super) fn send(&self, head: Request<()>, is_empty: bool) -> Option<(Waiting, Outgoing)> {
        // A clone, because a sender remembers its last request while that waits to be opened.
        let (response, out) = self.0.sender.clone().send_request(head, is_empty).ok()?;
        Some((Waiting { link: Rc::clone(&self.0), response }, Outgoing::new(out, is_empty)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let streams = &self.0.traffic.streams;
        streams.set(streams.get() - 1);
    }
}

/// A request that waits for its response.
pub(super) struct Waiting {
    link: Rc<Link>,
    response: ResponseFuture,
}

/// A head that was received.
pub(super) enum Heads {
    /// That of an interim response.
    Interim(Response<()>),
    /// That of the response.
    Final(Response<RecvStream>),
}

impl Waiting {
    /// Waits for the next head.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Heads, SendFailure>> {
        if let Poll::Ready(Some(Ok(interim))) = self.response.poll_informational(cx) {
            return Poll::Ready(match interim.status() {
                // HTTP/2 has no 101 (RFC 9113 §8.6).
                StatusCode::SWITCHING_PROTOCOLS => Err(SendFailure::Invalid),
                _ => Ok(Heads::Interim(interim)),
            });
        }
        Poll::Ready(match ready!(Pin::new(&mut self.response).poll(cx)) {
            Ok(response) if head::is_too_large(response.headers()) => Err(SendFailure::HeadTooLarge),
            Ok(response) => Ok(Heads::Final(response)),
            Err(error) => Err(self.failure(&error)),
        })
    }

    fn failure(&self, error: &h2::Error) -> SendFailure {
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
            return cause;
        }
        match traffic.tls_fault.borrow().clone() {
            Some(fault) => SendFailure::Tls(fault),
            None if traffic.is_silent.get() => SendFailure::Silent,
            None if error.is_remote() => SendFailure::Reset,
            None if error.is_library() => SendFailure::Invalid,
            None => SendFailure::Closed,
        }
    }
}
