//! Where notices are posted. Chat systems hide a key in the path or the query, so of the address
//! only scheme, host and port are ever shown.

use std::fmt;
use std::net::IpAddr;

use ureq::http::Uri;

/// A webhook's address, checked.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint(Uri);

/// What is wrong with an address; it never repeats the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointError {
    /// What is wrong.
    pub what: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

impl Endpoint {
    /// Checks what was written.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        let Ok(uri) = text.parse::<Uri>() else { return refuse("it is not a URL", WRITE) };
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return refuse("its scheme is neither https nor http", WRITE);
        }
        if uri.host().is_none_or(str::is_empty) {
            return refuse("it names no host", WRITE);
        }
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return refuse(
                "it holds a name or a password before the host",
                "remove them, and let the receiver know us by `budget_webhook_secret_file`",
            );
        }
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
        if has_port && uri.port_u16().is_none_or(|port| port == 0) {
            return refuse("its port is not a number from 1 to 65535", WRITE);
        }
        Ok(Self(uri))
    }

    /// Whether what is posted can be read on the way: it leaves this machine without TLS.
    pub fn in_clear(&self) -> bool {
        let host = self.0.host().unwrap_or_default().trim_matches(['[', ']']);
        let near = host.eq_ignore_ascii_case("localhost")
            || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        self.0.scheme_str() == Some("http") && !near
    }

    pub(crate) fn uri(&self) -> &Uri {
        &self.0
    }
}

/// Scheme, host and port, and whether there is more.
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

fn refuse<T>(what: &'static str, remedy: &'static str) -> Result<T, EndpointError> {
    Err(EndpointError { what, remedy })
}

const WRITE: &str = "write https://HOST[:PORT]/PATH";

#[cfg(test)]
mod tests {
    use super::Endpoint;

    #[test]
    fn only_where_it_goes_is_shown() {
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
    fn what_leaves_this_machine_without_tls() {
        for (text, clear) in [
            ("http://hooks.example.com/key", true),
            ("http://10.0.0.7:9093/", true),
            ("http://localhost.example.com/", true),
            ("https://hooks.example.com/key", false),
            ("http://localhost:9093/", false),
            ("http://127.0.0.9/", false),
            ("http://[::1]:80/", false),
        ] {
            assert_eq!(Endpoint::parse(text).unwrap().in_clear(), clear, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_and_nothing_repeated() {
        for (text, what) in [
            ("", "it is not a URL"),
            ("https://exa mple.com/key", "it is not a URL"),
            ("hooks.example.com/key", "it is not a URL"),
            ("hooks.example.com", "its scheme is neither https nor http"),
            ("ftp://example.com/key", "its scheme is neither https nor http"),
            ("/key", "its scheme is neither https nor http"),
            ("https://user:key@example.com/", "it holds a name or a password before the host"),
            ("https://example.com:0/", "its port is not a number from 1 to 65535"),
            ("https://example.com:99999/", "its port is not a number from 1 to 65535"),
        ] {
            let error = Endpoint::parse(text).unwrap_err();
            assert_eq!(error.what, what, "{text}");
            assert!(!error.what.contains("key") && !error.remedy.contains("key"), "{text}");
        }
    }
}
