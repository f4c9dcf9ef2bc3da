//! What the admin listener shows, and the trait it reads it through. The one who assembles the
//! process implements [`Source`]; no metric type and no setting crosses into this crate.

use std::fmt;
use std::io::{self, Write};
use std::net::SocketAddr;

/// Where everything shown comes from. Called on the admin thread only, once per request and once
/// per second; it may take a moment, it may not block on the data plane.
pub trait Source: Send + 'static {
    /// The scrape page, in a form that an `Accept` field asks for; empty if there was none.
    fn metrics(&self, accept: &str) -> Scrape;
    /// Whether traffic should be sent here.
    fn ready(&self) -> Readiness;
    /// What the live page shows.
    fn view(&self) -> View;
    /// A connection to the admin address was closed so that another one is answered.
    fn evicted(&self) {}
}

/// A scrape page that is still to be printed.
pub struct Scrape {
    /// `Content-Type`, as the exposition format demands it.
    pub content_type: &'static str,
    /// Prints it. Called once, on a thread where it may take its time.
    pub write: Print,
}

/// Prints a page into what it is given.
pub type Print = Box<dyn FnOnce(&mut dyn Write) -> io::Result<()> + Send>;

impl fmt::Debug for Scrape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scrape").field("content_type", &self.content_type).finish_non_exhaustive()
    }
}

/// Whether traffic should be sent here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Yes.
    Ready,
    /// Yes, though something besides traffic is the matter; each line says what.
    Impaired(Vec<String>),
    /// No; each line a reason.
    NotReady(Vec<String>),
}

/// One look at the running process.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The program's version.
    pub version: String,
    /// Seconds since it started.
    pub uptime_s: u64,
    /// The upstreams, in the order they were configured.
    pub upstreams: Vec<Upstream>,
    /// The models seen, in the order they should be shown.
    pub models: Vec<Model>,
    /// What was spent today; `None` where nothing is charged, or nothing was yet.
    pub spend: Option<Spend>,
    /// Output tokens by how they were known, best first; empty if not known.
    pub provenances: Vec<(&'static str, u64)>,
}

/// An upstream on the live page.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// Name as configured.
    pub name: String,
    /// Where clients reach it through us.
    pub listen: SocketAddr,
    /// Where it is.
    pub url: String,
    /// Whether the last probe reached it; `None` before the first.
    pub up: Option<bool>,
    /// A fault of its configuration that makes counts or prices wrong, with its remedy.
    pub fault: Option<String>,
}

/// A model's row on the live page. Totals are since the start.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// Name, as its label shows it.
    pub name: String,
    /// Exchanges in flight.
    pub in_flight: u64,
    /// Exchanges that ended.
    pub exchanges: u64,
    /// Exchanges that ended in an error, the upstream's or ours.
    pub errors: u64,
    /// Exchanges the client left.
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

/// What was spent today, a day of UTC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spend {
    /// From which hour and minute on, if not from the day's start: what was spent before is not known.
    pub since: Option<String>,
    /// What costs are in, by its ISO 4217 code; empty if nothing had a price.
    pub currency: String,
    /// Those who spent most, in the order they should be shown.
    pub tenants: Vec<Tenant>,
    /// All others as one, if there are any.
    pub rest: Option<Tenant>,
    /// The sum.
    pub all: Tenant,
}

/// A tenant's row on the live page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tenant {
    /// Name, as its label shows it.
    pub name: String,
    /// What its exchanges cost: a decimal number with every digit.
    pub cost: String,
    /// Exchanges that ended.
    pub exchanges: u64,
    /// Those of them that have no price and are in no cost.
    pub unpriced: u64,
}
