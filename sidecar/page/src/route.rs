//! Responses by path. A pure function of a request head; the server owns the sockets.
//!
//! | path | response |
//! |---|---|
//! | `/metrics` | the scrape page, rendered by `scrape` |
//! | `/livez` | 200 while this thread runs |
//! | `/readyz` | 200 with a line per warning, or 503 with a line per reason |
//! | `/` | the live page |
//! | `POST /drain` | 202 once the drain is ordered; 401 without the token, 403 if none is configured |
//! | `/drained` | 200 once the process has drained; until then it waits |

use std::time::Instant;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{
    ACCEPT, ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap,
    HeaderName, HeaderValue, WWW_AUTHENTICATE,
};
use hyper::{Method, Request, Response, StatusCode};

use crate::host::AllowedHosts;
use crate::html;
use crate::scrape;
use crate::source::{Drained, NoDrain, Readiness, Scrape, Source};
use crate::speed::Speed;

/// The state of the responses.
pub(crate) struct Routes {
    pub(crate) source: Box<dyn Source>,
    pub(crate) hosts: AllowedHosts,
    pub(crate) speed: Speed,
}

impl Routes {
    /// Samples the totals for the live page's speeds.
    pub(crate) fn sample(&mut self) {
        let models = self.source.view().models;
        self.speed.sample(Instant::now(), &models);
    }

    /// Returns the answer to a request, whose body is never read.
    pub(crate) fn answer<B>(&self, request: &Request<B>) -> Answer {
        match self.hosts.check(request) {
            Ok(()) if request.uri().path() == "/metrics" && is_read(request.method()) => {
                let accept = request.headers().get_all(ACCEPT).iter().filter_map(|field| field.to_str().ok());
                let accept = accept.collect::<Vec<_>>().join(",");
                Answer::Render(self.source.metrics(&accept), scrape::accepts_gzip(request.headers()))
            }
            Ok(()) if request.uri().path() == "/drained" && is_read(request.method()) => {
                // A wait without an end would hold its connection.
                self.source
                    .drained()
                    .map_or_else(|| Answer::Now(drain(Err(NoDrain::none()))), Answer::Drained)
            }
            Ok(()) => Answer::Now(self.small(request)),
            Err(StatusCode::MISDIRECTED_REQUEST) => {
                Answer::Now(text(StatusCode::MISDIRECTED_REQUEST, MISDIRECTED.to_owned()))
            }
            Err(status) => {
                Answer::Now(text(status, "the request needs exactly one valid Host field\n".to_owned()))
            }
        }
    }

    fn small<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        match request.uri().path() {
            "/drain" if request.method() == Method::POST => {
                drain(self.source.drain(bearer(request.headers())))
            }
            "/drain" => not_allowed("POST"),
            _ if !is_read(request.method()) => not_allowed("GET, HEAD"),
            "/livez" => text(StatusCode::OK, "ok\n".to_owned()),
            "/readyz" => readyz(self.source.ready()),
            "/" => self.live(),
            _ => {
                let paths = "the paths are /, /metrics, /livez, /readyz, /drain and /drained\n";
                text(StatusCode::NOT_FOUND, paths.to_owned())
            }
        }
    }

    fn live(&self) -> Response<Full<Bytes>> {
        let view = self.source.view();
        let now = Instant::now();
        let speeds: Vec<_> = view.models.iter().map(|model| self.speed.of(now, model)).collect();
        let body = html::page(&view, &self.source.ready(), &speeds);
        respond("text/html; charset=utf-8", Full::new(Bytes::from(body)))
    }
}

/// The answer to a request.
pub(crate) enum Answer {
    /// A complete response.
    Now(Response<Full<Bytes>>),
    /// A page to render, and true if it may be compressed.
    Render(Scrape, bool),
    /// A response for the end of the drain.
    Drained(Drained),
}

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
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

fn drain(ordered: Result<(), NoDrain>) -> Response<Full<Bytes>> {
    match ordered {
        Ok(()) => text(StatusCode::ACCEPTED, "draining; GET /drained answers at its end\n".to_owned()),
        Err(NoDrain::Token) => {
            let why = "write `Authorization: Bearer` with the token of the file drain_token_file\n";
            let mut response = text(StatusCode::UNAUTHORIZED, why.to_owned());
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            response
        }
        Err(NoDrain::Off(why)) => text(StatusCode::FORBIDDEN, why + "\n"),
        Err(NoDrain::Unreadable(why)) => text(StatusCode::INTERNAL_SERVER_ERROR, why + "\n"),
    }
}

/// Returns the response for the end of the drain.
pub(crate) fn drained() -> Response<Full<Bytes>> {
    text(StatusCode::OK, "drained\n".to_owned())
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

pub(crate) fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = respond("text/plain; charset=utf-8", Full::new(Bytes::from(body)));
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

/// Header fields of every response: no caching, no content sniffing, and a page may load or run nothing but its own
/// style.
const COMMON_FIELDS: [(HeaderName, &str); 4] = [
    (CACHE_CONTROL, "no-store"),
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; \
         form-action 'none'",
    ),
    (HeaderName::from_static("x-content-type-options"), "nosniff"),
    (HeaderName::from_static("referrer-policy"), "no-referrer"),
];

const MISDIRECTED: &str = "this host name is not allowed: use an IP address or localhost, or add the name to \
                           admin_hosts (protection against DNS rebinding)\n";
