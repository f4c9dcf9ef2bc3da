//! The content of the admin pages, and the trait through which it is read. The binary implements [`Source`]; this crate
//! uses no type of metrics or settings.

use std::fmt;
use std::future::Future;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::pin::Pin;

/// The source of all content. It is called only on the admin thread, once per request and once per second, and must not
/// block on the data plane.
pub trait Source: Send + 'static {
    /// Returns the scrape page in the format that `Accept` prefers; `accept` is empty without the field.
    fn metrics(&self, accept: &str) -> Scrape;
    /// Returns the readiness for traffic.
    fn ready(&self) -> Readiness;
    /// Returns the content of the live page.
    fn view(&self) -> View;
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
}

/// A scrape page to render.
pub struct Scrape {
    /// `Content-Type` of the exposition format.
    pub content_type: &'static str,
    /// Renders it. Called once, on a thread that may block.
    pub write: Render,
}

/// Renders a page into a writer.
pub type Render = Box<dyn FnOnce(&mut dyn Write) -> io::Result<()> + Send>;

impl fmt::Debug for Scrape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scrape").field("content_type", &self.content_type).finish_non_exhaustive()
    }
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

/// The readiness for traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Ready.
    Ready,
    /// Ready, with warnings that do not affect traffic, one per line.
    Impaired(Vec<String>),
    /// Not ready, with one reason per line.
    NotReady(Vec<String>),
}

/// The state of the process at one moment.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The program's version.
    pub version: String,
    /// Seconds since it started.
    pub uptime_s: u64,
    /// The upstreams, in the order they were configured.
    pub upstreams: Vec<Upstream>,
    /// The models, in display order.
    pub models: Vec<Model>,
    /// Today's spend; `None` without charges.
    pub spend: Option<Spend>,
    /// Output tokens by provenance, best first; empty if unknown.
    pub provenances: Vec<(&'static str, u64)>,
}

/// An upstream on the live page.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// Name as configured.
    pub name: String,
    /// The listen address for its clients.
    pub listen: SocketAddr,
    /// Its URL.
    pub url: String,
    /// True if the last probe reached it; `None` before the first.
    pub up: Option<bool>,
    /// An error of its configuration that makes counts or prices wrong, with its remedy.
    pub fault: Option<String>,
}

/// A model's row on the live page. Totals are since the start.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// Name, as in its label.
    pub name: String,
    /// Exchanges in flight.
    pub in_flight: u64,
    /// Finished exchanges.
    pub exchanges: u64,
    /// Exchanges that failed, at the upstream or in the proxy.
    pub errors: u64,
    /// Exchanges that the client left.
    pub aborts: u64,
    /// Output tokens, counted while they arrive.
    pub output_tokens: u64,
    /// Median time to the first token, seconds.
    pub first_token_p50_s: Option<f64>,
    /// 99th percentile of it, seconds.
    pub first_token_p99_s: Option<f64>,
    /// Median speed of one request, tokens per second.
    pub request_rate_p50: Option<f64>,
}

/// Today's spend, a day of UTC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spend {
    /// Hour and minute since when spend is known, if not since the start of the day.
    pub since: Option<String>,
    /// ISO 4217 code of the currency; empty without a price.
    pub currency: String,
    /// The tenants with the highest spend, in display order.
    pub tenants: Vec<Tenant>,
    /// The sum of the other tenants, if there are any.
    pub rest: Option<Tenant>,
    /// The sum.
    pub all: Tenant,
}

/// A tenant's row on the live page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tenant {
    /// Name, as in its label.
    pub name: String,
    /// The cost of its exchanges, an exact decimal number.
    pub cost: String,
    /// Finished exchanges.
    pub exchanges: u64,
    /// Exchanges without a price, which `cost` does not include.
    pub unpriced: u64,
}
