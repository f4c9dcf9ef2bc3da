//! Samples of the rate limits that providers report.

use std::fmt::Result;

use meter::Quota;

use super::by_upstream;
use crate::cell::Last;
use crate::family::Family;
use crate::model::QuotaCells;
use crate::totals::Totals;

/// Writes a count of each quota, if it was ever reported.
pub(super) fn counts(totals: &Totals, family: &mut Family, pick: impl Fn(&QuotaCells) -> &Last) -> Result {
    quotas(totals, |labels, cells| pick(cells).get().map_or(Ok(()), |n| family.count(&labels, n)))
}

/// Writes the end of each quota's period in seconds since 1970.
pub(super) fn resets(totals: &Totals, family: &mut Family) -> Result {
    quotas(totals, |labels, cells| {
        cells.reset_unix_ms.get().map_or(Ok(()), |ms| family.number(&labels, seconds(ms)))
    })
}

/// Writes the last time after which a provider allowed another attempt.
pub(super) fn retry_after(totals: &Totals, family: &mut Family) -> Result {
    by_upstream(totals, |labels, cells| {
        let last = cells.rate_limits.get().and_then(|limits| limits.retry_after_ms.get());
        last.map_or(Ok(()), |ms| family.number(&labels, seconds(ms)))
    })
}

fn quotas(totals: &Totals, mut write: impl FnMut([&str; 3], &QuotaCells) -> Result) -> Result {
    by_upstream(totals, |[model, upstream], cells| {
        let quotas = cells.rate_limits.get().map(|limits| &limits.quotas).into_iter().flatten();
        Quota::ALL
            .iter()
            .zip(quotas)
            .try_for_each(|(quota, cells)| write([model, upstream, quota.name()], cells))
    })
}

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1_000.0
}
