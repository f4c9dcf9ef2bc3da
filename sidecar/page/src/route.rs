//! Responses by path. A pure function of a request head; the server owns the sockets.
//!
//! | path | response |
//! |---|---|
//! | `/`, `/assets/*` | the live page |
//! | `/api/now` | the state, as JSON |
//! | `/api/stream` | the state each second, as events |
//! | `/api/history` | the last points of a scope |
//! | `/api/curve`, `/api/spend` | the degradation curve; the month's spend from the ledger |
//! | `/metrics` | the scrape page |
//! | `/livez` | 200 while this thread runs |
//! | `/readyz` | 200 with a line per warning, or 503 with a line per reason |
//! | `POST /drain` | 202 once the drain is ordered; 401 without the token, 403 if none is configured |
//! | `/drained` | 200 once the process has drained; until then it waits |

use std::rc::Rc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{
    ACCEPT, ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap,
    HeaderName, HeaderValue, WWW_AUTHENTICATE,
};
use hyper::{Method, Request, Response, StatusCode};
use live::Readiness;

use crate::assets::Assets;
use crate::history;
use crate::host::AllowedHosts;
use crate::render;
use crate::source::{Content, Drained, JSON, NoAccess, NoDrain, Source};
use crate::state::State;

/// The state of the responses.
pub(crate) struct Routes {
    pub(crate) source: Box<dyn Source>,
    pub(crate) hosts: AllowedHosts,
    pub(crate) assets: Assets,
    pub(crate) state: Rc<State>,
}

impl Routes {
    /// Returns the routes to a source, with its first sample.
    pub(crate) fn new(mut source: Box<dyn Source>, hosts: AllowedHosts) -> Self {
        let state = Rc::new(State::new(source.sample()));
        Self { source, hosts, assets: Assets::default(), state }
    }

    /// Samples the state.
    pub(crate) fn sample(&mut self) {
        self.state.set(self.source.sample());
    }

    /// Returns the answer to a request, whose body is never read.
    pub(crate) fn answer<B>(&self, request: &Request<B>) -> Answer {
        match self.hosts.check(request) {
            Ok(()) => {}
            Err(StatusCode::MISDIRECTED_REQUEST) => {
                return Answer::Now(text(StatusCode::MISDIRECTED_REQUEST, MISDIRECTED.to_owned()));
            }
            Err(status) => {
                let why = "the request needs exactly one valid Host field\n";
                return Answer::Now(text(status, why.to_owned()));
            }
        }
        let path = request.uri().path();
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        match path {
            "/drain" if request.method() == Method::POST => {
                return Answer::Now(drain(self.source.drain(bearer(request.headers()))));
            }
            "/drain" => return Answer::Now(not_allowed("POST")),
            _ if !is_read => return Answer::Now(not_allowed("GET, HEAD")),
            "/metrics" => {}
            path if path.starts_with("/api/") => {}
            _ => return self.open(request),
        }
        if let Err(refusal) = self.source.access(bearer(request.headers())) {
            return Answer::Now(refused(if path == "/metrics" { TEXT } else { JSON }, refusal));
        }
        self.guarded(request)
    }

    /// Answers a path that needs no token.
    fn open<B>(&self, request: &Request<B>) -> Answer {
        let path = request.uri().path();
        if let Some(asset) = self.assets.answer(path, request.headers()) {
            return Answer::Now(asset);
        }
        Answer::Now(match path {
            "/livez" => text(StatusCode::OK, "ok\n".to_owned()),
            "/readyz" => readyz(self.source.ready()),
            "/drained" => match self.source.drained() {
                Some(drained) => return Answer::Drained(drained),
                // A wait without an end would hold its connection.
                None => drain(Err(NoDrain::none())),
            },
            _ => text(StatusCode::NOT_FOUND, PATHS.to_owned()),
        })
    }

    /// Returns true if a stream that began with this token may go on: the token may have been replaced since.
    pub(crate) fn may_go_on(&self, token: Option<&str>) -> bool {
        self.source.access(token).is_ok()
    }

    /// Answers a path whose numbers need the token, if there is one.
    fn guarded<B>(&self, request: &Request<B>) -> Answer {
        let content = match request.uri().path() {
            "/metrics" => {
                let fields = request.headers().get_all(ACCEPT).iter();
                let accept: Vec<_> = fields.filter_map(|field| field.to_str().ok()).collect();
                self.source.metrics(&accept.join(","))
            }
            "/api/now" => return Answer::Now(respond(JSON, Full::new(self.state.json()))),
            // A stream has no end that the response to HEAD could wait for.
            "/api/stream" if request.method() == Method::HEAD => {
                return Answer::Now(respond(EVENTS, Full::default()));
            }
            "/api/stream" => return Answer::Stream(bearer(request.headers()).map(str::to_owned)),
            "/api/history" => match history::content(&*self.source, request.uri().query()) {
                Ok(content) => content,
                Err((status, why)) => return Answer::Now(error(JSON, status, &why)),
            },
            "/api/curve" => match self.source.curve() {
                Some(content) => content,
                None => return Answer::Now(error(JSON, StatusCode::NOT_FOUND, NO_CURVE)),
            },
            "/api/spend" => match self.source.spend() {
                Some(content) => content,
                None => return Answer::Now(error(JSON, StatusCode::NOT_FOUND, NO_LEDGER)),
            },
            _ => return Answer::Now(error(JSON, StatusCode::NOT_FOUND, API_PATHS)),
        };
        Answer::Render(content, render::accepts_gzip(request.headers()))
    }
}

/// The answer to a request.
pub(crate) enum Answer {
    /// A complete response.
    Now(Response<Full<Bytes>>),
    /// Content to render, and true if it may be compressed.
    Render(Content, bool),
    /// A stream of events, and the token of its request.
    Stream(Option<String>),
    /// A response for the end of the drain.
    Drained(Drained),
}

fn not_allowed(methods: &'static str) -> Response<Full<Bytes>> {
    let body = format!("only {} is allowed\n", methods.replace(", ", " or "));
    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, body);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    response
}

/// Returns the token of `Authorization: Bearer TOKEN`.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn refused(content_type: &'static str, refusal: NoAccess) -> Response<Full<Bytes>> {
    match refusal {
        NoAccess::Token => unauthorized(error(
            content_type,
            StatusCode::UNAUTHORIZED,
            "write `Authorization: Bearer` with the token of the file admin_token_file",
        )),
        NoAccess::Unreadable(why) => error(content_type, StatusCode::INTERNAL_SERVER_ERROR, &why),
    }
}

fn drain(ordered: Result<(), NoDrain>) -> Response<Full<Bytes>> {
    match ordered {
        Ok(()) => text(StatusCode::ACCEPTED, "draining; GET /drained answers at its end\n".to_owned()),
        Err(NoDrain::Token) => {
            let why = "write `Authorization: Bearer` with the token of the file drain_token_file\n";
            unauthorized(text(StatusCode::UNAUTHORIZED, why.to_owned()))
        }
        Err(NoDrain::Off(why)) => text(StatusCode::FORBIDDEN, why + "\n"),
        Err(NoDrain::Unreadable(why)) => text(StatusCode::INTERNAL_SERVER_ERROR, why + "\n"),
    }
}

fn unauthorized(mut response: Response<Full<Bytes>>) -> Response<Full<Bytes>> {
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// Returns the response for the end of the drain.
pub(crate) fn drained() -> Response<Full<Bytes>> {
    text(StatusCode::OK, "drained\n".to_owned())
}

/// The response to HTTP without TLS on the listener with TLS.
pub(crate) fn tls_expected() -> Response<Full<Bytes>> {
    text(StatusCode::BAD_REQUEST, "This listener expects TLS: use an https URL\n".to_owned())
}

/// Returns the response for a stream beyond the limit.
pub(crate) fn too_many_streams() -> Response<Full<Bytes>> {
    error(JSON, StatusCode::SERVICE_UNAVAILABLE, "too many open streams: close a page, or read /api/now")
}

fn readyz(readiness: Readiness) -> Response<Full<Bytes>> {
    match readiness {
        Readiness::Ready => text(StatusCode::OK, "ok\n".to_owned()),
        Readiness::Impaired(warnings) => text(StatusCode::OK, lines("ok", &warnings)),
        Readiness::NotReady(reasons) => text(StatusCode::SERVICE_UNAVAILABLE, lines("not ready", &reasons)),
    }
}

fn lines(word: &str, lines: &[String]) -> String {
    let all = std::iter::once(word).chain(lines.iter().map(String::as_str));
    all.flat_map(|line| [line, "\n"]).collect()
}

/// Returns the response of an error, in JSON where the response would be JSON.
pub(crate) fn error(content_type: &'static str, status: StatusCode, why: &str) -> Response<Full<Bytes>> {
    if content_type != JSON {
        return text(status, format!("{why}\n"));
    }
    let body = serde_json::json!({ "error": why }).to_string();
    let mut response = respond(JSON, Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = respond(TEXT, Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response
}

pub(crate) fn respond<B>(content_type: &'static str, body: B) -> Response<B> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    for (name, value) in COMMON_FIELDS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Header fields of every response: no caching, no content sniffing, and the page may load, run and read nothing but
/// what this listener serves.
const COMMON_FIELDS: [(HeaderName, &str); 4] = [
    (CACHE_CONTROL, "no-store"),
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
         frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    ),
    (HeaderName::from_static("x-content-type-options"), "nosniff"),
    (HeaderName::from_static("referrer-policy"), "no-referrer"),
];

/// The media type of a stream.
pub(crate) const EVENTS: &str = "text/event-stream";

const TEXT: &str = "text/plain; charset=utf-8";

const PATHS: &str = "the paths are /, /metrics, /api/, /livez, /readyz, /drain and /drained\n";
const API_PATHS: &str = "the paths are /api/now, /api/stream, /api/history, /api/curve and /api/spend";
const NO_CURVE: &str = "this process draws no curve; /metrics has its histograms";
const NO_LEDGER: &str = "there is no ledger; set one with --ledger to see the month's spend";

const MISDIRECTED: &str = "this host name is not allowed: use an IP address or localhost, or add the name to \
                           admin_hosts (protection against DNS rebinding)\n";
