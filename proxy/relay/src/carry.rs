//! Carries one request: its body to the upstream, as far as the decisions about it allow, and the response back. The drop
//! of the future, or of the response body, means that the client left.

pub(crate) mod handed;
mod held_timer;
mod open;
#[cfg(feature = "spike-engine")]
pub(crate) mod pump;
mod respond;
pub(crate) mod rest;
pub(crate) mod send;
mod slices;
mod tee;
pub(crate) mod upload;

use std::future::Future;
use std::rc::Rc;

use http::header::CONNECTION;
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode, Version};
use http_body::Body;
use tokio::time::timeout;

use self::respond::{ResponseBody, own, respond};
use self::send::send;
use self::upload::Upload;
use crate::connections::Connections;
use crate::engine::hyper::RequestBody;
use crate::engine::net::client::Client;
use crate::request::reject::{Stop, reject};
use crate::request::second_attempt::is_refusal;
use crate::request::{Decision, Edited, Opened, open};
use crate::response::interim::Interim;
#[cfg(feature = "spike-engine")]
use crate::wire::h2::stream;
use crate::{clock, limits};

/// Forwards one request and returns its response, whose body continues to read the upstream; `None` if the client left.
/// Not an `async fn`: its future would hold the request twice.
pub(crate) fn forward(
    connections: Rc<Connections>,
    client: Rc<Client>,
    upstream: usize,
    request: Request<RequestBody>,
) -> impl Future<Output = Option<Response<ResponseBody>>> {
    let begun = clock::now();
    async move {
        #[cfg(feature = "spike-engine")]
        if request.version() == Version::HTTP_2 {
            let by = (client, upstream);
            let response = Box::pin(stream::forward(connections, by, request, begun)).await?;
            return Some(match response {
                Ok(response) => response.map(ResponseBody::Stream),
                Err(answer) => own(answer, false),
            });
        }
        let (mut parts, body) = request.into_parts();
        let has_body = !body.is_end_stream();
        let worker = (&connections.worker, &connections.watched);
        let opened = match open(worker, &client, upstream, (&mut parts, has_body), begun) {
            Ok(opened) => opened,
            Err(answer) => {
                if has_body {
                    client.leave_unread();
                }
                return Some(own(answer, parts.version != Version::HTTP_2));
            }
        };
        let in_flight = Rc::clone(&opened.in_flight);
        match carry(opened, &connections, parts, body).await {
            Ok(mut response) => {
                let is_last = in_flight.is_http1() && in_flight.worker.draining.get();
                if is_last && response.status() != StatusCode::SWITCHING_PROTOCOLS {
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Some(response)
            }
            Err(Stop::ClientGone) => None,
            Err(Stop::Reject(answer)) => {
                let answer = reject(&in_flight, answer);
                let is_last = !in_flight.is_complete() || in_flight.worker.draining.get();
                Some(own(answer, in_flight.is_http1() && is_last))
            }
        }
    }
}

/// Carries a request to its upstream and the response back: decide, send, maybe send again. Not an `async fn`, because
/// its future would hold its arguments twice.
fn carry(
    mut opened: Opened,
    connections: &Rc<Connections>,
    mut parts: Parts,
    body: RequestBody,
) -> impl Future<Output = Result<Response<ResponseBody>, Stop>> {
    let interim = Interim::new(parts.version);
    opened.rewrite(&mut parts, !body.is_end_stream());
    let Opened { in_flight, resolver, upgrade, unmetered, mut undecided, begun, .. } = opened;
    let mut upload = Upload::new(body, resolver, &in_flight, begun);

    async move {
        let mut gathered = None;
        let edited = loop {
            match undecided.decide(&in_flight, &mut parts, gathered.as_ref())? {
                Decision::Send(edited) => break edited,
                Decision::NeedBody => gathered = Some(upload.gather(limits::GATHERED_BYTES).await?),
            }
        };
        drop(gathered);
        let original = edited.map(|Edited { slices, original }| {
            // The memory of the original body is taken as long as that may be sent again.
            let rest = (upload.trailers().cloned(), upload.share());
            upload.replace(slices.into_iter());
            (original, rest)
        });

        let request = Request::from_parts(parts, upload);
        let mut sent = send(connections, &in_flight, request, (&interim, begun)).await?;
        if let Some((original, (trailers, _share))) = original
            && is_refusal(sent.response.status())
        {
            // Most rejections are whole in their first part.
            let first = tee::first(&mut sent.connection, sent.response.body_mut());
            sent.first = timeout(limits::REJECTION_TIME, first).await.ok();
            let is_named = tee::data(sent.first.as_ref()).is_some_and(|bytes| original.is_named(bytes));
            let (parts, body) = original.again(&in_flight);
            let again = Request::from_parts(parts, Upload::again(body, trailers, &in_flight));
            match send(connections, &in_flight, again, (&interim, clock::now())).await {
                // The rejection is dropped, and its connection with it, unless there is no other answer.
                Ok(again) => {
                    original.answered(&in_flight, is_named, again.response.status());
                    sent = again;
                }
                Err(Stop::ClientGone) => return Err(Stop::ClientGone),
                Err(Stop::Reject(_)) => {}
            }
        }
        respond(connections, &in_flight, sent, upgrade, unmetered).await
    }
}
