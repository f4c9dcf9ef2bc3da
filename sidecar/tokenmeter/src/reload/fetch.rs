//! Fetches published keys from a URL by one GET, bounded in time and bytes; https uses the system's root certificates
//! and the proxy of the environment. http is for this machine.

use std::time::Duration;

use agent::{Agent, Options, Request};
use rules::JWKS_BYTES;

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
        Self(Agent::new(&Options {
            secure,
            roots: None,
            through_proxy: secure,
            within: Some(FETCH),
            redirects: if secure { REDIRECTS } else { 0 },
            body_max_bytes: JWKS_BYTES,
        }))
    }

    /// Returns the body at `url`.
    pub(super) fn get(&self, url: &str) -> Result<Vec<u8>, String> {
        let request = Request::get(url)
            .header("accept", "application/jwk-set+json, application/json")
            .header("connection", "close");
        let response = self.0.send(request, ()).map_err(|error| error.to_string())?;
        match response.status {
            300..=399 => Err("it redirects, which is not followed over http".to_owned()),
            status @ 400.. => Err(format!("it responded {status}")),
            _ => response.body.map_err(|error| error.to_string()),
        }
    }
}

#[cfg(test)]
#[path = "fetch_tests.rs"]
mod tests;
