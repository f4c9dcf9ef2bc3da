//! The URL of an upstream, `http(s)://HOST[:PORT][/PREFIX]` or `unix:PATH`, parsed into address and prefix. Every error
//! has a remedy.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;

use connect::{Address, HttpProxy, Target, Tls, TlsError, TlsFiles};

/// The URL of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    /// The host and port, or the socket.
    pub(crate) address: Address,
    /// True for `https`.
    pub(crate) is_secure: bool,
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
        if let Some(path) = text.strip_prefix("unix:") {
            let address = Address::Unix(socket_path(path)?);
            return Ok(Self { address, is_secure: false, prefix: String::new() });
        }
        let (is_secure, rest) = scheme(text)?;
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
        let (host, port) = split_port(authority, if is_secure { HTTPS_PORT } else { HTTP_PORT })?;
        let prefix = path.trim_end_matches('/');
        if !prefix.bytes().all(|byte| byte.is_ascii_graphic()) {
            return error("the URL's path has an invalid character", "write it percent-encoded");
        }
        Ok(Self { address: Address::host(&checked_host(host)?, port), is_secure, prefix: prefix.to_owned() })
    }

    /// Returns the host, if the URL has one.
    pub(crate) fn host(&self) -> Option<&str> {
        match &self.address {
            Address::Host { host, .. } => Some(host),
            Address::Unix(_) => None,
        }
    }

    /// Returns true of `https` with a name as its host. Such a server selects its site by that name in the handshake,
    /// and many refuse requests for another one; an address or `localhost` names no site.
    pub(crate) fn has_named_tls(&self) -> bool {
        self.is_secure
            && self.host().is_some_and(|host| host != "localhost" && host.parse::<IpAddr>().is_err())
    }

    /// Returns the value of the field `Host` for this URL: without the port if it is the scheme's own.
    pub(crate) fn host_field(&self) -> String {
        let own = if self.is_secure { HTTPS_PORT } else { HTTP_PORT };
        match &self.address {
            Address::Host { host, port } if *port == own && !host.contains(':') => host.to_string(),
            address => address.authority(),
        }
    }

    /// Returns the server as it is reached, through a proxy if there is one, with TLS as in `files` if the scheme is
    /// `https`.
    pub(crate) fn target(&self, files: &TlsFiles, proxy: Option<HttpProxy>) -> Result<Target, TlsError> {
        let tls = if self.is_secure { Some(Tls::read(files)?) } else { None };
        Ok(Target::through(self.address.clone(), tls, proxy))
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match (&self.address, self.is_secure) {
            (Address::Unix(_), _) => "",
            (Address::Host { .. }, true) => "https://",
            (Address::Host { .. }, false) => "http://",
        };
        write!(f, "{scheme}{}{}", self.address, self.prefix)
    }
}

/// Returns true for `https`, and the text after the scheme.
fn scheme(text: &str) -> Result<(bool, &str), UrlError> {
    match text.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => Ok((false, rest)),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => Ok((true, rest)),
        Some(_) => error("the URL's scheme is neither http nor https", URL_REMEDY),
        None => error("not a URL", URL_REMEDY),
    }
}

/// Returns the path of a Unix socket, the text after `unix:`. Like all paths, it is absolute or relative to the
/// directory in which the process is started.
pub(super) fn socket_path(path: &str) -> Result<Arc<Path>, UrlError> {
    let remedy = "write unix:PATH, as in unix:/run/vllm.sock";
    if path.starts_with("//") {
        return error("`unix:` is followed by two slashes, as if a Unix socket had a host", remedy);
    }
    if path.is_empty() || path.ends_with('/') {
        return error("the path of the Unix socket does not end in a file name", remedy);
    }
    if path.len() > SOCKET_PATH_MAX_BYTES {
        return error(
            "the path of the Unix socket is longer than 107 bytes",
            "use a shorter path: this is the kernel's limit",
        );
    }
    if path.chars().any(char::is_control) {
        return error("the path of the Unix socket has an invalid character", remedy);
    }
    Ok(Path::new(path).into())
}

fn split_port(authority: &str, default: u16) -> Result<(&str, u16), UrlError> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let port = match port {
        None => default,
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
pub(crate) const URL_REMEDY: &str = "write http://HOST:PORT, as in http://127.0.0.1:8000, or https://HOST";

/// The default port of `http`.
const HTTP_PORT: u16 = 80;

/// The default port of `https`.
const HTTPS_PORT: u16 = 443;

/// The longest path of a Unix socket: `sun_path` without its last NUL.
const SOCKET_PATH_MAX_BYTES: usize = 107;

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
