//! The rate limits that a hosted provider last reported for a model. They are not summed: of two workers'
//! values the later one counts, also where the labels of two models become one.

use meter::{Quota, RateLimits};

use crate::cell::{Last, Merge};

/// The cells of a model at an upstream.
#[derive(Debug, Default)]
pub(crate) struct RateLimitCells {
    /// In the order of [`Quota::ALL`].
    pub(crate) quotas: [QuotaCells; Quota::ALL.len()],
    pub(crate) retry_after_ms: Last,
}

/// The cells of one quota.
#[derive(Debug, Default)]
pub(crate) struct QuotaCells {
    pub(crate) limit: Last,
    pub(crate) remaining: Last,
    pub(crate) reset_unix_ms: Last,
}

impl RateLimitCells {
    /// Sets the values that a response head has.
    pub(crate) fn set(&self, limits: &RateLimits) {
        let at = limits.at_unix_ms;
        for (cells, quota) in self.quotas.iter().zip(limits.quotas) {
            cells.limit.set(quota.limit, at);
            cells.remaining.set(quota.remaining, at);
            cells.reset_unix_ms.set(quota.reset_unix_ms, at);
        }
        self.retry_after_ms.set(limits.retry_after_ms, at);
    }
}

impl Merge for RateLimitCells {
    fn merge(&self, other: &Self) {
        let Self { quotas, retry_after_ms } = self;
        quotas.merge(&other.quotas);
        retry_after_ms.merge(&other.retry_after_ms);
    }
}

impl Merge for QuotaCells {
    fn merge(&self, other: &Self) {
        let Self { limit, remaining, reset_unix_ms } = self;
        limit.merge(&other.limit);
        remaining.merge(&other.remaining);
        reset_unix_ms.merge(&other.reset_unix_ms);
    }
}
