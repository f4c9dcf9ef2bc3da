//! Protobuf over HTTP/1.1 on one persistent connection. Invariants: a response is bounded and never decompressed, a
//! redirect is a rejection, and a connection is closed after a failed attempt.

use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, RETRY_AFTER, USER_AGENT,
};
use hyper::{Method, Request, Response, Uri};
use tokio::task::AbortHandle;

use super::{Failure, Reply, connection_error, with_causes, with_hint};
use crate::connector::Connector;
use crate::limits::REPLY_MAX_BYTES;
use crate::plan::{Protocol, Target};

pub(crate) struct Http {
    connector: Connector,
    /// Path and query.
    path: Uri,
    headers: HeaderMap,
    gzip: bool,
    connection: Option<Connection>,
}

/// A connection and the task that drives it; dropping it ends the task.
struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: AbortHandle,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Http {
    pub(super) fn new(target: &Target) -> io::Result<Self> {
        let host = target.uri.authority().map_or("", |authority| authority.as_str());
        let mut headers: HeaderMap = target.headers.iter().cloned().collect();
        headers.insert(HOST, HeaderValue::from_str(host).map_err(io::Error::other)?);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if target.gzip {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let user_agent = HeaderValue::from_static(crate::USER_AGENT);
        headers.entry(USER_AGENT).or_insert(user_agent);
        let path = target.uri.path_and_query().map_or("/", |path| path.as_str());
        let path = path.parse().map_err(io::Error::other)?;
        let connector = Connector::new(target)?;
        Ok(Self { connector, path, headers, gzip: target.gzip, connection: None })
    }

    pub(super) fn body(&self, message: Vec<u8>) -> io::Result<Bytes> {
        if !self.gzip {
            return Ok(message.into());
        }
        let mut encoder = GzEncoder::new(Vec::with_capacity(message.len() / 4), Compression::fast());
        encoder.write_all(&message)?;
        Ok(encoder.finish()?.into())
    }

    pub(super) async fn attempt(&mut self, body: Bytes) -> Result<Reply, Failure> {
        // Taken out, so that every error closes it.
        let mut persistent = self.connection.take();
        if let Some(connection) = &mut persistent
            && connection.sender.ready().await.is_err()
        {
            // The collector closed it.
            persistent = None;
        }
        let mut connection = match persistent {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.path.clone();
        *request.headers_mut() = self.headers.clone();
        let response = connection.sender.send_request(request).await;
        let response = response.map_err(|error| {
            let message = with_causes(&error);
            // A gRPC server sends HTTP/2 frames, the first even before a request.
            let is_other = error.is_parse() || message.contains("received unexpected message");
            Failure::retry(if is_other { with_hint(&message, Protocol::Grpc) } else { message })
        })?;
        check_status(&response)?;
        let plain = response.headers().get(CONTENT_ENCODING).is_none_or(|coding| coding == "identity");
        let reply = bounded(response.into_body()).await;
        if reply.is_some() {
            self.connection = Some(connection);
        }
        Ok(reply.filter(|_| plain))
    }

    async fn connect(&self) -> Result<Connection, Failure> {
        let io = self.connector.clone().connect().await;
        let io = io.map_err(|error| Failure::retry(connection_error(&error)))?;
        let (sender, connection) = http1::Builder::new()
            // The head of a response has the same bound as its body.
            .max_buf_size(REPLY_MAX_BYTES)
            .handshake(io)
            .await
            .map_err(|error| Failure::retry(with_causes(&error)))?;
        let driver = tokio::spawn(connection).abort_handle();
        Ok(Connection { sender, driver })
    }
}

/// Classifies a status; only 429, 502, 503 and 504 are retryable.
fn check_status(response: &Response<Incoming>) -> Result<(), Failure> {
    let status = response.status();
    let error = format!("the collector answers {status}");
    match status.as_u16() {
        200..=299 => Ok(()),
        429 | 502..=504 => Err(Failure::Retry { error, after: retry_after(response.headers()) }),
        300..=399 => Err(Failure::Refused(format!("{error}, and redirects are not followed"))),
        _ => Err(Failure::Refused(error)),
    }
}

/// Returns the wait of `Retry-After`, which is in seconds or a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    httpdate::parse_http_date(text).ok()?.duration_since(SystemTime::now()).ok()
}

/// Returns the whole body; `None` if it is too long or incomplete.
async fn bounded(mut body: Incoming) -> Reply {
    let mut read = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.ok()?.into_data() else { continue };
        if read.len() + data.len() > REPLY_MAX_BYTES {
            return None;
        }
        read.extend_from_slice(&data);
    }
    Some(read.freeze())
}
