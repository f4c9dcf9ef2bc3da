//! Repetitions: the exchanges of a request that a client sent several times with one id. The request keeps the last of
//! them that succeeded, or else the last; the others are repeated.
//!
//! Law: an amount is exact or not known: every exchange needs its row, and the number of requests is limited.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ledger::Class;
use meter::ExchangeId;
use price::Rate;

use super::contributions::{Contribution, Detail};
use super::query::Basis;
use super::sums::{In, cost, went_well};

/// Maximum requests with an id: ids are arbitrary, so memory would have no limit.
const REQUESTS_MAX: usize = 1_000_000;

/// The requests of a report.
#[derive(Default)]
pub(crate) struct Repeats {
    kept: HashMap<(Arc<str>, Arc<str>), Kept>,
    cost_pico: BTreeMap<In, i128>,
    is_incomplete: bool,
}

/// The exchange that a request keeps.
struct Kept {
    /// Success, and the time of the end: the highest is kept.
    rank: (bool, i64, ExchangeId),
    currency: In,
    cost_pico: i128,
}

impl Repeats {
    /// Adds a contribution that the report selects.
    pub(crate) fn add(&mut self, contribution: &Contribution<'_>, rate: Option<&Rate>, basis: Basis) {
        let (line, is_correction) = (contribution.line, contribution.line.key.class == Class::Correction);
        let Detail::Row(row, _) = contribution.detail else {
            self.is_incomplete |= line.sums.exchanges > 0;
            return;
        };
        let Some(id) = row.request_id.as_ref().filter(|_| row.role.is_counted()) else { return };
        let Some((currency, cost_pico)) = cost(line, rate, basis) else { return };
        let key = (Arc::clone(&row.tenant), Arc::clone(id));
        let is_full = self.kept.len() >= REQUESTS_MAX;
        match self.kept.get_mut(&key) {
            // A correction follows its exchange.
            Some(kept) if kept.rank.2 == row.id => kept.cost_pico += cost_pico,
            Some(_) if is_correction => *self.cost_pico.entry(currency).or_default() += cost_pico,
            Some(kept) => {
                let mut other = Kept { rank: (went_well(line), row.ended_us, row.id), currency, cost_pico };
                if kept.rank < other.rank {
                    std::mem::swap(kept, &mut other);
                }
                *self.cost_pico.entry(other.currency).or_default() += other.cost_pico;
            }
            None if is_correction => {}
            None if is_full => self.is_incomplete = true,
            None => {
                let rank = (went_well(line), row.ended_us, row.id);
                self.kept.insert(key, Kept { rank, currency, cost_pico });
            }
        }
    }

    /// Returns the cost of repeated exchanges by currency, pico-units; `None` if it is not known.
    pub(crate) fn finish(self) -> Option<BTreeMap<In, i128>> {
        (!self.is_incomplete).then_some(self.cost_pico)
    }
}
