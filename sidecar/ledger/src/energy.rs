//! The GPU use of one exchange, which reaches the ledger after its exchange.

use std::sync::Arc;

use meter::{ExchangeId, Role};
use price::{Charge, Rate};

use crate::row::cut;
use crate::source::Used;
use crate::{Class, Row, TotalKey};

/// The GPU use of an exchange, and the key of its daily total.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnergyRow {
    /// The exchange's name; the row's key.
    pub id: ExchangeId,
    /// When the exchange ended, microseconds since 1970.
    pub ended_us: i64,
    /// The key of the total that it is added to.
    pub(crate) key: TotalKey,
    /// The rate it was charged by, if it was.
    pub rate: Option<Arc<Rate>>,
    /// The GPU use and its cost.
    pub used: Used,
    /// The part of a request that the exchange is.
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

    /// The same, with texts as long as its exchange's row has them.
    pub(crate) fn bounded(mut self) -> Self {
        let key = &mut self.key;
        let texts = [&mut key.tenant, &mut key.upstream, &mut key.provider, &mut key.model, &mut key.ending];
        texts.into_iter().chain(&mut key.principal).for_each(cut);
        self
    }

    /// The key of the total of a class that it is added to.
    pub(crate) fn key(&self, class: Class) -> TotalKey {
        TotalKey { class, ..self.key.clone() }
    }
}
