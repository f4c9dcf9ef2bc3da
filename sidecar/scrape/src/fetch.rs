//! Fetches a page of a server: one GET on a connection of its own, bounded in time and bytes. Redirects are not
//! followed, because their target is not the server's page.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use connect::{Address, ConnectError, Offer, Target};
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper::Request;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONNECTION, HOST, HeaderMap, HeaderValue, SERVER, USER_AGENT};
use hyper_util::rt::TokioIo;
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::limits::{BODY_MAX_BYTES, HEAD_MAX_BYTES, RESPONSE_MAX_TIME};

/// A client for the pages of one server.
#[derive(Clone, Debug)]
pub struct Fetcher {
    /// The server, and how it is reached.
    pub target: Target,
    /// Prefix of every path: empty, or `/prefix`.
    pub prefix: Arc<str>,
}

/// A token that permits a request. Its debug form hides it.
#[derive(Clone, Debug)]
pub struct BearerToken(HeaderValue);

impl BearerToken {
    /// Makes it of a text; `None` if a header field cannot hold the text.
    pub fn new(text: &str) -> Option<Self> {
        let mut value = HeaderValue::from_str(&format!("Bearer {text}")).ok()?;
        value.set_sensitive(true);
        Some(Self(value))
    }
}

/// A response.
#[derive(Debug)]
pub struct Response {
    /// HTTP status.
    pub status: u16,
    /// The `Server` field.
    pub server: Option<String>,
    /// Start of the process, seconds since 1970; llama.cpp sends it.
    pub started: Option<f64>,
    /// The body, with invalid UTF-8 replaced.
    pub text: String,
}

/// The error of a request without a response.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Connect(ConnectError),
    /// The request could not be started.
    #[error("the request could not be started: {0}")]
    Runtime(io::Error),
    /// The response was cut or invalid.
    #[error("the response was cut or invalid: {0}")]
    Broken(hyper::Error),
    /// The response took longer than [`RESPONSE_MAX_TIME`].
    #[error("no response within {} s", RESPONSE_MAX_TIME.as_secs())]
    Slow,
    /// The response was longer than this number of bytes.
    #[error("the response is longer than {} MiB", .0 >> 20)]
    Long(usize),
}

impl Fetcher {
    /// A client of a server without TLS. `prefix` is empty, or `/prefix`.
    pub fn http(host: &str, port: u16, prefix: &str) -> Self {
        Self { target: Target::new(Address::host(host, port), None), prefix: prefix.into() }
    }

    /// Fetches `path`, up to [`BODY_MAX_BYTES`].
    pub async fn get(&self, path: &str) -> Result<Response, Error> {
        self.get_at_most(path, BODY_MAX_BYTES).await
    }

    /// Fetches `path`, up to `bytes` of the body.
    pub async fn get_at_most(&self, path: &str, bytes: usize) -> Result<Response, Error> {
        self.get_with_token(path, bytes, None).await
    }

    /// Fetches `path` with a token, up to `bytes` of the body.
    pub async fn get_with_token(
        &self,
        path: &str,
        bytes: usize,
        token: Option<&BearerToken>,
    ) -> Result<Response, Error> {
        timeout(RESPONSE_MAX_TIME, self.exchange(path, bytes, token)).await.unwrap_or(Err(Error::Slow))
    }

    /// Fetches `path` and blocks, for callers with a thread of their own.
    pub fn get_blocking(&self, path: &str) -> Result<Response, Error> {
        self.get_blocking_with_token(path, None)
    }

    /// Fetches `path` with a token and blocks, for callers with a thread of their own.
    pub fn get_blocking_with_token(
        &self,
        path: &str,
        token: Option<&BearerToken>,
    ) -> Result<Response, Error> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(Error::Runtime)?;
        let answer = runtime.block_on(self.get_with_token(path, BODY_MAX_BYTES, token));
        // A pending name resolution must not block the return.
        runtime.shutdown_background();
        answer
    }

    async fn exchange(
        &self,
        path: &str,
        bytes: usize,
        token: Option<&BearerToken>,
    ) -> Result<Response, Error> {
        let stream = self.target.connect(Offer::Http1, RESPONSE_MAX_TIME).await.map_err(Error::Connect)?;
        let (mut sender, connection) = http1::Builder::new()
            .max_buf_size(HEAD_MAX_BYTES)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(Error::Broken)?;
        // Dropping it ends the connection, also after a timeout of this request.
        let mut driver = JoinSet::new();
        driver.spawn(connection);
        let response = sender.send_request(self.request(path, token)).await.map_err(Error::Broken)?;
        read(response, bytes).await
    }

    fn request(&self, path: &str, token: Option<&BearerToken>) -> Request<Empty<Bytes>> {
        let mut request = Request::get(format!("{}{path}", self.prefix))
            .header(HOST, self.target.address().authority())
            .header(USER_AGENT, concat!("tokenmeter/", env!("CARGO_PKG_VERSION")))
            .header(ACCEPT, "text/plain;version=0.0.4, */*;q=0.5")
            .header(CONNECTION, "close")
            .body(Empty::new())
            .expect("host and prefix come from a URL, the rest is constant");
        if let Some(BearerToken(field)) = token {
            request.headers_mut().insert(AUTHORIZATION, field.clone());
        }
        request
    }
}

async fn read(response: hyper::Response<Incoming>, bytes: usize) -> Result<Response, Error> {
    let (head, body) = response.into_parts();
    let body = match Limited::new(body, bytes).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return Err(Error::Long(bytes)),
        Err(error) => {
            return Err(match error.downcast() {
                Ok(error) => Error::Broken(*error),
                Err(_) => Error::Long(bytes),
            });
        }
    };
    Ok(Response {
        status: head.status.as_u16(),
        server: field(&head.headers, SERVER.as_str()).map(str::to_owned),
        started: field(&head.headers, "process-start-time-unix").and_then(|text| text.parse().ok()),
        text: String::from_utf8_lossy(&body).into_owned(),
    })
}

fn field<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::BearerToken;

    #[test]
    fn token_is_hidden_and_fits_a_field() {
        let token = BearerToken::new("secret").unwrap();
        assert!(!format!("{token:?}").contains("secret"), "{token:?}");
        assert!(BearerToken::new("two\nlines").is_none());
    }
}
