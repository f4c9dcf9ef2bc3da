//! Protection against DNS rebinding.
//!
//! A web page can make a browser resolve the attacker's name to 127.0.0.1 and read the response. Such a request names
//! the attacker's host. Therefore a request is answered only if its host is an IP literal, `localhost` or a
//! configured name; others get 421.

use std::net::{Ipv4Addr, Ipv6Addr};

use hyper::Version;
use hyper::header::{HOST, HeaderMap};
use hyper::http::uri::Authority;
use hyper::{Request, StatusCode};

/// The allowed host names of the admin listener, besides IP literals and `localhost`.
#[derive(Clone, Debug, Default)]
pub struct AllowedHosts(Vec<String>);

impl AllowedHosts {
    /// Returns the allowed names. They have no port; comparison ignores case and a trailing dot.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self(names.into_iter().map(|name| canonical(&name)).collect())
    }

    /// Returns `Ok` if the request's host is allowed, else the status of the response.
    pub(crate) fn check<B>(&self, request: &Request<B>) -> Result<(), StatusCode> {
        let named = host_field(request.headers(), request.version())?;
        let absolute = request.uri().authority();
        let mut addressed = named.iter().chain(absolute);
        if addressed.all(|authority| self.allows(authority)) {
            Ok(())
        } else {
            Err(StatusCode::MISDIRECTED_REQUEST)
        }
    }

    fn allows(&self, authority: &Authority) -> bool {
        let host = authority.host();
        if !is_host_and_port(authority) {
            return false;
        }
        if let Some(v6) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            return v6.parse::<Ipv6Addr>().is_ok();
        }
        let host = canonical(host);
        host.parse::<Ipv4Addr>().is_ok() || host == "localhost" || self.0.contains(&host)
    }
}

/// Returns true if the authority has no user information, and nothing but a port behind its host, which ends at a bracket.
fn is_host_and_port(authority: &Authority) -> bool {
    let is_port =
        |rest: &str| rest.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()));
    authority.as_str().strip_prefix(authority.host()).is_some_and(|rest| rest.is_empty() || is_port(rest))
}

/// Returns the `Host` field. It is optional in HTTP/1.0 and required in HTTP/1.1; a request with two is rejected.
fn host_field(headers: &HeaderMap, version: Version) -> Result<Option<Authority>, StatusCode> {
    let mut fields = headers.get_all(HOST).iter();
    match (fields.next(), fields.next()) {
        (None, _) if version < Version::HTTP_11 => Ok(None),
        (Some(only), None) => {
            Authority::try_from(only.as_bytes()).map(Some).map_err(|_| StatusCode::BAD_REQUEST)
        }
        _ => Err(StatusCode::BAD_REQUEST),
    }
}

fn canonical(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
