//! One attempt to hand a request to a collector, over either protocol. Nothing here tries twice.

mod grpc;
mod http;

use std::io;
use std::time::Duration;

use bytes::Bytes;

use crate::plan::{Protocol, Signal, Target};
use crate::tls;

/// The way to one collector for one signal, with the connection that is kept.
pub(crate) enum Transport {
    Http(Box<http::Http>),
    Grpc(Box<grpc::Grpc>),
}

/// What a collector that took a request said; `None` if that was too long or not to be read.
pub(crate) type Reply = Option<Bytes>;

/// Why an attempt failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It is not to be tried again.
    Refused(String),
    /// It may be tried again, after the wait that was asked for.
    Again {
        /// What happened.
        what: String,
        /// What the collector asked for.
        wait: Option<Duration>,
    },
}

impl Failure {
    fn again(what: impl std::fmt::Display) -> Self {
        Self::Again { what: what.to_string(), wait: None }
    }
}

impl Transport {
    pub(crate) fn new(target: &Target, signal: Signal) -> io::Result<Self> {
        let tls = tls::config(target)?;
        Ok(match target.protocol {
            Protocol::Http => Self::Http(Box::new(http::Http::new(target, tls)?)),
            Protocol::Grpc => Self::Grpc(Box::new(grpc::Grpc::new(target, tls, signal))),
        })
    }

    /// The request as it goes over the wire again and again.
    pub(crate) fn packed(&self, message: Vec<u8>) -> io::Result<Bytes> {
        match self {
            Self::Http(http) => http.packed(message),
            Self::Grpc(_) => Ok(message.into()),
        }
    }

    /// One attempt. Dropping it closes its connection.
    pub(crate) async fn attempt(&mut self, packed: Bytes) -> Result<Reply, Failure> {
        match self {
            Self::Http(http) => http.attempt(packed).await,
            Self::Grpc(grpc) => grpc.attempt(packed).await,
        }
    }
}

/// Adds the likely cause of an answer that is not in the protocol of its request: the port is the other one's.
fn with_hint(what: &str, other: Protocol) -> String {
    match other {
        Protocol::Grpc => format!("{what}; is it a gRPC port? try --otlp-protocol grpc"),
        Protocol::Http => format!("{what}; is it an HTTP port? try --otlp-protocol http/protobuf"),
    }
}

/// Describes a connection that was not made, with its likely cause.
fn unconnected(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            format!("{error}; is the collector running, and is this its port?")
        }
        _ => error.to_string(),
    }
}

/// An error with what caused it: hyper's and tonic's own words say little.
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
