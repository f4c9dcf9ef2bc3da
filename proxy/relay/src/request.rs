//! All decisions about one request: by its head, and by its body where they depend on it. They do no I/O and know no
//! protocol. `carry` moves the bytes of the request.

pub(crate) mod admission;
pub(crate) mod answer;
mod error_body;
pub(crate) mod forwarded;
pub(crate) mod gathered;
pub(crate) mod headers;
pub(crate) mod in_flight;
pub(crate) mod policy;
pub(crate) mod reject;
pub(crate) mod second_attempt;
pub(crate) mod tenant;
mod upstream_head;
mod usage;

use std::cell::LazyCell;
use std::rc::Rc;

use bytes::Bytes;
use exchange::{
    CONVERSATION_ID, Route, Speaks, begins_detached, is_unusual, keeps_conversations, renames_model,
    route_below,
};
use http::header::{ACCEPT_ENCODING, HeaderValue};
use http::request::Parts;
use http::{Method, Uri, Version};
use http1::Fault;
use meter::Tick;
use scan::OtherModels;

use self::admission::{RequestKind, admit, admit_tunnel, admit_uncounted};
use self::answer::Answer;
use self::forwarded::Sender;
use self::gathered::Gathered;
use self::in_flight::InFlight;
use self::reject::reject_unopened;
use self::tenant::{TenantResolver, resolve_by_body};
use self::upstream_head::{rewrite, target};
pub(crate) use self::usage::Edited;
use self::usage::{Usage, UsagePolicy};
use crate::conn::client::Client;
use crate::metering::metered::Metered;
use crate::metering::trace::Received;
use crate::metering::work::Work;
use crate::session::{self, Handshake};
use crate::state::WorkerState;
use crate::upstream_profile::ClientKey;
use crate::watched::Watched;
use crate::{Metering, Passthrough, Terms, clock, limits};

/// A request whose head was read.
pub(crate) struct Request {
    pub(crate) parts: Parts,
    /// The bytes of the head, which show the spelling of its field names; empty with HTTP/2.
    pub(crate) head: Bytes,
    pub(crate) has_body: bool,
    /// The tick at which the head was complete.
    pub(crate) begun: Tick,
}

/// A request that is not rejected for its head. Nothing of its body was read.
pub(crate) struct Opened {
    pub(crate) in_flight: Rc<InFlight>,
    pub(crate) resolver: TenantResolver,
    /// The target as sent to the upstream.
    pub(crate) target: Uri,
    /// If the request asks to switch protocols: the session that begins then, or the reason why the tunnel is not metered.
    pub(crate) upgrade: Option<session::Opened>,
    /// The reason why the request is not metered, if it is not.
    pub(crate) unmetered: Option<Passthrough>,
    pub(crate) undecided: Undecided,
}

/// The decisions about a request that may depend on its body.
pub(crate) struct Undecided {
    kind: RequestKind,
    client: ClientKey,
    begun: Tick,
    /// The terms of its tenant, once the gate has admitted it.
    terms: Option<Terms>,
    usage: Usage,
}

/// A decision about a request that is not rejected.
pub(crate) enum Decision {
    /// It depends on the body, which must be buffered first.
    NeedBody,
    /// The request may be sent; `Some` if it was edited.
    Send(Option<Edited>),
}

/// Decides by the head if a request for the upstream with this index is admitted: check, tenant, route. It is then in flight.
/// `watched`: the requests that the sweep checks, of which it may become one.
pub(crate) fn open(
    (worker, watched): (&Rc<WorkerState>, &Rc<Watched<InFlight>>),
    (client, index): (&Rc<Client>, usize),
    request: &mut Request,
) -> Result<Opened, Answer> {
    let Request { parts, has_body, begun, .. } = request;
    let (has_body, begun) = (*has_body, *begun);
    let (upstream, profile) = (&worker.plan.upstreams[index], &worker.profiles[index]);
    if parts.headers.len() > limits::HEAD_FIELDS {
        return Err(reject_unopened(worker, index, Answer::not_a_request(Fault::ManyFields)));
    }
    policy::check(&parts.method, &parts.uri, parts.version, &parts.headers)
        .map_err(|answer| reject_unopened(worker, index, answer))?;

    let resolver = TenantResolver::new(worker, client.peer(), client.certificate().cloned());
    resolver.strip_untrusted_headers(worker, &mut parts.headers);
    let prefix_len = resolver.strip_prefix_len(worker, parts.uri.path());
    // Both parts are valid, so only their joined length can fail.
    let target = target(&parts.uri, prefix_len, upstream)
        .map_err(|_too_long| reject_unopened(worker, index, Answer::target_too_long()))?;
    // Read on first use: requests that are not metered need no wall time.
    let started_unix_ns = LazyCell::new(clock::wall_unix_ns);
    let resolve = |headers: &_| resolver.clone().resolve(worker, parts.uri.path(), headers, *started_unix_ns);

    if worker.plan.refuse_detached && keeps_conversations(worker.kind(index)) {
        parts.headers.remove(CONVERSATION_ID);
    }
    let Routed { route, upgrade, kind, work } = routed((worker, index), &target, (parts, has_body));

    let role = || upstream.role.of_peer(resolver.trusts_peer(worker));
    let mut opened = None;
    let mut metered = match &route {
        Ok(route) => {
            let tenancy = (resolve(&parts.headers), role());
            let started = (begun, *started_unix_ns);
            Metered::begin(worker, || {
                let received = Received::new(&parts.method, client.is_tls());
                let metering =
                    Metering::begin(worker, index, *route, &parts.headers, received, tenancy, started);
                // It is large: it moves once.
                let mut metering = Box::new(metering);
                metering.exchange.asked_at(target.path(), target.query(), &parts.headers);
                metering.works(work);
                metering
            })
        }
        Err(_) if upgrade => {
            let (headers, role) = (&mut parts.headers, role());
            let handshake = Handshake { upstream: index, target: &target, headers, client, role };
            opened = Some(session::open(worker, handshake, resolve)?);
            Metered::not(worker)
        }
        Err(_) => {
            if parts.method == Method::POST && worker.control.gate.is_some() && renames_model(target.path()) {
                let mut resolution = resolve(&parts.headers);
                resolve_by_body(worker, &mut resolution);
                admit_tunnel(worker, index, (None, &OtherModels::default()), &resolution.identity())?;
            }
            Metered::not(worker)
        }
    };
    let client_key = metered
        .with(|metering| ClientKey::of(metering.exchange.tenant().map(|tenant| &**tenant), client.peer()));
    let client_key = client_key.unwrap_or_else(|| ClientKey::of(None, client.peer()));
    let route = route.map(|route| route.speaks);
    let policy = UsagePolicy { upstream, profile, client: client_key, now: begun };
    let usage = route.map_or(Usage::Known(None), |speaks| policy.by_path(speaks, &parts.headers));

    let is_http1 = parts.version != Version::HTTP_2;
    // gRPC needs HTTP/2, and no known endpoint uses it.
    let may_pause = !is_http1 && route == Ok(Speaks::Anything) && headers::is_grpc(&parts.headers);
    let in_flight = InFlight::new((worker, watched), index, client, metered, (is_http1, may_pause));
    if let (Err(reason), false) = (route, upgrade) {
        worker.passthrough(reason);
    }
    let upgrade = upgrade.then(|| opened.unwrap_or(Err(Passthrough::Upgrade)));
    let undecided = Undecided { kind, client: client_key, begun, terms: None, usage };
    Ok(Opened { in_flight, resolver, target, upgrade, unmetered: route.err(), undecided })
}

/// The route of a request, and what its head shows about detached work.
struct Routed {
    /// The route, or the reason why the request is not metered.
    route: Result<Route, Passthrough>,
    /// True if it may switch protocols.
    upgrade: bool,
    kind: RequestKind,
    work: Work,
}

/// Finds the route of a request with this target at the upstream with this index.
fn routed((worker, index): (&WorkerState, usize), target: &Uri, (parts, has_body): (&Parts, bool)) -> Routed {
    let (method, path, query) = (&parts.method, target.path(), target.query());
    let prefix = &worker.plan.upstreams[index].prefix;
    let route_of = |method| route_below(prefix, worker.kind(index), method, path);
    let mut route = route_of(method);
    // At a known path, a tunnel would carry what is metered.
    let upgrade = policy::asks_upgrade(method, parts.version, &parts.headers)
        && route.as_ref().map_or(true, |route| matches!(route.speaks, Speaks::Anything | Speaks::Shape));
    let is_unusual =
        route.is_err() && !upgrade && is_unusual(method, path, (query, &parts.headers), has_body);
    if is_unusual {
        // It may run a model as a POST does.
        route = Ok(route_of(&Method::POST).unwrap_or(Route::new(Speaks::Anything)));
    }
    let may_detach = worker.plan.refuse_detached && (is_unusual || *method == Method::POST);
    let is_batch = may_detach && begins_detached(path, query, &parts.headers);
    let work = match worker.detached.job(path, query) {
        Some(job) if *method == Method::GET && route.is_err() && !upgrade => {
            route = Ok(Route::new(Speaks::Anything));
            Work::Fetched(job)
        }
        _ => Work::at(&route, path, worker.control.gate.is_some()),
    };
    Routed { route, upgrade, kind: RequestKind { is_batch, is_unusual }, work }
}

impl Opened {
    /// Changes the head for the upstream.
    pub(crate) fn rewrite(&mut self, Request { parts, has_body, .. }: &mut Request) {
        let target = std::mem::take(&mut self.target);
        let worker = &self.in_flight.worker;
        let upstream = &worker.plan.upstreams[self.in_flight.upstream];
        rewrite(parts, target, upstream, self.upgrade.is_some(), *has_body);
        if worker.plan.forwards {
            let is_trusted = self.resolver.trusts_peer(worker);
            let (peer, is_tls) = (self.in_flight.client.peer(), self.in_flight.client.is_tls());
            forwarded::append(&mut parts.headers, Sender { peer, is_trusted, is_tls });
        }
        self.in_flight.meter(|metering| metering.trace_onward(&mut parts.headers));
    }
}

impl Undecided {
    /// Decides if the request is sent, and changes its head for the usage that is requested. `body`: its body, if an
    /// earlier call needed that.
    pub(crate) fn decide(
        &mut self,
        in_flight: &InFlight,
        parts: &mut Parts,
        body: Option<&Gathered>,
    ) -> Result<Decision, Answer> {
        let Self { kind, client, begun, terms, usage } = self;
        if terms.is_none() {
            *terms = admit(in_flight, *kind, body)?;
        }
        let Some(terms) = *terms else { return Ok(Decision::NeedBody) };
        if terms.refuse_uncountable {
            // A coding may hide the count: a repeated word looks like a bomb.
            parts.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        let (worker, index) = (&in_flight.worker, in_flight.upstream);
        let (upstream, profile) = (&worker.plan.upstreams[index], &worker.profiles[index]);
        let policy = UsagePolicy { upstream, profile, client: *client, now: *begun };
        let Some((edited, step)) = usage.decide(in_flight, policy, parts, body) else {
            return Ok(Decision::NeedBody);
        };
        admit_uncounted(in_flight, terms, step)?;
        Ok(Decision::Send(edited))
    }
}
