//! A budget: its tenants, period, limits and thresholds.

use std::sync::Arc;

use text::Glob;

use crate::period::Period;

/// A spending limit of tenants in a period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Its unique name.
    pub name: Arc<str>,
    /// The tenants it covers; empty: every tenant. Several budgets may cover one tenant.
    pub tenants: Vec<Glob>,
    /// All covered tenants share one limit; else each tenant has a limit of its own.
    pub shared: bool,
    /// Its period.
    pub period: Period,
    /// The soft limit, which only sends alerts, in pico-units of the currency.
    pub soft: Option<i128>,
    /// The hard limit, in pico-units of the currency.
    pub hard: Option<i128>,
    /// Rejects requests once the hard limit is reached.
    pub enforce: bool,
    /// Rejects requests for a model without a price, whatever is spent.
    pub refuse_unpriced: bool,
}

/// A threshold of a budget, with an alert of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Threshold {
    /// 50 % of the limit is spent.
    Half,
    /// 80 % of it is spent.
    Most,
    /// 100 % of it is spent.
    All,
    /// The soft limit is reached, if there is a hard one too.
    Soft,
    /// At this pace the limit will be reached before the period ends.
    Forecast,
}

impl Threshold {
    /// Every threshold.
    pub const ALL: [Self; 5] = [Self::Half, Self::Most, Self::All, Self::Soft, Self::Forecast];

    /// The label value.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Half => "50",
            Self::Most => "80",
            Self::All => "100",
            Self::Soft => "soft",
            Self::Forecast => "forecast",
        }
    }

    /// Returns its bit in the set of thresholds sent.
    pub(crate) const fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Returns true if `used` reaches it. Zero spend never does.
    pub(crate) fn is_crossed(self, used: i128, limit: i128) -> bool {
        let percent = match self {
            Self::Half => 50,
            Self::Most => 80,
            Self::All | Self::Soft => 100,
            Self::Forecast => return false,
        };
        used > 0 && used.saturating_mul(100) >= limit.saturating_mul(percent)
    }
}

impl Budget {
    /// Returns the limit that percentages refer to: the hard one, or else the soft one.
    pub fn limit(&self) -> Option<i128> {
        self.hard.or(self.soft)
    }

    /// Returns true if it covers a tenant.
    pub fn covers(&self, tenant: &str) -> bool {
        self.tenants.is_empty() || self.tenants.iter().any(|glob| glob.matches(tenant))
    }

    /// Returns the tenants that it names without a wildcard.
    pub(crate) fn named(&self) -> impl Iterator<Item = &str> {
        self.tenants.iter().map(Glob::text).filter(|text| !text.contains(['*', '?']))
    }

    /// Returns each threshold with its limit, without the forecast.
    pub(crate) fn thresholds(&self) -> impl Iterator<Item = (Threshold, i128)> + use<> {
        let parts = [Threshold::Half, Threshold::Most, Threshold::All];
        let limit = self.limit();
        let soft = self.soft.filter(|_| self.hard.is_some()).map(|soft| (Threshold::Soft, soft));
        let parts = parts.into_iter().filter_map(move |part| Some((part, limit?)));
        parts.chain(soft)
    }
}
