//! One client: a connection that is kept alive between requests, and reopened if it was lost.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};

use super::Load;
use super::report::{Failure, Outcome, Sample};
use super::stream::{Progress, Stream};
use crate::params::Endpoint;

/// A client. Dropping it closes its connection.
#[derive(Debug)]
pub(super) struct Client {
    target: SocketAddr,
    connection: Option<Connection>,
}

#[derive(Debug)]
struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: AbortHandle,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Client {
    pub(super) fn new(load: &Load) -> Self {
        Self { target: load.target, connection: None }
    }

    /// Sends one request and reads the response to its end.
    pub(super) async fn send(&mut self, load: &Load, number: u64) -> Outcome {
        let result = timeout(load.timeout, self.exchange(load, number)).await;
        let outcome = result.unwrap_or(Outcome::Failed(Failure::Timeout));
        match outcome {
            Outcome::Completed(_) => {}
            // The rest of the response must not be read as the next one.
            _ => self.connection = None,
        }
        if let Outcome::Failed(Failure::Connect) = outcome {
            // A failed connect returns at once: without a delay the loop would be busy.
            sleep(RETRY_DELAY).await;
        }
        outcome
    }

    async fn exchange(&mut self, load: &Load, number: u64) -> Outcome {
        let Some(request) = request(load, number) else {
            return Outcome::Failed(Failure::Request);
        };
        let Some(connection) = self.connect().await else {
            return Outcome::Failed(Failure::Connect);
        };
        let sent = Instant::now();
        let Ok(response) = connection.sender.send_request(request).await else {
            return Outcome::Failed(Failure::NoResponse);
        };
        let status = response.status();
        let mut body = response.into_body();
        if !status.is_success() {
            return Outcome::Failed(Failure::Status(status.as_u16()));
        }
        let mut stream = Stream::new(load.endpoint);
        let mut first = None;
        let mut last = sent;
        while let Some(frame) = body.frame().await {
            let now = Instant::now();
            // The connection was lost; whether the response was complete is checked below.
            let Ok(frame) = frame else { break };
            let Some(data) = frame.data_ref() else { continue };
            match stream.read(data) {
                Progress::Nothing => {}
                Progress::Tokens => {
                    first.get_or_insert(now);
                    last = now;
                }
                Progress::Failed(failure) => return Outcome::Failed(failure),
            }
            if load.leave_after.is_some_and(|after| stream.frames() >= after) {
                return Outcome::Left;
            }
        }
        if !stream.ended() {
            return Outcome::Failed(Failure::Cut);
        }
        Outcome::Completed(Sample {
            first: first.map(|first| first - sent),
            last: last - sent,
            duration: sent.elapsed(),
            prompt_tokens: stream.prompt_tokens(),
            output_tokens: stream.output_tokens(),
            reported: stream.reported(),
        })
    }

    async fn connect(&mut self) -> Option<&mut Connection> {
        let alive = match &mut self.connection {
            Some(connection) => connection.sender.ready().await.is_ok(),
            None => false,
        };
        if !alive {
            self.connection = None;
            let stream = TcpStream::connect(self.target).await.ok()?;
            stream.set_nodelay(true).ok()?;
            let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
            // The request on the connection sees its error.
            let driver = tokio::spawn(async { drop(connection.await) }).abort_handle();
            self.connection = Some(Connection { sender, driver });
        }
        self.connection.as_mut()
    }
}

/// The delay after a failed connect: short enough to find a restarted server soon.
const RETRY_DELAY: Duration = Duration::from_millis(10);

fn request(load: &Load, number: u64) -> Option<Request<Full<Bytes>>> {
    let path = match load.endpoint {
        Endpoint::Chat => "/v1/chat/completions",
        Endpoint::Completion => "/v1/completions",
        Endpoint::Native => "/completion",
    };
    let mut request = Request::post(path)
        .header("host", load.target.to_string())
        .header("content-type", "application/json");
    for (name, value) in &load.headers {
        request = request.header(name, value);
    }
    let (name, values) = &load.round;
    if !values.is_empty() {
        request = request.header(name, &values[(number % values.len() as u64) as usize]);
    }
    request.body(Full::new(Bytes::from(load.body(number)))).ok()
}
