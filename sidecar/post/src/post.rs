//! One attempt. It has a timeout, and bounds on what it reads: a receiver can neither block it longer nor make it read
//! more. Redirects are not followed, and the response body is read only so that the connection can be reused.

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Error};

use crate::endpoint::Endpoint;
use crate::failure::Failure;

/// Posts to one address.
pub struct Post {
    agent: Agent,
    endpoint: Endpoint,
    refuses_pages: bool,
}

impl Post {
    /// Returns the sender to an address. `roots`: trusted certificates (DER) in place of the system's. `within`: the
    /// timeout of an attempt. `through_proxy`: uses the proxy of the environment (`HTTPS_PROXY` and the like).
    pub fn new(endpoint: Endpoint, roots: Option<&[Vec<u8>]>, within: Duration, through_proxy: bool) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(provider)
            .root_certs(RootCerts::new_with_certs(&certificates(&endpoint, roots)))
            .build();
        let mut config = Agent::config_builder()
            .tls_config(tls)
            .timeout_global(Some(within))
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .max_response_header_size(RESPONSE_HEAD_MAX_BYTES)
            .user_agent(concat!("tokenmeter/", env!("CARGO_PKG_VERSION")));
        if !through_proxy {
            config = config.proxy(None);
        }
        Self { agent: config.build().new_agent(), endpoint, refuses_pages: false }
    }

    /// Makes a success with an HTML page a failure: a login page or a web UI at the address accepts nothing.
    #[must_use]
    pub fn refusing_pages(self) -> Self {
        Self { refuses_pages: true, ..self }
    }

    /// Posts a body with these header fields.
    ///
    /// # Errors
    /// If there is no response in time, its status is not a success, or it is an HTML page that is refused.
    pub fn attempt(&self, headers: &[(&str, &str)], body: &[u8]) -> Result<(), Failure> {
        let mut request = self.agent.post(self.endpoint.uri());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut reply = request.send(body).map_err(|error| Failure::unreachable(describe(&error)))?;
        let retry_after = reply.headers().get("retry-after").and_then(|text| text.to_str().ok());
        let status = reply.status().as_u16();
        let failure = Failure::of_status(status, retry_after);
        let is_html = reply.headers().get("content-type").is_some_and(|kind| is_html(kind.as_bytes()));
        let mut body = reply.body_mut().as_reader().take(RESPONSE_BODY_MAX_BYTES);
        let has_body = body.read(&mut [0]).is_ok_and(|read| read > 0);
        // The status, the content type and whether there is a body decide; its contents do not.
        let _ = io::copy(&mut body, &mut io::sink());
        match failure {
            Some(failure) => Err(failure),
            None if self.refuses_pages && is_html && has_body => Err(Failure::page(status)),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Post {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Post({})", self.endpoint)
    }
}

impl fmt::Display for Post {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.endpoint.fmt(f)
    }
}

/// Returns true for the media type of HTML, with or without parameters.
fn is_html(content_type: &[u8]) -> bool {
    const HTML: &[u8] = b"text/html";
    content_type.trim_ascii_start().get(..HTML.len()).is_some_and(|kind| kind.eq_ignore_ascii_case(HTML))
}

fn certificates(endpoint: &Endpoint, roots: Option<&[Vec<u8>]>) -> Vec<Certificate<'static>> {
    let owned = |der: &[u8]| Certificate::from_der(der).to_owned();
    match roots {
        _ if endpoint.uri().scheme_str() != Some("https") => Vec::new(),
        Some(roots) => roots.iter().map(|der| owned(der)).collect(),
        // Skips certificates that cannot be read; some systems have a few.
        None => rustls_native_certs::load_native_certs().certs.iter().map(|der| owned(der)).collect(),
    }
}

/// Describes an error without the address, which the library's own text may contain.
fn describe(error: &Error) -> String {
    match error {
        Error::Io(cause) => format!("connection failed: {}", cause.kind()),
        Error::Timeout(_) => "timeout".to_owned(),
        Error::HostNotFound => "host not found".to_owned(),
        Error::ConnectionFailed => "connection failed".to_owned(),
        Error::Rustls(cause) => format!("TLS failed: {cause}"),
        Error::Tls(_) | Error::TlsRequired => "TLS failed".to_owned(),
        Error::LargeResponseHeader(..) => "response head too large".to_owned(),
        Error::Protocol(_) | Error::Http(_) => "response is not HTTP".to_owned(),
        Error::ConnectProxyFailed(_) | Error::InvalidProxyUrl => "proxy connection failed".to_owned(),
        _ => "request failed".to_owned(),
    }
}

/// Bytes of a response body that are read; receivers answer `ok`.
const RESPONSE_BODY_MAX_BYTES: u64 = 64 * 1024;

/// The maximum bytes of a response head.
const RESPONSE_HEAD_MAX_BYTES: usize = 32 * 1024;
