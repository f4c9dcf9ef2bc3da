//! What a request asks for, read from its body as it passes.

use hyper::HeaderMap;
use scan::{Dialect, Name, Request, RequestScanner};

/// Reads one request body.
pub(crate) struct Asked(RequestScanner);

impl Asked {
    /// A reader for a request with these fields.
    pub(crate) fn new(_dialect: Dialect, _headers: &HeaderMap) -> Self {
        Self(RequestScanner::new())
    }

    /// Reads the next slice.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.0.feed(bytes);
    }

    /// The body is over: what it asked for.
    pub(crate) fn end(&mut self) -> Request {
        self.0.end()
    }

    /// The model named so far.
    pub(crate) fn model(&self) -> Name {
        *self.0.model()
    }
}
