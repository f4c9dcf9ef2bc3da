//! The request body on its way to the upstream: each slice is passed to the exchange and forwarded in the same turn.
//! While the upstream is being connected one slice is read ahead, so that the tick of the complete request depends on
//! the client and not on the upstream. A body that may be edited is buffered first: its length must be known before its
//! first byte is sent.

use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use exchange::is_sealed;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use meter::Tick;

use super::slices::Slices;
use crate::capacity::Permit;
use crate::clock;
use crate::engine::hyper::RequestBody;
use crate::engine::net::pace::Verdict;
use crate::engine::{BodyError, UpstreamBody};
use crate::limits::BUFFER_BYTES;
use crate::request::forwarded;
use crate::request::gathered::Gathered;
use crate::request::in_flight::InFlight;
use crate::request::tenant::TenantResolver;

/// A request body, for the upstream connection to read.
pub(crate) struct Upload {
    /// Its source; `None` after its end.
    body: Option<RequestBody>,
    /// Bytes that were read and not yet forwarded: those of a whole body need no queue.
    first: Bytes,
    /// Frames that were read and not yet forwarded, after these bytes.
    ahead: VecDeque<Result<Frame<Bytes>, BodyError>>,
    /// Its part of the memory for buffered bodies, while there are frames ahead.
    share: Option<Rc<Permit>>,
    /// The rules for the fields that the client may not send, in trailers as in the head.
    resolver: Option<TenantResolver>,
    in_flight: Rc<InFlight>,
}

impl Upload {
    /// Creates the body. An empty one is complete at once: the request was complete with its head, at `at`.
    pub(crate) fn new(
        body: RequestBody,
        resolver: TenantResolver,
        in_flight: &Rc<InFlight>,
        at: Tick,
    ) -> Self {
        if body.is_end_stream() {
            in_flight.complete(at);
        }
        Self {
            body: Some(body),
            first: Bytes::new(),
            ahead: VecDeque::new(),
            share: None,
            resolver: Some(resolver),
            in_flight: Rc::clone(in_flight),
        }
    }

    /// A copy of the body in memory, with its trailers. The exchange has already read it.
    pub(crate) fn again(body: Bytes, trailers: Option<HeaderMap>, in_flight: &Rc<InFlight>) -> Self {
        let ahead = trailers.map(|trailers| Ok(Frame::trailers(trailers))).into_iter().collect();
        Self { body: None, first: body, ahead, share: None, resolver: None, in_flight: Rc::clone(in_flight) }
    }

    /// The next frame to send.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.first.is_empty() {
            let Some(frame) = self.ahead.pop_front() else {
                self.share = None;
                return self.poll_body(cx);
            };
            match frame.map(Frame::into_data) {
                Ok(Ok(bytes)) => self.first = bytes,
                Ok(Err(trailers)) => return Poll::Ready(Some(Ok(trailers))),
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
        // As much as the connection's buffer holds, so that sent memory can be released.
        let piece = self.first.split_to(self.first.len().min(BUFFER_BYTES));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    /// Reads one slice ahead, if there is one.
    pub(crate) fn read_ahead(&mut self, cx: &mut Context<'_>) {
        if !self.has_ahead()
            && self.in_flight.is_open()
            && let Poll::Ready(Some(frame)) = self.poll_body(cx)
        {
            self.ahead.push_back(frame);
        }
    }

    /// Buffers the whole body, if it has at most `most` bytes and there is memory for them. It remains the body to
    /// send. Slices are joined as they arrive: many small ones would use more memory than their bytes.
    pub(crate) async fn gather(&mut self, most: usize) -> Result<Gathered, BodyError> {
        let in_flight = Rc::clone(&self.in_flight);
        let mut share = in_flight.worker.capacities.gathered_bytes.permit(in_flight.holder.clone());
        let mut gathered = Slices::new(most);
        let mut is_crowded = false;
        let rest = loop {
            in_flight.gather(share.bytes());
            let frame = match std::future::poll_fn(|cx| self.poll_gathered(cx)).await {
                Some(Some(frame)) => frame?,
                Some(None) => break None,
                None => {
                    is_crowded = true;
                    break Some(Frame::data(Bytes::new()));
                }
            };
            match frame.into_data() {
                Ok(bytes) if gathered.len() + bytes.len() > most => break Some(Frame::data(bytes)),
                Ok(bytes)
                    if share.grow_in_turn(bytes.len())
                        || share.grow_soon(bytes.len(), in_flight.retry_pause()).await =>
                {
                    gathered.push(bytes);
                }
                Ok(bytes) => {
                    is_crowded = true;
                    break Some(Frame::data(bytes));
                }
                Err(trailers) => break Some(trailers),
            }
        };
        in_flight.gather(0);
        let whole = gathered.join();
        if !whole.is_empty() {
            self.first = whole.clone();
            self.share = Some(Rc::new(share));
        }
        let gathered = match rest.as_ref().map(Frame::trailers_ref) {
            None => Gathered::Whole(whole),
            Some(Some(trailers)) if is_sealed(trailers) => Gathered::Sealed,
            Some(Some(_)) => Gathered::Whole(whole),
            Some(None) if is_crowded => Gathered::Crowded,
            Some(None) => Gathered::Not,
        };
        let rest = rest.filter(|rest| !rest.data_ref().is_some_and(Bytes::is_empty));
        self.ahead.extend(rest.map(Ok));
        Ok(gathered)
    }

    fn has_ahead(&self) -> bool {
        !(self.first.is_empty() && self.ahead.is_empty())
    }

    /// The buffered body's part of the memory, for a caller that keeps the body longer.
    pub(crate) fn share(&self) -> Option<Rc<Permit>> {
        self.share.clone()
    }

    /// The trailers of a completely buffered body.
    pub(crate) fn trailers(&self) -> Option<&HeaderMap> {
        self.ahead.back()?.as_ref().ok()?.trailers_ref()
    }

    /// Replaces a completely buffered body by these slices. Its trailers stay.
    pub(crate) fn replace(&mut self, slices: impl Iterator<Item = Bytes>) {
        self.first = Bytes::new();
        let trailers = self.ahead.pop_back().filter(|frame| frame.as_ref().is_ok_and(Frame::is_trailers));
        let slices = slices.filter(|slice| !slice.is_empty()).map(|slice| Ok(Frame::data(slice)));
        self.ahead = slices.chain(trailers).collect();
    }

    /// The next frame of a body that is being buffered; `None` inside if buffering has ended early.
    #[expect(clippy::type_complexity, reason = "the frame's type is http-body's; an alias would add nothing")]
    fn poll_gathered(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Option<Result<Frame<Bytes>, BodyError>>>> {
        match self.poll_body(cx) {
            Poll::Pending if self.in_flight.uploading.verdict() == Some(Verdict::Ungathered) => {
                Poll::Ready(None)
            }
            polled => polled.map(Some),
        }
    }

    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Self { body: source, resolver, in_flight, .. } = self;
        let Some(body) = source else { return Poll::Ready(None) };
        let (polled, woken) = in_flight.client.waker.poll(|| Pin::new(&mut *body).poll_frame(cx));
        if woken && !(matches!(polled, Poll::Ready(Some(Ok(_)))) && body.is_end_stream()) {
            // The engine can read more, except after the last frame.
            in_flight.client.waker.waker().wake_by_ref();
        }
        let Poll::Ready(polled) = polled else {
            in_flight.uploading.wait_in(cx.waker());
            in_flight.watch();
            return match in_flight.uploading.verdict() {
                Some(Verdict::Slow) => Poll::Ready(Some(Err(fail(in_flight, BodyError::TooSlow)))),
                Some(Verdict::OverShare) => Poll::Ready(Some(Err(fail(
                    in_flight,
                    BodyError::OverShare(Arc::clone(in_flight.upstream_name())),
                )))),
                Some(Verdict::Ungathered) | None => Poll::Pending,
            };
        };
        match polled {
            Some(Ok(mut frame)) => {
                in_flight.uploading.moved(frame.data_ref().map_or(0, Bytes::len));
                if let (Some(trailers), Some(resolver)) = (frame.trailers_mut(), resolver) {
                    resolver.strip_untrusted_headers(&in_flight.worker, trailers);
                    if in_flight.worker.plan.forwards && !resolver.trusts_peer(&in_flight.worker) {
                        forwarded::remove(trailers);
                    }
                }
                if let Some(bytes) = frame.data_ref() {
                    in_flight.metered.borrow_mut().with(|metering| metering.exchange.request_body(bytes));
                }
                if (frame.is_trailers() || body.is_end_stream()) && !in_flight.is_complete() {
                    in_flight.complete(clock::now());
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => Poll::Ready(Some(Err(fail(in_flight, error.into())))),
            None => {
                if !in_flight.is_complete() {
                    in_flight.complete(clock::now());
                }
                *source = None;
                Poll::Ready(None)
            }
        }
    }
}

fn fail(in_flight: &InFlight, error: BodyError) -> BodyError {
    in_flight.fail_upload();
    error
}

impl UpstreamBody for Upload {
    fn put_back(&mut self, slices: Vec<Bytes>) {
        let first = std::mem::take(&mut self.first);
        for slice in slices.into_iter().chain([first]).rev().filter(|slice| !slice.is_empty()) {
            self.ahead.push_front(Ok(Frame::data(slice)));
        }
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = self.poll_next(cx);
        // With its last byte, the server has all of a body of known length: an HTTP/2 client may leave its stream open
        // after it, and its upload is complete all the same.
        if !self.in_flight.is_complete()
            && matches!(polled, Poll::Ready(Some(Ok(_))))
            && self.size_hint().exact() == Some(0)
        {
            self.in_flight.complete(clock::now());
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        !self.has_ahead() && self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let ahead = self.ahead.iter().filter_map(|frame| frame.as_ref().ok()?.data_ref());
        let ahead = self.first.len() as u64 + ahead.map(|bytes| bytes.len() as u64).sum::<u64>();
        let rest = self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint);
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(ahead));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(ahead));
        }
        hint
    }
}
