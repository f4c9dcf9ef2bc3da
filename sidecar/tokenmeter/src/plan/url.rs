//! The URL of an upstream, `http://HOST:PORT[/PREFIX]`, parsed into host, port and prefix. Every error has a remedy.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The URL of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    /// The host name or address; an IPv6 address without brackets.
    pub(crate) host: String,
    /// The port.
    pub(crate) port: u16,
    /// Empty, or a path that begins with a slash and does not end with one.
    pub(crate) prefix: String,
}

/// An error in a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UrlError {
    /// The problem. It never holds the URL, which may hold a password.
    pub(crate) problem: &'static str,
    /// The action that solves it.
    pub(crate) remedy: &'static str,
}

impl Url {
    /// Parses a URL.
    pub(crate) fn parse(text: &str) -> Result<Self, UrlError> {
        let rest = scheme(text)?;
        if rest.contains(['?', '#']) {
            return error("the URL has a query or a fragment", "end it after the path");
        }
        let (authority, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, ""),
        };
        if authority.contains('@') {
            return error(
                "the URL holds credentials",
                "remove them: the clients' own Authorization fields are forwarded",
            );
        }
        let (host, port) = split_port(authority)?;
        let prefix = path.trim_end_matches('/');
        if !prefix.bytes().all(|byte| byte.is_ascii_graphic()) {
            return error("the URL's path has an invalid character", "write it percent-encoded");
        }
        Ok(Self { host: checked_host(host)?, port, prefix: prefix.to_owned() })
    }

    /// Returns `HOST:PORT`, an IPv6 address in brackets.
    pub(crate) fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority(), self.prefix)
    }
}

fn scheme(text: &str) -> Result<&str, UrlError> {
    match text.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => Ok(rest),
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("https") => error(
            "TLS to the upstream is not supported yet",
            "put a TLS client (nginx, envoy, stunnel) beside tokenmeter and name its plain http:// port here",
        ),
        Some(_) => error("the URL's scheme is not http", URL_REMEDY),
        None => error("not a URL", URL_REMEDY),
    }
}

fn split_port(authority: &str) -> Result<(&str, u16), UrlError> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let port = match port {
        None => HTTP_PORT,
        Some(digits) => match digits.parse() {
            Ok(port) if port > 0 && digits.bytes().all(|byte| byte.is_ascii_digit()) => port,
            _ => return error("the URL's port is not a number from 1 to 65535", URL_REMEDY),
        },
    };
    Ok((host, port))
}

fn checked_host(host: &str) -> Result<String, UrlError> {
    if let Some(v6) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return match v6.parse::<Ipv6Addr>() {
            Ok(address) => Ok(address.to_string()),
            Err(_) => error("the URL's host is not an IPv6 address", "write it as in http://[::1]:8000"),
        };
    }
    if host.is_empty() {
        return error("the URL names no host", URL_REMEDY);
    }
    if host.contains(':') {
        return error("an IPv6 address in a URL needs brackets", "write it as in http://[::1]:8000");
    }
    let numeric = host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let name = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    if !name || (numeric && host.parse::<Ipv4Addr>().is_err()) {
        return error("the URL's host is neither a name nor an address", URL_REMEDY);
    }
    Ok(host.to_owned())
}

fn error<T>(problem: &'static str, remedy: &'static str) -> Result<T, UrlError> {
    Err(UrlError { problem, remedy })
}

/// The remedy for an invalid URL.
pub(crate) const URL_REMEDY: &str = "write http://HOST:PORT, as in http://127.0.0.1:8000";

/// The default port of `http`.
const HTTP_PORT: u16 = 80;

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
