//! The address of a receiver. Chat systems put a key into the path or the query, so only scheme, host and port are ever
//! shown.

use std::fmt;
use std::net::IpAddr;

use ureq::http::Uri;

/// A validated address.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint(Uri);

/// An invalid address; the error never repeats the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointError {
    /// The problem.
    pub problem: &'static str,
    /// The remedy.
    pub remedy: &'static str,
}

impl Endpoint {
    /// Parses and validates an address.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        let Ok(uri) = text.parse::<Uri>() else { return refuse("it is not a URL", REMEDY) };
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return refuse("its scheme is neither https nor http", REMEDY);
        }
        if uri.host().is_none_or(str::is_empty) {
            return refuse("it names no host", REMEDY);
        }
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return refuse(
                "it contains a user name or a password",
                "remove them, put the secret into a file, and name the file in its own setting",
            );
        }
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
        if has_port && uri.port_u16().is_none_or(|port| port == 0) {
            return refuse("its port is not a number from 1 to 65535", REMEDY);
        }
        Ok(Self(uri))
    }

    /// Returns true if posts leave this machine without TLS.
    pub fn is_unencrypted(&self) -> bool {
        let host = self.0.host().unwrap_or_default().trim_matches(['[', ']']);
        let near = host.eq_ignore_ascii_case("localhost")
            || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        self.0.scheme_str() == Some("http") && !near
    }

    pub(crate) fn uri(&self) -> &Uri {
        &self.0
    }
}

/// Shows scheme, host and port, and `…` for a path or query.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authority = self.0.authority().map_or("", |authority| authority.as_str());
        write!(f, "{}://{authority}", self.0.scheme_str().unwrap_or(""))?;
        match self.0.path_and_query().map(|rest| rest.as_str()) {
            None | Some("" | "/") => Ok(()),
            Some(_) => f.write_str("/…"),
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn refuse<T>(problem: &'static str, remedy: &'static str) -> Result<T, EndpointError> {
    Err(EndpointError { problem, remedy })
}

const REMEDY: &str = "write https://HOST[:PORT]/PATH";

#[cfg(test)]
mod tests {
    use super::Endpoint;

    #[test]
    fn only_scheme_host_and_port_are_shown() {
        for (text, shown) in [
            ("https://hooks.example.com/services/T0/B0/key", "https://hooks.example.com/…"),
            ("http://127.0.0.1:9093?key=1", "http://127.0.0.1:9093/…"),
            ("https://example.com", "https://example.com"),
            ("http://[::1]:80/", "http://[::1]:80"),
        ] {
            let endpoint = Endpoint::parse(text).unwrap();
            assert_eq!(endpoint.to_string(), shown);
            assert_eq!(format!("{endpoint:?}"), shown);
        }
    }

    #[test]
    fn plain_http_beyond_loopback_is_unencrypted() {
        for (text, clear) in [
            ("http://hooks.example.com/key", true),
            ("http://10.0.0.7:9093/", true),
            ("http://localhost.example.com/", true),
            ("https://hooks.example.com/key", false),
            ("http://localhost:9093/", false),
            ("http://127.0.0.9/", false),
            ("http://[::1]:80/", false),
        ] {
            assert_eq!(Endpoint::parse(text).unwrap().is_unencrypted(), clear, "{text}");
        }
    }

    #[test]
    fn errors_name_the_problem_and_never_the_address() {
        for (text, problem) in [
            ("", "it is not a URL"),
            ("https://exa mple.com/key", "it is not a URL"),
            ("hooks.example.com/key", "it is not a URL"),
            ("hooks.example.com", "its scheme is neither https nor http"),
            ("ftp://example.com/key", "its scheme is neither https nor http"),
            ("/key", "its scheme is neither https nor http"),
            ("https://user:key@example.com/", "it contains a user name or a password"),
            ("https://example.com:0/", "its port is not a number from 1 to 65535"),
            ("https://example.com:99999/", "its port is not a number from 1 to 65535"),
        ] {
            let error = Endpoint::parse(text).unwrap_err();
            assert_eq!(error.problem, problem, "{text}");
            assert!(!error.problem.contains("key") && !error.remedy.contains("key"), "{text}");
        }
    }
}
