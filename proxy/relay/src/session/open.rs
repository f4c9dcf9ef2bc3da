//! The handshake of a WebSocket: it is admitted as a request is, and its messages are metered if its path is known.

use std::rc::Rc;

use exchange::{RoleSource, Socket, TenantResolution, models_of_head, socket};
use http::header::{HeaderName, SEC_WEBSOCKET_EXTENSIONS};
use http::{HeaderMap, StatusCode, Uri};
use usage::Policy;

use super::Session;
use super::responses::{Origin, Responses};
use crate::Passthrough;
use crate::conn::client::Client;
use crate::request::admission::admit_tunnel;
use crate::request::answer::Answer;
use crate::request::headers::take_out;
use crate::request::policy::may_ask_for;
use crate::request::tenant::resolve_by_body;
use crate::state::WorkerState;

/// A request to switch protocols.
pub(crate) struct Handshake<'a> {
    /// The index of the upstream in the plan.
    pub(crate) upstream: usize,
    /// The target as sent to the upstream.
    pub(crate) target: &'a Uri,
    pub(crate) headers: &'a mut HeaderMap,
    pub(crate) client: &'a Rc<Client>,
    pub(crate) role: RoleSource,
}

/// The session of a tunnel, or the reason why it is not metered.
pub(crate) type Opened = Result<Box<Session>, Passthrough>;

/// Admits a request to switch protocols. `resolve` resolves its tenant, and is called only if that is needed.
pub(crate) fn open(
    worker: &Rc<WorkerState>,
    handshake: Handshake<'_>,
    resolve: impl FnOnce(&HeaderMap) -> TenantResolution,
) -> Result<Opened, Answer> {
    let Handshake { upstream, target, headers, client, role } = handshake;
    let dialect = match socket(target.path()) {
        Socket::Metered(dialect) if may_ask_for(headers, b"websocket") => Some(dialect),
        Socket::Metered(_) | Socket::Unread | Socket::Unknown => None,
    };
    if worker.control.gate.is_none() && dialect.is_none() {
        return Ok(Err(unmetered(target)));
    }
    let mut resolution = resolve(headers);
    resolve_by_body(worker, &mut resolution);
    let tenant = resolution.identity();
    let models = models_of_head(target.path(), target.query(), headers);
    admit_tunnel(worker, upstream, (dialect, &models), &tenant)?;
    let Some(dialect) = dialect else { return Ok(Err(unmetered(target))) };
    if worker.plan.upstreams[upstream].usage != Policy::Observe || worker.control.gate.is_some() {
        // The proxy knows no extension; all known ones compress.
        take_out(headers, &SEC_WEBSOCKET_EXTENSIONS);
    }
    let (headers, is_tls) = (traced(headers), client.is_tls());
    let origin = Origin { upstream, dialect, models, headers, is_tls, tenant, role };
    Ok(Ok(Box::new(Session::new(worker, client, Responses::new(worker, origin)))))
}

/// The session of a connection whose server switches protocols, by the head of its response. Otherwise the request, or
/// the tunnel, is counted by the reason why it is not metered.
pub(crate) fn answered(
    worker: &WorkerState,
    opened: Opened,
    unmetered: Option<Passthrough>,
    (status, headers): (StatusCode, &HeaderMap),
) -> Option<Box<Session>> {
    let unmetered = unmetered?;
    // An empty field agrees on nothing.
    let mut extensions = headers.get_all(SEC_WEBSOCKET_EXTENSIONS).iter();
    let is_compressed = extensions.any(|field| !field.as_bytes().trim_ascii().is_empty());
    let reason = match opened {
        _ if status != StatusCode::SWITCHING_PROTOCOLS => unmetered,
        Ok(session) if !is_compressed => return Some(session),
        Ok(_) => Passthrough::Socket,
        Err(reason) => reason,
    };
    worker.passthrough(reason);
    None
}

/// The reason why a tunnel to this target is not metered.
fn unmetered(target: &Uri) -> Passthrough {
    match socket(target.path()) {
        Socket::Unknown => Passthrough::Upgrade,
        Socket::Metered(_) | Socket::Unread => Passthrough::Socket,
    }
}

/// The fields that name a trace, for the exchanges of the session.
fn traced(headers: &HeaderMap) -> HeaderMap {
    let names = ["traceparent", "tracestate"].map(HeaderName::from_static);
    let fields = headers.iter().filter(|(name, _)| names.contains(name));
    fields.map(|(name, value)| (name.clone(), value.clone())).collect()
}
