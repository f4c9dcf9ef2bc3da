//! The GPU use of one exchange, which is entered after the exchange itself.

use std::sync::Arc;

use meter::{ExchangeId, Role};
use price::{Charge, Rate};

use crate::row::{cut, other_day};
use crate::sums::Used;
use crate::{Calendar, Class, Row, TotalKey};

/// The GPU use of an exchange, a row of the table `energy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Energy {
    /// The exchange's id; the row's key.
    pub id: ExchangeId,
    /// The time at which the exchange ended, microseconds since 1970.
    pub ended_us: i64,
    /// The GPU use and its cost.
    pub used: Used,
    /// The class of the daily total that it was added to.
    pub class: Class,
    /// The key of that total, if the exchange's row is in another file or was never written.
    pub key: Option<TotalKey>,
    /// The leg of the request that the exchange is.
    pub role: Role,
    /// The day of the exchange, as in [`Row::day`].
    pub day: Option<i32>,
}

/// The GPU use of an exchange that is to be entered, with the key of its daily total.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnergyRow {
    /// The exchange's id; the row's key.
    pub id: ExchangeId,
    /// The time at which the exchange ended, microseconds since 1970.
    pub ended_us: i64,
    /// The key of the total that it is added to.
    pub(crate) key: TotalKey,
    /// The rate that the exchange was charged by; `None` without a price.
    pub rate: Option<Arc<Rate>>,
    /// The GPU use and its cost.
    pub used: Used,
    /// The leg of the request that the exchange is.
    pub role: Role,
}

impl EnergyRow {
    /// Returns the GPU use of the exchange of a row.
    pub fn of(row: &Row, used: Used) -> Self {
        Self {
            id: row.id,
            ended_us: row.ended_us,
            key: TotalKey::of_row(row, Class::Usage),
            rate: match &row.charge {
                Charge::Priced { rate, .. } => Some(Arc::clone(rate)),
                Charge::Unpriced(_) => None,
            },
            used,
            role: row.role,
        }
    }

    /// Sets the day of the exchange by the calendar of the ledger into which the use is entered.
    pub(crate) fn dated(mut self, calendar: &Calendar) -> Self {
        self.key.day = calendar.day(self.ended_us);
        self
    }

    /// Returns the use with its texts cut as those of its exchange's row are.
    pub(crate) fn bounded(mut self) -> Self {
        let key = &mut self.key;
        let texts = [&mut key.tenant, &mut key.upstream, &mut key.provider, &mut key.model, &mut key.ending];
        texts.into_iter().chain(&mut key.principal).for_each(cut);
        self
    }

    /// Returns the row. `with_key`: it has the key of its total, because the exchange is not in the same file.
    pub(crate) fn row(&self, class: Class, with_key: bool) -> Energy {
        Energy {
            id: self.id,
            ended_us: self.ended_us,
            used: self.used,
            class,
            key: with_key.then(|| self.key(class)),
            role: self.role,
            day: other_day(self.key.day, self.ended_us),
        }
    }

    /// Returns the key of the total of a class that it is added to.
    pub(crate) fn key(&self, class: Class) -> TotalKey {
        TotalKey { class, ..self.key.clone() }
    }
}
