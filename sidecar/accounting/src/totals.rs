//! Token totals of each upstream from ended exchanges, to compare with the server's own counters. They come from
//! records, so a lost record appears as drift.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use meter::Record;

/// The totals, by the upstreams' numbers. A clone shares them.
#[derive(Clone, Debug)]
pub struct Totals(Arc<[Total]>);

#[derive(Debug)]
struct Total {
    upstream: Arc<str>,
    input: AtomicU64,
    cached: AtomicU64,
    output: AtomicU64,
}

/// The tokens of one upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpstreamTotals {
    /// Input tokens, cached ones included.
    pub input: u64,
    /// Cached input tokens.
    pub cached: u64,
    /// Output tokens.
    pub output: u64,
}

impl Totals {
    /// Creates totals of zero for upstreams of these names.
    pub fn new<'a>(upstreams: impl IntoIterator<Item = &'a Arc<str>>) -> Self {
        let total = |name: &Arc<str>| Total {
            upstream: Arc::clone(name),
            input: AtomicU64::new(0),
            cached: AtomicU64::new(0),
            output: AtomicU64::new(0),
        };
        Self(upstreams.into_iter().map(total).collect())
    }

    /// Adds an exchange.
    pub fn add(&self, record: &Record) {
        let its = |total: &&Total| total.upstream == record.identity.upstream;
        if let Some(total) = self.0.iter().find(its) {
            total.input.fetch_add(record.tokens.input(), Ordering::Relaxed);
            total.cached.fetch_add(record.tokens.cached(), Ordering::Relaxed);
            total.output.fetch_add(record.tokens.output(), Ordering::Relaxed);
        }
    }

    /// Returns the totals of an upstream.
    pub fn read(&self, upstream: usize) -> UpstreamTotals {
        self.0.get(upstream).map_or_else(UpstreamTotals::default, |total| UpstreamTotals {
            input: total.input.load(Ordering::Relaxed),
            cached: total.cached.load(Ordering::Relaxed),
            output: total.output.load(Ordering::Relaxed),
        })
    }
}
