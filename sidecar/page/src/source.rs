//! The content of the admin listener, and the trait through which it is read. The binary implements [`Source`]; this
//! crate uses no type of metrics or settings.

use std::fmt;
use std::future::Future;
use std::io::{self, Write};
use std::pin::Pin;

use live::{History, Now, Readiness, Step};

/// The source of all content. It is called only on the admin thread, once per request and once per second, and must not
/// block on the data plane.
pub trait Source: Send + 'static {
    /// Returns the scrape page in the format that `Accept` prefers; `accept` is empty without the field.
    fn metrics(&self, accept: &str) -> Content;
    /// Returns the readiness for traffic.
    fn ready(&self) -> Readiness;
    /// Samples the metrics, and returns the current state. Called once per second.
    fn sample(&mut self) -> Now;
    /// Returns the history of a scope: `all`, `model:NAME` or `tenant:NAME`; `None` for an unknown one.
    fn history(&self, scope: &str, step: Step) -> Option<History>;
    /// Returns the degradation curve as JSON; `None` if the process draws none.
    fn curve(&self) -> Option<Content> {
        None
    }
    /// Returns the spend of this month as JSON; `None` without a ledger.
    fn spend(&self) -> Option<Content> {
        None
    }
    /// Returns whether a request with `token` may read numbers. Without a configured token every request may.
    fn access(&self, token: Option<&str>) -> Result<(), NoAccess> {
        let _ = token;
        Ok(())
    }
    /// Orders the drain, if `token` is the configured one. A repeated order changes nothing.
    fn drain(&self, token: Option<&str>) -> Result<(), NoDrain> {
        let _ = token;
        Err(NoDrain::none())
    }
    /// Returns a future that is ready once the process has drained; `None` if it has no drain. A drain need not have been
    /// ordered yet.
    fn drained(&self) -> Option<Drained> {
        None
    }
    /// Called when a connection to the admin address is evicted.
    fn evicted(&self) {}
    /// Called when a connection to the listener with TLS fails its handshake, stalls in it, or sends HTTP without TLS.
    fn handshake_failed(&self) {}
}

/// Content to render.
pub struct Content {
    /// Its media type; JSON is [`JSON`].
    pub content_type: &'static str,
    /// Renders it. Called once, on a thread that may block.
    pub write: Render,
}

/// Renders content into a writer. The text of an error is the response's.
pub type Render = Box<dyn FnOnce(&mut dyn Write) -> io::Result<()> + Send>;

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Content").field("content_type", &self.content_type).finish_non_exhaustive()
    }
}

/// The media type of JSON.
pub const JSON: &str = "application/json";

/// The reason why a request may not read numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAccess {
    /// It has no token or a wrong one.
    Token,
    /// The configured token cannot be read.
    Unreadable(String),
}

/// The end of the drain.
pub type Drained = Pin<Box<dyn Future<Output = ()>>>;

/// The reason why a drain was not ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoDrain {
    /// The request has no token or a wrong one.
    Token,
    /// No token is configured, so no request may order it.
    Off(String),
    /// The configured token cannot be read.
    Unreadable(String),
}

impl NoDrain {
    /// Returns the reason of a process that never drains.
    pub(crate) fn none() -> Self {
        Self::Off("this process has no drain".to_owned())
    }
}
