//! A budget: for whom, for how long, how much, and at which parts of it someone is told.

use std::sync::Arc;

use text::Glob;

use crate::period::Period;

/// What tenants may spend in a period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Its name, told apart from all others.
    pub name: Arc<str>,
    /// Whom it covers; empty: every tenant. Several budgets may cover one.
    pub tenants: Vec<Glob>,
    /// All tenants it covers spend from one purse; else each has its own.
    pub shared: bool,
    /// How long it lasts.
    pub period: Period,
    /// From this sum on people are told, pico-units of the currency.
    pub soft: Option<i128>,
    /// What may be spent, pico-units of the currency.
    pub hard: Option<i128>,
    /// Whether requests are refused once the hard limit is reached.
    pub enforce: bool,
    /// Whether requests for a model without a price are refused, at any time.
    pub refuse_unpriced: bool,
}

/// What people are told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Threshold {
    /// Half of the limit is spent.
    Half,
    /// 80 % of it.
    Most,
    /// All of it.
    All,
    /// The soft limit is reached, where there is a hard one besides.
    Soft,
    /// The limit will be reached before the period ends, if things go on.
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

    /// Its bit among those of one account.
    pub(crate) const fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Whether this much of a limit is spent. Nothing passes a threshold by spending nothing.
    pub(crate) fn passed(self, used: i128, limit: i128) -> bool {
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
    /// The limit that thresholds are parts of: the hard one, or the soft one if that is all there is.
    pub fn limit(&self) -> Option<i128> {
        self.hard.or(self.soft)
    }

    /// Whether it covers a tenant.
    pub fn covers(&self, tenant: &str) -> bool {
        self.tenants.is_empty() || self.tenants.iter().any(|glob| glob.matches(tenant))
    }

    /// The tenants it names in full.
    pub(crate) fn named(&self) -> impl Iterator<Item = &str> {
        self.tenants.iter().map(Glob::text).filter(|text| !text.contains(['*', '?']))
    }

    /// What is told of, and the limit it is a part of; the forecast not among them.
    pub(crate) fn thresholds(&self) -> impl Iterator<Item = (Threshold, i128)> + use<> {
        let parts = [Threshold::Half, Threshold::Most, Threshold::All];
        let limit = self.limit();
        let soft = self.soft.filter(|_| self.hard.is_some()).map(|soft| (Threshold::Soft, soft));
        let parts = parts.into_iter().filter_map(move |part| Some((part, limit?)));
        parts.chain(soft)
    }
}
