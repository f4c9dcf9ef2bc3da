//! Asks a server for one of its pages: one GET on a connection of its own, bounded in time and
//! bytes. No redirect is followed: what a server wants us to read elsewhere is not its page.

use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, CONNECTION, HOST, HeaderMap, SERVER, USER_AGENT};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::limits::{ANSWER_BYTES, ANSWER_TIME, HEAD_BYTES};

/// Where a server is.
#[derive(Clone, Debug)]
pub struct Asker {
    /// Name or address, resolved anew for each request.
    pub host: Arc<str>,
    /// Its port.
    pub port: u16,
    /// Put before every path: empty, or `/prefix`.
    pub prefix: Arc<str>,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// The `Server` field.
    pub server: Option<String>,
    /// When the process started, seconds since 1970; llama.cpp says so.
    pub started: Option<f64>,
    /// The body; bytes that are not UTF-8 replaced.
    pub text: String,
}

/// Why nothing came back.
#[derive(Debug)]
pub enum Failure {
    /// No connection came about.
    Connect(io::Error),
    /// The answer broke off, or was none.
    Broken(hyper::Error),
    /// It took longer than [`ANSWER_TIME`].
    Slow,
    /// It was longer than so many bytes.
    Long(usize),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(error) => write!(f, "no connection: {error}"),
            Self::Broken(error) => write!(f, "the answer broke off: {error}"),
            Self::Slow => write!(f, "no answer within {} s", ANSWER_TIME.as_secs()),
            Self::Long(most) => write!(f, "the answer is longer than {} MiB", most >> 20),
        }
    }
}

impl std::error::Error for Failure {}

impl Asker {
    /// Asks for `path`, for an answer as long as a server's page may be.
    pub async fn get(&self, path: &str) -> Result<Answer, Failure> {
        self.get_at_most(path, ANSWER_BYTES).await
    }

    /// Asks for `path`, for an answer of so many bytes at most; with its time.
    pub async fn get_at_most(&self, path: &str, bytes: usize) -> Result<Answer, Failure> {
        timeout(ANSWER_TIME, self.exchange(path, bytes)).await.unwrap_or(Err(Failure::Slow))
    }

    /// Asks for `path` and waits, for callers that have a thread of their own.
    pub fn get_and_wait(&self, path: &str) -> Result<Answer, Failure> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(Failure::Connect)?;
        let answer = runtime.block_on(self.get(path));
        // A name that is still being resolved would hold us up.
        runtime.shutdown_background();
        answer
    }

    async fn exchange(&self, path: &str, bytes: usize) -> Result<Answer, Failure> {
        let stream = TcpStream::connect((&*self.host, self.port)).await.map_err(Failure::Connect)?;
        let (mut sender, connection) = http1::Builder::new()
            .max_buf_size(HEAD_BYTES)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(Failure::Broken)?;
        // Its drop ends the connection, also when we are the ones who gave up.
        let mut driver = JoinSet::new();
        driver.spawn(connection);
        let response = sender.send_request(self.request(path)).await.map_err(Failure::Broken)?;
        answer(response, bytes).await
    }

    fn request(&self, path: &str) -> Request<Empty<Bytes>> {
        let host = match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        };
        Request::get(format!("{}{path}", self.prefix))
            .header(HOST, host)
            .header(USER_AGENT, concat!("tokenmeter/", env!("CARGO_PKG_VERSION")))
            .header(ACCEPT, "text/plain;version=0.0.4, */*;q=0.5")
            .header(CONNECTION, "close")
            .body(Empty::new())
            .expect("host and prefix were taken from a URL, the rest is ours")
    }
}

async fn answer(response: Response<Incoming>, bytes: usize) -> Result<Answer, Failure> {
    let (head, body) = response.into_parts();
    let body = match Limited::new(body, bytes).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return Err(Failure::Long(bytes)),
        Err(error) => {
            return Err(match error.downcast() {
                Ok(error) => Failure::Broken(*error),
                Err(_) => Failure::Long(bytes),
            });
        }
    };
    Ok(Answer {
        status: head.status.as_u16(),
        server: field(&head.headers, SERVER.as_str()).map(str::to_owned),
        started: field(&head.headers, "process-start-time-unix").and_then(|text| text.parse().ok()),
        text: String::from_utf8_lossy(&body).into_owned(),
    })
}

fn field<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}
