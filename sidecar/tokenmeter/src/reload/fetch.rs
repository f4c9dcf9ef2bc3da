//! Published keys by URL: one GET, bounded in time and bytes; https by the system's root certificates
//! and, where the environment names one, a proxy. What comes by http comes from this machine.

use std::sync::Arc;
use std::time::Duration;

use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Error, Proxy};

use crate::plan::tenants::JWKS_BYTES;

/// How long one fetch may take, redirects included.
const FETCH: Duration = Duration::from_secs(5);

/// Redirects that are followed from https; none leads to http. From http none is followed: it leads
/// away from this machine, in clear.
const REDIRECTS: u32 = 3;

/// Asks for sets of keys. Roots are read when it is made.
#[derive(Clone)]
pub(super) struct Fetch(Agent);

impl Fetch {
    pub(super) fn new(secure: bool) -> Self {
        let roots = match secure {
            true => rustls_native_certs::load_native_certs().certs,
            false => Vec::new(),
        };
        let roots: Vec<_> = roots.iter().map(|root| Certificate::from_der(root).to_owned()).collect();
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::new_with_certs(&roots))
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .build();
        let config = Agent::config_builder()
            .https_only(secure)
            .tls_config(tls)
            .proxy(if secure { Proxy::try_from_env() } else { None })
            .timeout_global(Some(FETCH))
            .max_redirects(if secure { REDIRECTS } else { 0 })
            .max_idle_connections(0)
            .user_agent(concat!("tokenmeter/", env!("CARGO_PKG_VERSION")))
            .accept("application/jwk-set+json, application/json")
            .build();
        Self(config.new_agent())
    }

    /// The body of what is there, or why there is none.
    pub(super) fn get(&self, url: &str) -> Result<Vec<u8>, String> {
        let mut response = self.0.get(url).call().map_err(|error| said(&error))?;
        if response.status().is_redirection() {
            return Err("it redirects, and by http no redirect is followed".to_owned());
        }
        response.body_mut().with_config().limit(JWKS_BYTES).read_to_vec().map_err(|error| said(&error))
    }
}

/// What happened, in words that hold no address: the library's may, that of a redirect with its query.
fn said(error: &Error) -> String {
    match error {
        Error::StatusCode(status) => format!("it answered {status}"),
        Error::Io(cause) => format!("it did not answer: {}", cause.kind()),
        Error::Timeout(_) => format!("it took longer than {} s", FETCH.as_secs()),
        Error::HostNotFound => "its host is not known".to_owned(),
        Error::ConnectionFailed => "it cannot be reached".to_owned(),
        Error::Rustls(cause) => format!("TLS failed: {cause}"),
        Error::Tls(_) | Error::TlsRequired => "TLS failed".to_owned(),
        Error::RequireHttpsOnly(_) => "it redirects to a place that is not https".to_owned(),
        Error::TooManyRedirects => format!("it redirects more than {REDIRECTS} times"),
        Error::RedirectFailed | Error::BadUri(_) => "it redirects to no place".to_owned(),
        Error::BodyExceedsLimit(most) => format!("it is larger than {most} bytes"),
        Error::LargeResponseHeader(..) => "its answer's head is too large".to_owned(),
        Error::Protocol(_) | Error::Http(_) => "its answer is not HTTP".to_owned(),
        Error::ConnectProxyFailed(_) | Error::InvalidProxyUrl => "the proxy did not help".to_owned(),
        _ => "it cannot be fetched".to_owned(),
    }
}

#[cfg(test)]
#[path = "fetch_tests.rs"]
mod tests;
