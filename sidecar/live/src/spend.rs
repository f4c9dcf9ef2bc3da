//! The answer of `/api/spend`: the ledger's spend of this month.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The spend of a month by the ledger's calendar, from the ledger. It is not a bill. Money is an exact decimal number
/// in a string.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MonthSpend {
    /// `2026-11`.
    pub month: String,
    /// The time zone of the month's days, as in `Europe/Berlin`.
    pub time_zone: String,
    /// The first instant of the month, milliseconds since 1970.
    pub since_unix_ms: i64,
    /// The first instant after it.
    pub until_unix_ms: i64,
    /// The day on which the ledger was read, as in `2026-11-24`.
    pub today: String,
    /// ISO 4217 code; `null` without a price.
    pub currency: Option<String>,
    /// The month's sum.
    pub cost: String,
    /// The days with exchanges, in order.
    pub days: Vec<DailySpend>,
    /// The spend since the start of the process that the sums include: what `Totals::spend` is above it came later. `null`
    /// if rows from before the reading still wait for the disk.
    pub included: Option<IncludedSpend>,
}

/// The spend since the start of the process, as in `Totals::spend`, at the time of a reading of the ledger.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IncludedSpend {
    /// That of all traffic.
    pub all: f64,
    /// That of each tenant with spend.
    pub tenants: BTreeMap<String, f64>,
}

/// The spend of a day.
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
