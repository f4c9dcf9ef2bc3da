//! What one exchange used of the GPUs, as it joins the ledger after its exchange did.

use std::sync::Arc;

use meter::{ExchangeId, Provenance, Role};
use price::{Charge, Rate};

use crate::key::Key;
use crate::line::Class;
use crate::row::cut;
use crate::source::Used;
use crate::{Row, month};

/// What an exchange used, and which line it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnergyRow {
    /// The exchange's name; the row's key.
    pub id: ExchangeId,
    /// When the exchange ended, microseconds since 1970.
    pub ended_us: i64,
    /// The exchange's tenant.
    pub tenant: Arc<str>,
    /// Its principal.
    pub principal: Option<Arc<str>>,
    /// Its upstream.
    pub upstream: Arc<str>,
    /// Its provider.
    pub provider: Arc<str>,
    /// The model it asked for.
    pub model: Arc<str>,
    /// How it ended.
    pub ending: Arc<str>,
    /// How its input counts are known.
    pub input_provenance: Provenance,
    /// How its output counts are known.
    pub output_provenance: Provenance,
    /// The rate it was charged by, if it was.
    pub rate: Option<Arc<Rate>>,
    /// What it used, and what that cost.
    pub used: Used,
    /// The part of a request that the exchange is.
    pub role: Role,
}

impl EnergyRow {
    /// What the exchange of a row used.
    pub fn of(row: &Row, used: Used) -> Self {
        Self {
            id: row.id,
            ended_us: row.ended_us,
            tenant: Arc::clone(&row.tenant),
            principal: row.principal.clone(),
            upstream: Arc::clone(&row.upstream),
            provider: Arc::clone(&row.provider),
            model: Arc::clone(&row.model),
            ending: Arc::clone(&row.ending),
            input_provenance: row.tokens.input_provenance,
            output_provenance: row.tokens.output_provenance,
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
        let texts =
            [&mut self.tenant, &mut self.upstream, &mut self.provider, &mut self.model, &mut self.ending];
        texts.into_iter().chain(&mut self.principal).for_each(cut);
        self
    }

    /// The line it is added to.
    pub(crate) fn key(&self, class: Class) -> Key {
        Key {
            day: month::day(self.ended_us),
            tenant: Arc::clone(&self.tenant),
            principal: self.principal.clone(),
            upstream: Arc::clone(&self.upstream),
            provider: Arc::clone(&self.provider),
            model: Arc::clone(&self.model),
            ending: Arc::clone(&self.ending),
            input_provenance: self.input_provenance,
            output_provenance: self.output_provenance,
            rate: self.rate.as_ref().map(|rate| rate.id),
            class,
        }
    }
}
