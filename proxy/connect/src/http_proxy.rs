//! An HTTP proxy on the way to a server: it opens a tunnel by CONNECT (RFC 9110 §9.3.6).

use std::fmt;
use std::io;

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::address::Address;

/// An HTTP proxy. Its debug form and its texts have no password.
#[derive(Clone)]
pub struct HttpProxy {
    address: Address,
    authorization: Option<HeaderValue>,
}

/// A proxy that cannot be used. The problem never quotes the URL, which may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HttpProxyError(pub &'static str);

impl HttpProxy {
    /// Parses `http://[USER:PASSWORD@]HOST:PORT`.
    pub fn parse(text: &str) -> Result<Self, HttpProxyError> {
        let any = Uri::from_static("https://server");
        let found = Matcher::builder().https(text).build().intercept(&any);
        Self::of(&found.ok_or(HttpProxyError("it is not the URL of a proxy"))?)
    }

    /// The proxy that curl would use for an `https` server: of the first of `https_proxy`, `HTTPS_PROXY`, `all_proxy` and
    /// `ALL_PROXY`, unless `no_proxy` or `NO_PROXY` lists the host. `variable` returns a variable.
    pub fn of_environment(
        host: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, HttpProxyError> {
        let first =
            |names: &[&str]| names.iter().filter_map(|name| variable(name)).find(|text| !text.is_empty());
        let Some(proxy) = first(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]) else {
            return Ok(None);
        };
        Self::parse(&proxy)?;
        let matcher =
            Matcher::builder().https(proxy).no(first(&["no_proxy", "NO_PROXY"]).unwrap_or_default()).build();
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let Ok(server) = format!("https://{host}").parse() else { return Ok(None) };
        matcher.intercept(&server).map(|found| Self::of(&found)).transpose()
    }

    fn of(found: &Intercept) -> Result<Self, HttpProxyError> {
        let uri = found.uri();
        if uri.scheme_str() != Some("http") {
            return Err(HttpProxyError("only proxies with http:// are supported"));
        }
        let host = uri.host().unwrap_or_default();
        let host = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() {
            return Err(HttpProxyError("it names no host"));
        }
        let address = Address::host(host, uri.port_u16().unwrap_or(DEFAULT_PORT));
        Ok(Self { address, authorization: found.basic_auth().cloned() })
    }

    /// Returns the proxy's address.
    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Opens a tunnel to `authority`, `HOST:PORT`, on a connection to the proxy.
    pub(crate) async fn tunnel(
        &self,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
        authority: &str,
    ) -> Result<(), ProxyFault> {
        let mut request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n").into_bytes();
        if let Some(authorization) = &self.authorization {
            request.extend_from_slice(b"Proxy-Authorization: ");
            request.extend_from_slice(authorization.as_bytes());
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(b"\r\n");
        let cut = |error: io::Error| self.fault(format!("cut the connection: {}", error.kind()));
        stream.write_all(&request).await.map_err(cut)?;
        let mut left = HEADS_MAX_BYTES;
        let status = loop {
            let mut head = Vec::with_capacity(256);
            // Byte by byte: what follows the head is the server's.
            while !head.ends_with(b"\r\n\r\n") {
                if left == 0 {
                    return Err(self.fault("sends a response head without an end".to_owned()));
                }
                left -= 1;
                head.push(stream.read_u8().await.map_err(cut)?);
            }
            match status(&head) {
                // An interim response (RFC 9110 §15.2): the final one follows.
                Some(100 | 102..=199) => {}
                status => break status,
            }
        };
        match status {
            Some(200..=299) => Ok(()),
            Some(407) if self.authorization.is_none() => {
                Err(self
                    .fault("requires a user and a password (status 407); write them into its URL".to_owned()))
            }
            Some(407) => {
                Err(self.fault("rejects the user and the password of its URL (status 407)".to_owned()))
            }
            Some(status) => Err(self.fault(format!("answers {status} to CONNECT {authority}"))),
            None => Err(self.fault("does not answer in HTTP".to_owned())),
        }
    }

    /// The fault of this proxy; `text` is the rest of a sentence that begins with the proxy.
    pub(crate) fn fault(&self, text: String) -> ProxyFault {
        ProxyFault(format!("the proxy {} {text}", self.address).into())
    }
}

/// Returns the status of a response head.
fn status(head: &[u8]) -> Option<u16> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let line = std::str::from_utf8(line).ok()?.strip_prefix("HTTP/1.")?;
    line.get(1..)?.strip_prefix(' ')?.get(..3)?.parse().ok()
}

/// A fault of a proxy as a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ProxyFault(Box<str>);

/// Writes the URL without user and password.
impl fmt::Display for HttpProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.address)
    }
}

impl fmt::Debug for HttpProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The port of a proxy whose URL has none, as curl has it.
const DEFAULT_PORT: u16 = 1080;

/// Bytes of a proxy's response head, with those of interim responses before it.
const HEADS_MAX_BYTES: usize = 8 * 1024;
