//! Adjustments: amounts of money that a tenant is charged or credited in a month, without an exchange.
//!
//! An adjustment is a correction of no exchange: a charge of class `correction`, model [`ADJUSTMENT`], with a rate that has
//! its currency, no price, and the reason as entry. Its day is the first of its month.
//!
//! Law: adjustments with equal tenant, amount, currency, month and reason are one, so that a repetition after a crash
//! enters nothing.

use std::path::Path;

use meter::ExchangeId;
use price::{Currency, Rate};

use crate::amend::Amendment;
use crate::column::Stored;
use crate::error::{Error, Fault};
use crate::file::{self, File};
use crate::source::{Correction, Month};
use crate::table::CORRECTION;
use crate::total_key::ADJUSTMENT;
use crate::{Calendar, Class, DailyTotal, LedgerFolder, Sums, TotalKey, month};

/// The price version of adjustments.
pub const VERSION: &str = "adjustment";

/// The longest reason, bytes.
const REASON_MAX_BYTES: usize = 200;

/// An adjustment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adjustment {
    tenant: String,
    amount_pico: i64,
    currency: Currency,
    month: Month,
    reason: String,
}

impl Adjustment {
    /// Returns an adjustment of a tenant's charges in a month, in pico-units of a currency; a credit is negative.
    ///
    /// # Errors
    /// If the amount is zero or beyond 9.2 million, the tenant or the reason is empty, or the reason is longer than 200
    /// bytes or has control characters.
    pub fn new(
        tenant: &str,
        amount_pico: i128,
        currency: Currency,
        month: Month,
        reason: &str,
    ) -> Result<Self, Error> {
        let refused = |why: &str| Error::new(Fault::Other, format!("nothing was entered: {why}"));
        let amount_pico = i64::try_from(amount_pico).map_err(|_| {
            refused("the amount is beyond 9.2 million; enter it in parts, each with a reason of its own")
        })?;
        if amount_pico == 0 {
            return Err(refused("the amount is zero"));
        }
        for (name, text) in [("tenant", tenant), ("reason", reason)] {
            if text.is_empty() || text.len() > REASON_MAX_BYTES || text.chars().any(char::is_control) {
                let why =
                    format!("the {name} must have 1 to {REASON_MAX_BYTES} bytes and no control characters");
                return Err(refused(&why));
            }
        }
        Ok(Self { tenant: tenant.to_owned(), amount_pico, currency, month, reason: reason.to_owned() })
    }

    /// Returns the rate.
    pub fn rate(&self) -> Rate {
        let rate = Rate {
            version: VERSION.into(),
            entry: self.reason.as_str().into(),
            currency: self.currency,
            ..Rate::blank()
        };
        Rate { id: rate.identify(), ..rate }
    }

    /// Returns the correction. Its id is also the id of its exchange, which does not exist.
    pub fn correction(&self, calendar: &Calendar, at_us: i64) -> Correction {
        let begin_us = calendar.month_begin_us(self.month);
        let id = self.id(begin_us);
        let key = TotalKey {
            day: month::first_day(self.month),
            tenant: self.tenant.as_str().into(),
            upstream: ADJUSTMENT.into(),
            provider: ADJUSTMENT.into(),
            model: ADJUSTMENT.into(),
            ending: "complete".into(),
            rate: Some(self.rate().id),
            class: Class::Correction,
            ..TotalKey::blank()
        };
        let sums = Sums { cost_pico: self.amount_pico.into(), ..Sums::default() };
        Correction { id, made_us: at_us, exchange: id, line: DailyTotal { key, sums }, ended_us: begin_us }
    }

    /// Returns the details for the audit trail, JSON.
    pub fn detail(&self) -> String {
        serde_json::json!({
            "tenant": self.tenant,
            "amount_pico": self.amount_pico.to_string(),
            "currency": self.currency.code(),
            "month": month::name(self.month),
            "reason": self.reason,
        })
        .to_string()
    }

    /// Enters the adjustment through `amend`. Returns false if it is there already.
    ///
    /// # Errors
    /// If its month has not begun, or the function's error.
    pub fn enter<E: From<Error>>(
        &self,
        calendar: &Calendar,
        who: &str,
        at_us: i64,
        amend: impl FnOnce(&Amendment<'_>) -> Result<u64, E>,
    ) -> Result<bool, E> {
        if self.month > calendar.month(at_us) {
            let why = format!("nothing was entered: {} has not begun", month::name(self.month));
            return Err(Error::new(Fault::Other, why).into());
        }
        let (rate, corrections) = (self.rate(), [self.correction(calendar, at_us)]);
        let (detail, rates) = (self.detail(), [&rate]);
        let amendment = Amendment {
            what: "adjusted",
            who,
            detail: &detail,
            at_us,
            rates: &rates,
            corrections: &corrections,
        };
        Ok(amend(&amendment)? > 0)
    }

    /// Returns true if a ledger has the adjustment, in any of its files.
    fn is_in(&self, ledger: &LedgerFolder, calendar: &Calendar) -> Result<bool, Error> {
        for name in &ledger.names {
            let file = File::open_read(name).map_err(|error| error.of(name.display()))?;
            if file::has(&file.connection, &CORRECTION, &self.id(calendar.month_begin_us(self.month)).0)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn id(&self, begin_us: i64) -> ExchangeId {
        let mut hasher = blake3::Hasher::new();
        for text in ["tokenmeter adjustment", &self.tenant, self.currency.code(), &self.reason] {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
        hasher.update(&self.amount_pico.to_le_bytes()).update(&self.month.to_le_bytes());
        let mut chance = [0; 16];
        hasher.finalize_xof().fill(&mut chance);
        ExchangeId::new(begin_us.unsigned_abs().saturating_mul(1000), u128::from_le_bytes(chance))
    }
}

/// Enters an adjustment into a ledger: into its month, or, if that is closed, into the open one. Returns false if it is
/// there already.
///
/// # Errors
/// If the ledger is shipped, the month has not begun, or the file cannot be written.
pub fn adjust(path: &Path, adjustment: &Adjustment, who: &str, at_us: i64) -> Result<bool, Error> {
    let ledger = LedgerFolder::open(path);
    ledger.require_unshipped("tokenmeter ledger adjust …")?;
    // If its month was closed, it is in a later one.
    let calendar = ledger.calendar()?;
    if adjustment.is_in(&ledger, &calendar)? {
        return Ok(false);
    }
    adjustment.enter(&calendar, who, at_us, |amendment| ledger.amend(amendment))
}

#[cfg(test)]
#[path = "adjust_tests.rs"]
mod tests;
