//! The answer of `/api/spend`: the ledger's spend of this month.

use serde::{Deserialize, Serialize};

/// The spend of a month of UTC, from the ledger. It is not a bill. Money is an exact decimal number in a string.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MonthSpend {
    /// `2026-11`.
    pub month: String,
    /// ISO 4217 code; `null` without a price.
    pub currency: Option<String>,
    /// The month's sum.
    pub cost: String,
    /// The days with exchanges, in order.
    pub days: Vec<DailySpend>,
}

/// The spend of a day of UTC.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DailySpend {
    /// `2026-11-24`.
    pub day: String,
    /// The day's sum.
    pub cost: String,
    /// The tenants, the highest spend first.
    pub tenants: Vec<TenantSpend>,
}

/// A tenant's spend in a day.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TenantSpend {
    /// The tenant's label.
    pub name: String,
    /// Its sum.
    pub cost: String,
    /// Finished exchanges.
    pub exchanges: u64,
    /// Exchanges without a price, which `cost` does not include.
    pub unpriced_exchanges: u64,
}
