//! One request, from its head to the head of its response. The drop of the future, or of the response body, means that
//! the client left.

pub(crate) mod admission;
pub(crate) mod answer;
pub(crate) mod body;
mod error_body;
mod forwarded;
pub(crate) mod headers;
pub(crate) mod in_flight;
mod inject_usage;
pub(crate) mod kind;
pub(crate) mod policy;
pub(crate) mod reject;
pub(crate) mod send;
pub(crate) mod tenant;
mod upstream_head;
pub(crate) mod usage_policy;
#[cfg(feature = "spike-engine")]
pub(crate) mod whole;

use std::cell::LazyCell;
use std::future::Future;
use std::rc::Rc;

use exchange::{
    CONVERSATION_ID, Question, Route, Speaks, begins_detached, is_unusual, keeps_conversations, route_below,
};
use http::header::CONNECTION;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, Version};
use http_body::Body;
use meter::Tick;
use tokio::time::timeout;

use self::admission::{admit, admit_uncounted};
use self::answer::Answer;
use self::body::Upload;
use self::forwarded::Sender;
use self::in_flight::InFlight;
use self::inject_usage::{inject, is_refusal, settle};
use self::kind::RequestKind;
use self::reject::{Stop, reject, reject_unopened};
use self::send::send;
use self::tenant::TenantResolver;
use self::upstream_head::{rewrite, target};
use self::usage_policy::UsagePolicy;
use crate::connections::Connections;
use crate::engine::Engine;
use crate::engine::net::client::Client;
use crate::metering::metered::Metered;
use crate::metering::trace::Received;
use crate::metering::work::Work;
use crate::response::interim::Interim;
use crate::response::{ResponseBody, own, respond, tee};
use crate::session::{self, Handshake};
use crate::upstream_profile::ClientKey;
use crate::{Metering, Passthrough, clock, limits};

/// Forwards one request and returns its response, whose body continues to read the upstream; `None` if the client left.
pub(crate) async fn forward<E: Engine>(
    connections: Rc<Connections<E>>,
    client: Rc<Client>,
    upstream: usize,
    request: Request<E::RequestBody>,
) -> Option<Response<ResponseBody<E>>> {
    let begun = clock::now();
    let (mut parts, body) = request.into_parts();
    let has_body = !body.is_end_stream();
    let opened = match open(&connections, &client, upstream, (&mut parts, has_body), begun) {
        Ok(opened) => opened,
        Err(answer) => {
            if has_body {
                client.leave_unread();
            }
            return Some(own(answer, parts.version != Version::HTTP_2));
        }
    };
    let in_flight = Rc::clone(&opened.in_flight);
    match opened.carry(&connections, parts, body).await {
        Ok(mut response) => {
            let is_last = in_flight.is_http1 && in_flight.worker.draining.get();
            if is_last && response.status() != StatusCode::SWITCHING_PROTOCOLS {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Some(response)
        }
        Err(Stop::ClientGone) => None,
        Err(Stop::Reject(answer)) => {
            let answer = reject(&in_flight, answer);
            let is_last = !in_flight.is_complete() || in_flight.worker.draining.get();
            Some(own(answer, in_flight.is_http1 && is_last))
        }
    }
}

/// An admitted request; nothing of its body was read.
struct Opened {
    in_flight: Rc<InFlight>,
    resolver: TenantResolver,
    /// The target as sent to the upstream.
    target: Uri,
    /// The session that begins if the protocol is switched, where the request asks for that; or the reason why it is not
    /// metered.
    upgrade: Option<session::Opened>,
    kind: RequestKind,
    /// The dialect of its path, or the reason why it is not metered.
    route: Result<Speaks, Passthrough>,
    client: ClientKey,
    /// The usage to request, as far as the path determines it.
    question: Option<Question>,
    begun: Tick,
}

/// Decides by the head if a request is admitted: check, tenant, route.
fn open<E: Engine>(
    connections: &Connections<E>,
    client: &Rc<Client>,
    index: usize,
    (parts, has_body): (&mut Parts, bool),
    begun: Tick,
) -> Result<Opened, Answer> {
    let worker = &connections.worker;
    let (upstream, profile) = (&worker.plan.upstreams[index], &worker.profiles[index]);
    policy::check(&parts.method, &parts.uri, parts.version, &parts.headers)
        .map_err(|violation| reject_unopened(worker, index, Answer::refused(violation)))?;
    let upgrade = policy::asks_upgrade(&parts.method, parts.version, &parts.headers);

    let resolver = TenantResolver::of(worker, client);
    resolver.strip_untrusted_headers(worker, &mut parts.headers);
    let prefix_len = resolver.strip_prefix_len(worker, parts.uri.path());
    // Both parts are valid, so only their joined length can fail.
    let target = target(&parts.uri, prefix_len, upstream)
        .map_err(|_too_long| reject_unopened(worker, index, Answer::target_too_long()))?;
    // Read on first use: requests that are not metered need no wall time.
    let started_unix_ns = LazyCell::new(clock::wall_unix_ns);
    let resolve = |headers: &_| resolver.clone().resolve(worker, parts.uri.path(), headers, *started_unix_ns);

    let kind = worker.kind(index);
    let refuse_detached = worker.plan.refuse_detached;
    if refuse_detached && keeps_conversations(kind) {
        parts.headers.remove(CONVERSATION_ID);
    }
    let head = (target.query(), &parts.headers);
    let route_of = |method| route_below(&upstream.prefix, kind, method, target.path());
    let mut route = route_of(&parts.method);
    let is_unusual = route.is_err() && !upgrade && is_unusual(&parts.method, target.path(), head, has_body);
    if is_unusual {
        // It may run a model as a POST does.
        route = Ok(route_of(&Method::POST).unwrap_or(Route::new(Speaks::Anything)));
    }
    let may_run = is_unusual || parts.method == Method::POST;
    let is_batch =
        refuse_detached && may_run && begins_detached(target.path(), target.query(), &parts.headers);
    let work = match worker.detached.job(target.path(), target.query()) {
        Some(job) if parts.method == Method::GET && route.is_err() && !upgrade => {
            route = Ok(Route::new(Speaks::Anything));
            Work::Fetched(job)
        }
        _ => Work::at(target.path(), worker.control.gate.is_some()),
    };

    let mut opened = None;
    let mut metered = match &route {
        Ok(route) => {
            let role = upstream.role.of_peer(resolver.trusts_peer(worker));
            let tenancy = (resolve(&parts.headers), role);
            let started = (begun, *started_unix_ns);
            Metered::begin(worker, || {
                let received = Received::new(&parts.method, client.is_tls());
                let mut metering =
                    Metering::begin(worker, index, *route, &parts.headers, received, tenancy, started);
                metering.exchange.asked_at(target.path(), target.query(), &parts.headers);
                metering.works(work);
                metering
            })
        }
        Err(_) if upgrade => {
            let role = upstream.role.of_peer(resolver.trusts_peer(worker));
            let holder = client.holder();
            let headers = &mut parts.headers;
            let is_tls = client.is_tls();
            let handshake = Handshake { upstream: index, target: &target, headers, is_tls, holder, role };
            opened = Some(session::open(worker, handshake, resolve)?);
            Metered::not(worker)
        }
        Err(_) => Metered::not(worker),
    };
    let client_key = metered
        .with(|metering| ClientKey::of(metering.exchange.tenant().map(|tenant| &**tenant), client.peer()));
    let client_key = client_key.unwrap_or_else(|| ClientKey::of(None, client.peer()));
    let route = route.map(|route| route.speaks);
    let policy = UsagePolicy { upstream, profile, client: client_key, now: begun };
    let question = route.ok().and_then(|speaks| policy.question_by_path(speaks, &parts.headers));

    let is_http1 = parts.version != Version::HTTP_2;
    // gRPC needs HTTP/2, and no known endpoint uses it.
    let may_pause = !is_http1 && route == Ok(Speaks::Anything) && headers::is_grpc(&parts.headers);
    let in_flight = connections.request(index, client, metered, (is_http1, may_pause));
    if let (Err(reason), false) = (route, upgrade) {
        worker.passthrough(reason);
    }
    let upgrade = upgrade.then(|| opened.unwrap_or(Err(Passthrough::Upgrade)));
    let kind = RequestKind { is_batch, is_unusual };
    Ok(Opened { in_flight, resolver, target, upgrade, kind, route, client: client_key, question, begun })
}

impl Opened {
    /// Carries the request to its upstream and the response back: admit, inject usage, send, maybe send again. Not an
    /// `async fn`, because its future would hold its arguments twice.
    fn carry<E: Engine>(
        self,
        connections: &Rc<Connections<E>>,
        mut parts: Parts,
        body: E::RequestBody,
    ) -> impl Future<Output = Result<Response<ResponseBody<E>>, Stop>> {
        let Self { in_flight, resolver, target, upgrade, kind, route, client, question, begun } = self;
        let interim = Interim::new(parts.version);
        let upstream = &in_flight.worker.plan.upstreams[in_flight.upstream];
        rewrite(&mut parts, target, upstream, upgrade.is_some(), !body.is_end_stream());
        if in_flight.worker.plan.forwards {
            let is_trusted = resolver.trusts_peer(&in_flight.worker);
            let (peer, is_tls) = (in_flight.client.peer(), in_flight.client.is_tls());
            forwarded::append(&mut parts.headers, Sender { peer, is_trusted, is_tls });
        }
        in_flight.metered.borrow_mut().with(|metering| metering.trace_onward(&mut parts.headers));
        let mut upload = Upload::new(body, resolver, &in_flight, begun);

        async move {
            let (gathered, terms) = admit(&in_flight, &mut upload, kind).await?;
            let policy = UsagePolicy {
                upstream: &in_flight.worker.plan.upstreams[in_flight.upstream],
                profile: &in_flight.worker.profiles[in_flight.upstream],
                client,
                now: begun,
            };
            let path = (route.ok(), &parts.headers);
            let (question, gathered) =
                settle(&in_flight, policy, path, question, &mut upload, gathered).await?;
            let original = inject(&in_flight, question, client, &mut parts, &mut upload, gathered).await?;
            admit_uncounted(&in_flight, terms)?;

            let request = Request::from_parts(parts, upload);
            let mut sent = send(connections, &in_flight, request, (&interim, begun)).await?;
            if let Some(original) = original
                && is_refusal(sent.response.status())
            {
                // Most rejections are whole in their first part.
                let first = tee::first::<E>(&mut sent.connection, sent.response.body_mut());
                sent.first = timeout(limits::REJECTION_TIME, first).await.ok();
                let is_named = tee::data(sent.first.as_ref()).is_some_and(|bytes| original.is_named(bytes));
                let again = original.request(&in_flight);
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
            respond(connections, &in_flight, sent, upgrade, route.err()).await
        }
    }
}
