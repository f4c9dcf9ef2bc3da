//! A client's request body as hyper reads it.

use std::error::Error;
use std::io;

use hyper::body::Incoming;

use crate::engine::BodyError;

/// A request body as a client sends it.
pub(crate) type RequestBody = Incoming;

impl From<hyper::Error> for BodyError {
    fn from(error: hyper::Error) -> Self {
        let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
        match cause.map(io::Error::kind) {
            Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => Self::Malformed,
            _ => Self::ClientGone,
        }
    }
}
