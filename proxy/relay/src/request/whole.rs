//! A request whose head and body arrived together, for the trial engine: one call decides about it.

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::Uri;
use http::request::Parts;
use http_body::{Body, Frame, SizeHint};
use scan::Dialect;

use super::admission::{admit, admit_uncounted};
use super::answer::Answer;
use super::body::{Gathered, Upload};
use super::in_flight::InFlight;
use super::inject_usage::{inject, settle};
use super::reject::{Stop, reject};
use super::usage_policy::UsagePolicy;
use super::{Opened, open};
use crate::connections::Connections;
use crate::engine::net::client::Client;
use crate::engine::{BodyError, Engine};
use crate::{Terms, clock};

/// An admitted request, ready to be sent.
pub(crate) struct Ready {
    pub(crate) in_flight: Rc<InFlight>,
    pub(crate) target: Uri,
    pub(crate) body: WholeBody,
}

/// The body of a whole request.
pub(crate) enum WholeBody {
    /// The client's.
    Original(Bytes),
    /// The slices of an edited body, in order; `Content-Length` and `Accept-Encoding` of the head were changed, too.
    Edited(Vec<Bytes>),
}

/// Admits a request with all of its body, and makes the request for the upstream. An error is the answer of the proxy,
/// and true if the connection ends with it.
pub(crate) fn admit_whole<E: Engine>(
    connections: &Rc<Connections<E>>,
    client: &Rc<Client>,
    index: usize,
    parts: &mut Parts,
    body: Bytes,
) -> Result<Ready, (Answer, bool)> {
    let head = (&mut *parts, !body.is_empty());
    let opened = open(connections, client, index, head, clock::now()).map_err(|answer| (answer, true))?;
    let Opened { in_flight, resolver, target, kind, route, client, question, begun, .. } = opened;
    let worker = &in_flight.worker;
    let is_gated = worker.control.gate.is_some() || worker.plan.refuse_detached;
    let mut upload = if is_gated {
        Upload::new(Whole(body.clone()), resolver, &in_flight, begun)
    } else {
        in_flight.metered.borrow_mut().with(|metering| metering.exchange.request_body(&body));
        in_flight.complete(begun);
        Upload::empty(&in_flight)
    };
    let admitted = async {
        let (gathered, terms) = match is_gated {
            true => admit(&in_flight, &mut upload, kind).await?,
            false => (Some(Gathered::Whole(body.clone())), Terms::default()),
        };
        let worker = &in_flight.worker;
        let policy = UsagePolicy {
            upstream: &worker.plan.upstreams[index],
            profile: &worker.profiles[index],
            client,
            now: begun,
        };
        let path = (route.ok(), &parts.headers);
        let (question, gathered) = settle(&in_flight, policy, path, question, &mut upload, gathered).await?;
        let original = inject(&in_flight, question, client, parts, &mut upload, gathered).await?;
        admit_uncounted(&in_flight, terms)?;
        Ok::<_, Stop>(original.is_some())
    };
    let mut cx = Context::from_waker(Waker::noop());
    let is_edited = match pin!(admitted).poll(&mut cx) {
        Poll::Ready(Ok(is_edited)) => is_edited,
        Poll::Ready(Err(Stop::Reject(answer))) => {
            return Err((reject(&in_flight, answer), !in_flight.is_complete()));
        }
        // The gate reads the body, and no memory for buffered bodies is free.
        Poll::Ready(Err(Stop::ClientGone)) | Poll::Pending => {
            return Err((reject(&in_flight, Answer::no_gather_room(Dialect::Unknown)), true));
        }
    };
    let mut slices = Vec::new();
    if !is_edited && !is_gated {
        return Ok(Ready { in_flight, target, body: WholeBody::Original(body) });
    }
    while let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut upload).poll_frame(&mut cx) {
        slices.extend(frame.into_data());
    }
    let body = if is_edited { WholeBody::Edited(slices) } else { WholeBody::Original(body) };
    Ok(Ready { in_flight, target, body })
}

/// The bytes of a whole body.
struct Whole(Bytes);

impl From<Infallible> for BodyError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = std::mem::take(&mut self.0);
        Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}
