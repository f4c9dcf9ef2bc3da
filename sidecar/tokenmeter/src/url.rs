//! An upstream's address as people write it: `http://HOST:PORT[/PREFIX]`. Parsed once, into the
//! three things the relay connects and forwards by; what it refuses, it refuses with a remedy.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Where an upstream is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    /// Name or address, an IPv6 address without its brackets.
    pub(crate) host: String,
    /// Port.
    pub(crate) port: u16,
    /// Empty, or a path that begins with a slash and does not end with one.
    pub(crate) prefix: String,
}

/// What is wrong with a URL, and what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// What is wrong. Never holds the URL itself: it may hold a password.
    pub(crate) what: &'static str,
    /// What to do.
    pub(crate) remedy: &'static str,
}

impl Url {
    /// Parses what was written.
    pub(crate) fn parse(text: &str) -> Result<Self, Refused> {
        let rest = scheme(text)?;
        if rest.contains(['?', '#']) {
            return refuse("the URL has a query or a fragment", "end it after the path");
        }
        let (authority, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, ""),
        };
        if authority.contains('@') {
            return refuse(
                "the URL holds credentials",
                "remove them: the clients' own Authorization fields are passed on",
            );
        }
        let (host, port) = split_port(authority)?;
        let prefix = path.trim_end_matches('/');
        if !prefix.bytes().all(|byte| byte.is_ascii_graphic()) {
            return refuse("the URL's path has a character no path has", "write it percent-encoded");
        }
        Ok(Self { host: checked_host(host)?, port, prefix: prefix.to_owned() })
    }

    /// `HOST:PORT`, as a URL has it.
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

fn scheme(text: &str) -> Result<&str, Refused> {
    match text.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => Ok(rest),
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("https") => refuse(
            "TLS to the upstream is not supported yet",
            "put a TLS client (nginx, envoy, stunnel) beside tokenmeter and name its plain http:// port here",
        ),
        Some(_) => refuse("the URL's scheme is not http", WRITE),
        None => refuse("not a URL", WRITE),
    }
}

fn split_port(authority: &str) -> Result<(&str, u16), Refused> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let port = match port {
        None => HTTP_PORT,
        Some(digits) => match digits.parse() {
            Ok(port) if port > 0 && digits.bytes().all(|byte| byte.is_ascii_digit()) => port,
            _ => return refuse("the URL's port is not a number from 1 to 65535", WRITE),
        },
    };
    Ok((host, port))
}

fn checked_host(host: &str) -> Result<String, Refused> {
    if let Some(v6) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return match v6.parse::<Ipv6Addr>() {
            Ok(address) => Ok(address.to_string()),
            Err(_) => refuse("the URL's host is not an IPv6 address", "write it as in http://[::1]:8000"),
        };
    }
    if host.is_empty() {
        return refuse("the URL names no host", WRITE);
    }
    if host.contains(':') {
        return refuse("an IPv6 address in a URL needs brackets", "write it as in http://[::1]:8000");
    }
    let numeric = host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let name = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    if !name || (numeric && host.parse::<Ipv4Addr>().is_err()) {
        return refuse("the URL's host is neither a name nor an address", WRITE);
    }
    Ok(host.to_owned())
}

fn refuse<T>(what: &'static str, remedy: &'static str) -> Result<T, Refused> {
    Err(Refused { what, remedy })
}

/// The remedy for what is no URL at all.
pub(crate) const WRITE: &str = "write http://HOST:PORT, as in http://127.0.0.1:8000";

/// The port of `http` where none is written.
const HTTP_PORT: u16 = 80;

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
