//! One attempt to post a notice. Nothing a receiver does holds us for longer than the attempt may
//! take, or makes us read more than it may send: redirects are not followed, and what it answers
//! is read, within bounds, only so that the connection can be used again.

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Error};

use crate::endpoint::Endpoint;
use crate::signature::{SIGNATURE, Secret};

/// Posts notices to one address.
pub(crate) struct Post {
    agent: Agent,
    endpoint: Endpoint,
    secret: Option<Secret>,
}

/// Why a notice was not taken.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The receiver does not want it, and would not want it again.
    Never(String),
    /// It may want it later.
    Later(String),
}

impl Post {
    pub(crate) fn new(
        endpoint: Endpoint,
        secret: Option<Secret>,
        roots: Option<&[Vec<u8>]>,
        within: Duration,
        through_proxy: bool,
    ) -> Self {
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
            .max_response_header_size(REPLY_HEAD_BYTES)
            .user_agent(concat!("tokenmeter/", env!("CARGO_PKG_VERSION")));
        if !through_proxy {
            config = config.proxy(None);
        }
        Self { agent: config.build().new_agent(), endpoint, secret }
    }

    pub(crate) fn attempt(&self, body: &[u8]) -> Result<(), Refusal> {
        let mut request = self.agent.post(self.endpoint.uri()).header("content-type", "application/json");
        if let Some(secret) = &self.secret {
            request = request.header(SIGNATURE, secret.sign(body));
        }
        let mut reply = request.send(body).map_err(|error| Refusal::Later(said(&error)))?;
        let status = reply.status().as_u16();
        // The status counts, whatever comes after it.
        let _ = io::copy(&mut reply.body_mut().as_reader().take(REPLY_BYTES), &mut io::sink());
        match status {
            200..=299 => Ok(()),
            408 | 425 | 429 | 500..=599 => Err(Refusal::Later(format!("it answered {status}"))),
            300..=399 => Err(Refusal::Never(format!("it answered {status}, and redirects are not followed"))),
            _ => Err(Refusal::Never(format!("it answered {status}"))),
        }
    }
}

impl fmt::Display for Post {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.endpoint.fmt(f)
    }
}

fn certificates(endpoint: &Endpoint, roots: Option<&[Vec<u8>]>) -> Vec<Certificate<'static>> {
    let owned = |der: &[u8]| Certificate::from_der(der).to_owned();
    match roots {
        _ if endpoint.uri().scheme_str() != Some("https") => Vec::new(),
        Some(roots) => roots.iter().map(|der| owned(der)).collect(),
        // Those that can be read; on some systems a few cannot.
        None => rustls_native_certs::load_native_certs().certs.iter().map(|der| owned(der)).collect(),
    }
}

/// What happened, in words that hold no address: the library's may.
fn said(error: &Error) -> String {
    match error {
        Error::Io(cause) => format!("it cannot be reached: {}", cause.kind()),
        Error::Timeout(_) => "it took too long".to_owned(),
        Error::HostNotFound => "its host is not known".to_owned(),
        Error::ConnectionFailed => "it cannot be reached".to_owned(),
        Error::Rustls(cause) => format!("TLS failed: {cause}"),
        Error::Tls(_) | Error::TlsRequired => "TLS failed".to_owned(),
        Error::LargeResponseHeader(..) => "its answer's head is too large".to_owned(),
        Error::Protocol(_) | Error::Http(_) => "its answer is not HTTP".to_owned(),
        Error::ConnectProxyFailed(_) | Error::InvalidProxyUrl => "the proxy did not help".to_owned(),
        _ => "it cannot be posted to".to_owned(),
    }
}

/// Bytes of an answer that are read; receivers answer `ok`.
const REPLY_BYTES: u64 = 64 * 1024;

/// Bytes of its head.
const REPLY_HEAD_BYTES: usize = 32 * 1024;
