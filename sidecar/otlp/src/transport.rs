//! One attempt to deliver a request to a collector, over either protocol. `sender` retries.

mod grpc;
mod http;

use std::io;
use std::time::Duration;

use bytes::Bytes;
use connect::ConnectError;

use crate::plan::{Protocol, Signal, Target};

/// The transport to one collector for one signal, with its persistent connection.
pub(crate) enum Transport {
    Http(Box<http::Http>),
    Grpc(Box<grpc::Grpc>),
}

/// The response of a collector that accepted a request; `None` if it was too long or unreadable.
pub(crate) type Reply = Option<Bytes>;

/// The failure of an attempt.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The request must not be retried.
    Refused(String),
    /// The request may be retried.
    Retry {
        /// The error.
        error: String,
        /// The wait that the collector requested.
        after: Option<Duration>,
    },
}

impl Failure {
    fn retry(error: impl std::fmt::Display) -> Self {
        Self::Retry { error: error.to_string(), after: None }
    }
}

impl Transport {
    pub(crate) fn new(target: &Target, signal: Signal) -> io::Result<Self> {
        Ok(match target.protocol {
            Protocol::Http => Self::Http(Box::new(http::Http::new(target)?)),
            Protocol::Grpc => Self::Grpc(Box::new(grpc::Grpc::new(target, signal)?)),
        })
    }

    /// Returns the body for all attempts, compressed if configured.
    pub(crate) fn body(&self, message: Vec<u8>) -> io::Result<Bytes> {
        match self {
            Self::Http(http) => http.body(message),
            Self::Grpc(_) => Ok(message.into()),
        }
    }

    /// Makes one attempt. Dropping the future closes its connection.
    pub(crate) async fn attempt(&mut self, body: Bytes) -> Result<Reply, Failure> {
        match self {
            Self::Http(http) => http.attempt(body).await,
            Self::Grpc(grpc) => grpc.attempt(body).await,
        }
    }
}

/// Adds the likely cause of a response in another protocol: the port belongs to that protocol.
fn with_hint(error: &str, other: Protocol) -> String {
    match other {
        Protocol::Grpc => format!("{error}; if it is a gRPC port, set --otlp-protocol grpc"),
        Protocol::Http => format!("{error}; if it is an HTTP port, set --otlp-protocol http/protobuf"),
    }
}

/// Describes a failed connection, with its likely cause.
fn connection_error(error: &ConnectError) -> String {
    match error {
        ConnectError::Io(cause) if cause.kind() == io::ErrorKind::ConnectionRefused => {
            format!("{error}; check that the collector runs and listens on this port")
        }
        _ => error.to_string(),
    }
}

/// Formats an error with its causes, because the messages of hyper and tonic omit them.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let more = next.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = next.source();
    }
    text
}
