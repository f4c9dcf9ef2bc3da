//! Fetches published keys from a URL by one GET, bounded in time and bytes; https uses the system's root certificates
//! and the proxy of the environment. http is for this machine.

use std::sync::Arc;
use std::time::Duration;

use rules::JWKS_BYTES;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Error, Proxy};

/// The timeout of a fetch, redirects included.
const FETCH: Duration = Duration::from_secs(5);

/// The maximum number of redirects from https, none of them to http. From http none is followed: it could lead to
/// another machine without encryption.
const REDIRECTS: u32 = 3;

/// An HTTP client for JWKS. It reads the root certificates once.
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

    /// Returns the body at `url`.
    pub(super) fn get(&self, url: &str) -> Result<Vec<u8>, String> {
        let mut response = self.0.get(url).call().map_err(|error| describe(&error))?;
        if response.status().is_redirection() {
            return Err("it redirects, which is not followed over http".to_owned());
        }
        response.body_mut().with_config().limit(JWKS_BYTES).read_to_vec().map_err(|error| describe(&error))
    }
}

/// Describes an error without its address: a redirect's may hold a secret query.
fn describe(error: &Error) -> String {
    match error {
        Error::StatusCode(status) => format!("it responded {status}"),
        Error::Io(cause) => format!("it did not respond: {}", cause.kind()),
        Error::Timeout(_) => format!("it took longer than {} s", FETCH.as_secs()),
        Error::HostNotFound => "its host name is unknown".to_owned(),
        Error::ConnectionFailed => "it cannot be reached".to_owned(),
        Error::Rustls(cause) => format!("TLS failed: {cause}"),
        Error::Tls(_) | Error::TlsRequired => "TLS failed".to_owned(),
        Error::RequireHttpsOnly(_) => "it redirects to a URL that is not https".to_owned(),
        Error::TooManyRedirects => format!("it redirects more than {REDIRECTS} times"),
        Error::RedirectFailed | Error::BadUri(_) => "it redirects to an invalid URL".to_owned(),
        Error::BodyExceedsLimit(most) => format!("it is larger than {most} bytes"),
        Error::LargeResponseHeader(..) => "its response head is too large".to_owned(),
        Error::Protocol(_) | Error::Http(_) => "its response is not HTTP".to_owned(),
        Error::ConnectProxyFailed(_) | Error::InvalidProxyUrl => "the proxy failed".to_owned(),
        _ => "it cannot be fetched".to_owned(),
    }
}

#[cfg(test)]
#[path = "fetch_tests.rs"]
mod tests;
