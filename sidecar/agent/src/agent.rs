//! A client whose requests block the caller. A request has a time limit, and bounds on what it reads: a server can
//! neither block it longer nor make it read more.

use std::sync::Arc;
use std::time::Duration;

use ureq::http::HeaderMap;
use ureq::http::request::Builder;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{AsSendBody, Proxy};

/// The servers that an agent talks to, and the bounds of its requests.
#[derive(Clone, Copy, Debug)]
pub struct Options<'r> {
    /// True: only `https` is requested. False: only `http`.
    pub secure: bool,
    /// The trusted certificates (DER), in place of the system's.
    pub roots: Option<&'r [Vec<u8>]>,
    /// True: uses the proxy of the environment (`HTTPS_PROXY` and the like).
    pub through_proxy: bool,
    /// The time of a request, with the connection and the response; `None` without a limit.
    pub within: Option<Duration>,
    /// The maximum number of redirects, each to an address with the same scheme; the response that redirects further is
    /// an error. With 0 it is returned.
    pub redirects: u32,
    /// The maximum bytes of a response's body.
    pub body_max_bytes: u64,
}

/// A client of servers over HTTP. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Agent {
    agent: ureq::Agent,
    within: Option<Duration>,
    redirects: u32,
    body_max_bytes: u64,
}

/// A response, whatever its status.
#[derive(Debug)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The header.
    pub headers: HeaderMap,
    /// The whole body, or why it was not read to its end.
    pub body: Result<Vec<u8>, Error>,
}

/// The reason why a server gave no response: a sentence about the server, without its address, which may hold a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl Agent {
    /// Reads the trusted certificates once, which takes a while.
    pub fn new(options: &Options<'_>) -> Self {
        let Options { secure, within, redirects, body_max_bytes, .. } = *options;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = if secure { certificates(options.roots) } else { Vec::new() };
        let tls = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(provider)
            .root_certs(RootCerts::new_with_certs(&roots))
            .build();
        let config = ureq::Agent::config_builder()
            .https_only(secure)
            .tls_config(tls)
            .proxy(if options.through_proxy { Proxy::try_from_env() } else { None })
            .timeout_global(within)
            .max_redirects(redirects)
            .http_status_as_error(false)
            .max_response_header_size(RESPONSE_HEAD_MAX_BYTES)
            .user_agent(concat!("tokenmeter/", env!("CARGO_PKG_VERSION")))
            .build();
        Self { agent: config.new_agent(), within, redirects, body_max_bytes }
    }

    /// Sends a request with a body, `()` for none, and reads its response.
    ///
    /// # Errors
    /// If there is no response in time.
    pub fn send(&self, request: Builder, body: impl AsSendBody) -> Result<Response, Error> {
        let request = request.body(body);
        let request = request.map_err(|_| Error("its URL or a header field is invalid".to_owned()))?;
        let response = self.agent.run(request).map_err(|error| self.describe(&error))?;
        let (head, mut body) = response.into_parts();
        let body = body.with_config().limit(self.body_max_bytes).read_to_vec();
        let body = body.map_err(|error| self.describe(&error));
        Ok(Response { status: head.status.as_u16(), headers: head.headers, body })
    }

    /// Describes an error without the address, which the library's own text may contain.
    fn describe(&self, error: &ureq::Error) -> Error {
        use ureq::Error as Cause;
        Error(match error {
            Cause::Io(cause) => format!("it did not respond: {}", cause.kind()),
            Cause::Timeout(_) => {
                format!("it took longer than {} s", self.within.unwrap_or_default().as_secs_f64())
            }
            Cause::HostNotFound => "its host name is unknown".to_owned(),
            Cause::ConnectionFailed => "it cannot be reached".to_owned(),
            Cause::Rustls(cause) => format!("TLS failed: {cause}"),
            Cause::Tls(_) | Cause::TlsRequired => "TLS failed".to_owned(),
            Cause::RequireHttpsOnly(_) => "it redirects to a URL that is not https".to_owned(),
            Cause::TooManyRedirects => format!("it redirects more than {} times", self.redirects),
            Cause::RedirectFailed | Cause::BadUri(_) => "it redirects to an invalid URL".to_owned(),
            Cause::BodyExceedsLimit(most) => format!("it is larger than {most} bytes"),
            Cause::LargeResponseHeader(..) => "its response head is too large".to_owned(),
            Cause::Protocol(_) | Cause::Http(_) => "its response is not HTTP".to_owned(),
            Cause::ConnectProxyFailed(_) | Cause::InvalidProxyUrl => "the proxy failed".to_owned(),
            _ => "the request failed".to_owned(),
        })
    }
}

/// Returns the trusted certificates. Skips those of the system that cannot be read; some systems have a few.
fn certificates(roots: Option<&[Vec<u8>]>) -> Vec<Certificate<'static>> {
    let owned = |der: &[u8]| Certificate::from_der(der).to_owned();
    match roots {
        Some(roots) => roots.iter().map(|der| owned(der)).collect(),
        None => rustls_native_certs::load_native_certs().certs.iter().map(|der| owned(der)).collect(),
    }
}

/// The maximum bytes of a response head.
const RESPONSE_HEAD_MAX_BYTES: usize = 64 * 1024;
