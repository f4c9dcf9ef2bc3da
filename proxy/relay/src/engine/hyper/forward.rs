//! One request, from its head to the head of its response: check, route, ask for usage, send.

use std::error::Error;
use std::fmt;
use std::rc::Rc;
use std::task::{Context, Waker};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST, HeaderValue, TRANSFER_ENCODING};
use http::request;
use http::uri::PathAndQuery;
use http::{Method, Request, Response, StatusCode, Uri, Version};
use http_body::Body;
use hyper::body::Incoming;

use scan::Dialect;

use super::admit::{Admitted, admit, admit_tunnel, admit_uncounted};
use super::client::Client;
use super::connection::Connection;
use super::outgoing::Outgoing;
use super::send::{Sent, send};
use super::tee::{self, Tee};
use super::upload::{Upload, UploadError};
use super::visit::Visit;
use super::{Engine, ask};
use crate::exchange::metered::Metered;
use crate::request::answer::Answer;
use crate::request::route::{Speaks, begins_batch, route};
use crate::request::tenant::TenantResolver;
use crate::request::{headers, policy, usage_policy};
use crate::upstream_profile::Asker;
use crate::{Passthrough, Upstream, clock};

/// The client left: there is nobody to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gone;

/// Forwards one request and returns its response, whose body carries on from there. Dropping the
/// future, or the body, is the client leaving.
pub(super) async fn forward(
    engine: Rc<Engine>,
    client: Rc<Client>,
    index: usize,
    request: Request<Incoming>,
) -> Result<Response<Outgoing>, Gone> {
    let begun = clock::now();
    let worker = &engine.worker;
    let upstream = &worker.plan.upstreams[index];
    let (mut parts, body) = request.into_parts();
    let version = parts.version;
    let alone = version != Version::HTTP_2;

    if let Err(violation) = policy::check(&parts.method, &parts.uri, version, &parts.headers) {
        worker.refuse(violation.refusal);
        worker.turned_away(index, (violation.refusal, violation.status.as_u16()), None);
        if !body.is_end_stream() {
            client.leave_unread();
        }
        return Ok(own(Answer::refused(violation), alone));
    }
    let asked = policy::asks_upgrade(version, &parts.headers);
    let tenancy = TenantResolver::of(worker, client.peer);
    tenancy.distrust(worker, &mut parts.headers);
    let behind = tenancy.clone();
    let spared = tenancy.spared(worker, parts.uri.path());
    let Ok(uri) = target(&parts.uri, spared, upstream) else {
        // Both halves are valid, so only their sum can fail: it is too long.
        let answer = Answer::target_too_long();
        worker.refuse(answer.refusal);
        worker.turned_away(index, (answer.refusal, answer.status.as_u16()), None);
        return Ok(own(answer, alone));
    };
    let learned = &worker.learned[index];
    if worker.plan.refuse_detached && usage_policy::keeps_conversations(upstream, learned) {
        parts.headers.remove(headers::CONVERSATION_ID);
    }
    let routed = route(upstream.kind.or_else(|| learned.found_kind()), &parts.method, uri.path());
    let is_batch = worker.plan.refuse_detached && parts.method == Method::POST && begins_batch(uri.path());
    let mut metered = match &routed {
        Ok(route) => {
            let role = upstream.role.of_peer(tenancy.trusts_peer(worker));
            let whose = tenancy.whose(worker, parts.uri.path(), &parts.headers);
            Metered::begin(worker, index, *route, &parts.headers, (whose, role), begun)
        }
        Err(_) => {
            let whose = || tenancy.whose(worker, parts.uri.path(), &parts.headers);
            if asked && let Some(answer) = admit_tunnel(worker, index, whose) {
                if !body.is_end_stream() {
                    client.leave_unread();
                }
                return Ok(own(answer, alone));
            }
            Metered::not(worker)
        }
    };
    let asker = metered.with(|exchange| Asker::of(exchange.tenant().map(|tenant| &**tenant), client.peer));
    let asker = asker.unwrap_or_else(|| Asker::of(None, client.peer));
    let speaks = routed.as_ref().ok().map(|route| route.speaks);
    let mut want = match speaks {
        Some(Speaks::Known(dialect)) if usage_policy::is_askable(upstream, learned, dialect) => {
            Some(usage_policy::want(upstream, learned, dialect, &parts.headers, (asker, begun)))
        }
        // Whether the body is to be asked what is spoken; a completion may need less.
        Some(Speaks::Invocations) => {
            Some(usage_policy::want(upstream, learned, Dialect::OpenaiChat, &parts.headers, (asker, begun)))
        }
        _ => None,
    };
    let unmetered = routed.err();
    // gRPC needs HTTP/2, and no endpoint that is known speaks it.
    let may_pause = !alone && speaks == Some(Speaks::Anything) && headers::is_grpc(&parts.headers);
    let visit = Visit::new(&engine, &client, metered, alone, may_pause);
    if let (Some(reason), false) = (unmetered, asked) {
        worker.pass(reason);
    }

    rewrite(&mut parts, uri, upstream, asked, &body);
    visit.metered.borrow_mut().with(|exchange| exchange.trace_onward(&mut parts.headers));
    let mut upload = Upload::new(body, behind, &visit, begun);
    let (mut gathered, terms) = match admit(&visit, &mut upload, is_batch).await {
        Ok(Admitted::Yes(gathered, terms)) => (gathered, terms),
        Ok(Admitted::No(told)) => return Ok(answer(&visit, told)),
        Err(error) => return broken_off(&visit, upstream, error),
    };
    if let (Some(Speaks::Invocations), Some(Ok(_))) = (speaks, &want) {
        let askable = |dialect| usage_policy::is_askable(upstream, learned, dialect);
        let wants = |dialect| usage_policy::want(upstream, learned, dialect, &parts.headers, (asker, begun));
        let (body, settled) = match ask::settle(&visit, askable, wants, &mut upload, gathered).await {
            Ok(settled) => settled,
            Err(error) => return broken_off(&visit, upstream, error),
        };
        (gathered, want) = (Some(body), settled);
    }
    if speaks == Some(Speaks::Anything) {
        // The shape of the body has said it, where a budget asks for that.
        let dialect = visit.metered.borrow_mut().with(|exchange| exchange.dialect());
        want = dialect
            .filter(|dialect| usage_policy::is_askable(upstream, learned, *dialect))
            .map(|dialect| usage_policy::want(upstream, learned, dialect, &parts.headers, (asker, begun)));
    }
    let mut original = None;
    if let Some(Err(step)) = want {
        visit.usage(step);
    }
    if let Some(Ok(want)) = want {
        original = match ask::ask(&visit, (want, asker), &mut parts, &mut upload, gathered).await {
            Ok(original) => original,
            Err(error) => return broken_off(&visit, upstream, error),
        };
    }
    if let Some(told) = admit_uncounted(&visit, terms) {
        return Ok(answer(&visit, told));
    }
    let request = Request::from_parts(parts, upload);
    let mut sent = send(&visit, index, request, (version, begun)).await;
    if let (Some(original), Sent::Head(_, response)) = (&original, &sent)
        && ask::is_refusal(response.status())
    {
        let again = send(&visit, index, original.request(&visit), (version, clock::now())).await;
        // The refusal goes, and its connection with it, unless it is all there is.
        match &again {
            Sent::Head(_, response) => {
                original.answered(&visit, index, response.status());
                sent = again;
            }
            Sent::Gone => return Err(Gone),
            Sent::Failed(_) => {}
        }
    }
    drop(original);
    match sent {
        Sent::Head(connection, response) => {
            Ok(respond(&visit, index, connection, response, asked, unmetered).await)
        }
        Sent::Failed(told) => Ok(answer(&visit, told)),
        Sent::Gone => Err(Gone),
    }
}

/// The target as the upstream gets it: origin form, under its prefix, without its first `spared` bytes.
fn target(uri: &Uri, spared: usize, upstream: &Upstream) -> Result<Uri, http::Error> {
    let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    if path == "*" {
        return Ok(Uri::from(PathAndQuery::from_static("*")));
    }
    if spared == 0 && upstream.prefix.is_empty() && uri.authority().is_none() {
        return Ok(uri.clone());
    }
    let path = path.get(spared..).unwrap_or(path);
    let slash = if path.starts_with('/') { "" } else { "/" };
    Ok(Uri::from(PathAndQuery::try_from(format!("{}{slash}{path}", upstream.prefix))?))
}

/// Makes the head one of the next hop's. Only what has to differ does.
fn rewrite(parts: &mut request::Parts, uri: Uri, upstream: &Upstream, upgrade: bool, body: &Incoming) {
    parts.headers = headers::for_upstream(std::mem::take(&mut parts.headers), upgrade);
    // In absolute form, and under HTTP/2, the target names the host (RFC 9112 §3.2.2).
    if let Some(authority) = parts.uri.authority() {
        if let Ok(authority) = HeaderValue::from_str(authority.as_str()) {
            parts.headers.insert(HOST, authority);
        }
    } else if !parts.headers.contains_key(HOST) {
        // HTTP/1.0 may come without one; the upstream is spoken to in 1.1.
        if let Ok(host) = HeaderValue::from_str(&format!("{}:{}", upstream.host, upstream.port)) {
            parts.headers.insert(HOST, host);
        }
    }
    if parts.version == Version::HTTP_2 {
        headers::join_cookies(&mut parts.headers);
        // HTTP/2 needs neither to have a body. hyper would send a GET without either as empty.
        if !body.is_end_stream() && !parts.headers.contains_key(CONTENT_LENGTH) {
            parts.headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
    }
    parts.uri = uri;
    parts.version = Version::HTTP_11;
    parts.extensions.remove::<hyper::upgrade::OnUpgrade>();
}

/// The response to the client, whose body goes on reading the upstream.
async fn respond(
    visit: &Rc<Visit>,
    index: usize,
    connection: Box<Connection>,
    response: Response<Incoming>,
    asked: bool,
    unmetered: Option<Passthrough>,
) -> Response<Outgoing> {
    let at = clock::now();
    let worker = &visit.engine.worker;
    let (mut head, body) = response.into_parts();
    if let Err(what) = policy::check_response(head.status, &head.headers, asked) {
        return answer(visit, Answer::invalid(&worker.plan.upstreams[index].name, what));
    }
    let switching = head.status == StatusCode::SWITCHING_PROTOCOLS;
    if asked && let Some(reason) = unmetered {
        worker.pass(if switching { Passthrough::Upgrade } else { reason });
    }
    let shown = {
        let mut metered = visit.metered.borrow_mut();
        let shown = metered.with(|exchange| exchange.response_head(head.status.as_u16(), &head.headers, at));
        if shown == Some(None) {
            // Not an answer we meter.
            worker.pass(Passthrough::Path);
            metered.finish();
        }
        shown.flatten().unwrap_or_default()
    };
    if let Some(reason) = shown.unread {
        worker.pass(reason);
    }

    head.version = Version::HTTP_11;
    head.extensions.remove::<hyper::upgrade::OnUpgrade>();
    head.headers = headers::for_client(head.headers, switching);
    if head.headers.contains_key(TRANSFER_ENCODING) {
        // The one that did not frame the body (RFC 9112 §6.3).
        head.headers.remove(CONTENT_LENGTH);
        if !visit.alone {
            head.headers.remove(TRANSFER_ENCODING);
        }
    }
    if shown.edited {
        head.headers.remove(CONTENT_LENGTH);
    }

    visit.answering.set(true);
    let body = if switching {
        let Some(far) = connection.into_far().await else {
            let what = "broke off while switching protocols";
            return answer(visit, Answer::invalid(&worker.plan.upstreams[index].name, what));
        };
        visit.client.switch(far);
        Outgoing::Empty
    } else if body.is_end_stream() {
        let mut driven = Context::from_waker(Waker::noop());
        tee::end(visit, Some(connection), (index, false), at, &mut driven);
        declared(&head, visit.alone)
    } else {
        if visit.stream.is_some() {
            visit.watch();
        }
        Outgoing::Tee(Tee::new(body, connection, index, Rc::clone(visit), shown.edited))
    };
    visit.spent(at);
    Response::from_parts(head, body)
}

/// A 304 says how long the body would be that it does not send.
fn declared(head: &http::response::Parts, http1: bool) -> Outgoing {
    let length = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    match length {
        Some(length) if http1 && head.status == StatusCode::NOT_MODIFIED => Outgoing::Declared(length),
        _ => Outgoing::Empty,
    }
}

/// The answer to a request whose body broke off before it was sent.
fn broken_off(visit: &Visit, upstream: &Upstream, error: UploadError) -> Result<Response<Outgoing>, Gone> {
    error.answer(&upstream.name).map(|told| answer(visit, told)).ok_or(Gone)
}

/// One of our own answers to a request that was let in.
fn answer(visit: &Visit, answer: Answer) -> Response<Outgoing> {
    visit.engine.worker.refuse(answer.refusal);
    let status = answer.status.as_u16();
    {
        let mut metered = visit.metered.borrow_mut();
        metered.with(|exchange| exchange.answered_locally(answer.refusal, status, clock::now()));
        metered.finish();
    }
    own(answer, visit.alone && !visit.is_complete())
}

fn own(answer: Answer, close: bool) -> Response<Outgoing> {
    answer.into_response(close).map(|body: Bytes| Outgoing::Answer(Some(body)))
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client left before its answer")
    }
}

impl Error for Gone {}
