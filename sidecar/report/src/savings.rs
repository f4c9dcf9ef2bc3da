//! Savings by prompt caches, and the cost of exchanges and GPUs without a result.
//!
//! Law: an amount is exact or not known. Daily totals suffice for all kinds but repetitions, which need rows.

use std::collections::BTreeMap;

use ledger::source::Share;
use ledger::{Class, DailyTotal, GpuSums};
use meter::{Ending, TokenType};
use price::{Currency, Rate};
use text::{Decimal, quotient};

use super::query::Basis;
use super::sums::{self, In};

/// Amounts of one currency, pico-units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Savings {
    /// The amounts by kind.
    pub amounts: BTreeMap<Kind, i128>,
    /// The cost of the report in this currency.
    pub cost_pico: i128,
}

impl Savings {
    /// Returns the amount of a kind; `None` if it is not known.
    pub fn amount(&self, kind: Kind) -> Option<i128> {
        let amount = self.amounts.get(&kind).copied();
        if kind == Kind::Repeated { amount } else { Some(amount.unwrap_or(0)) }
    }

    /// Returns an amount divided by the cost, to six digits; `None` without a cost.
    pub fn share(&self, kind: Kind) -> Option<Decimal> {
        quotient(self.amount(kind)?, self.cost_pico, SHARE_DIGITS)
    }
}

/// Digits of a share after the point.
const SHARE_DIGITS: u32 = 6;

meter::listed_enum! {
    /// A kind of saving or of cost without a result.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Kind {
        /// Cached prompt tokens, at the difference to the price of uncached ones.
        CacheReads = "saved_by_cache_reads",
        /// Prompt tokens written to a cache, at the difference to the price of others: a cost of caching.
        CacheWrites = "added_by_cache_writes",
        /// Exchanges whose clients left.
        Aborted = "aborted",
        /// Exchanges that failed for another reason.
        Failed = "failed",
        /// Exchanges of requests that clients repeated, failed or not, except the one that each request keeps.
        Repeated = "repeated",
        /// GPUs without an exchange.
        Idle = "idle_gpu",
        /// GPU use of unknown exchanges.
        Unattributed = "unattributed_gpu",
    }
    /// Returns the name in reports.
    pub fn name(self);
}

impl Kind {
    /// Returns the kinds of reports by a basis.
    pub fn of(basis: Basis) -> &'static [Self] {
        match basis {
            Basis::Price => {
                &[Self::CacheReads, Self::CacheWrites, Self::Aborted, Self::Failed, Self::Repeated]
            }
            Basis::Gpu => &[Self::Aborted, Self::Failed, Self::Repeated, Self::Idle, Self::Unattributed],
        }
    }
}

/// Kinds of waste that a ledger does not have, each with its metric.
pub const UNKNOWN: [&str; 2] = [
    "refused requests (tokenmeter_tenant_refused_total)",
    "rejected draft tokens (tokenmeter_upstream_draft_tokens_total)",
];

/// The savings of a report, by currency.
#[derive(Clone, Debug, Default)]
pub(crate) struct SavingsSums {
    by: BTreeMap<In, Savings>,
}

impl SavingsSums {
    /// Adds a daily total, charged by a rate if it has a price.
    pub(crate) fn add(&mut self, line: &DailyTotal, rate: Option<&Rate>, basis: Basis) {
        let Some((currency, cost_pico)) = sums::cost(line, rate, basis) else { return };
        let sum = self.by.entry(currency).or_default();
        sum.cost_pico += cost_pico;
        let mut add = |kind, pico| *sum.amounts.entry(kind).or_default() += pico;
        match Ending::ALL.into_iter().find(|ending| ending.name() == &*line.key.ending) {
            Some(ending) if ending.is_success() => {}
            Some(Ending::ClientAbort) => add(Kind::Aborted, cost_pico),
            Some(_) => add(Kind::Failed, cost_pico),
            None => {}
        }
        let (Some(rate), Basis::Price) = (rate, basis) else { return };
        let tokens = |kind: TokenType| i128::from(line.sums.tokens[kind as usize]);
        let price = |kind| i128::from(rate.price_of(kind).unwrap_or(0));
        if line.key.class != Class::Correction {
            // Against the price of the same tokens without a cache.
            for (read, plain) in [
                (TokenType::InputCached, TokenType::Input),
                (TokenType::InputCachedAudio, TokenType::InputAudio),
                (TokenType::InputCachedImage, TokenType::InputImage),
            ] {
                add(Kind::CacheReads, tokens(read) * (price(plain) - price(read)));
            }
            for write in [TokenType::InputCacheWrite, TokenType::InputCacheWrite1h] {
                add(Kind::CacheWrites, tokens(write) * (price(write) - price(TokenType::Input)));
            }
        }
    }

    /// Adds GPU use without an exchange.
    pub(crate) fn add_device(&mut self, share: Share, sums: &GpuSums) {
        let kind = match share {
            Share::Idle => Kind::Idle,
            Share::Unattributed => Kind::Unattributed,
        };
        let sum = self.by.entry(Some(Currency::USD)).or_default();
        sum.cost_pico += sums.cost_pico();
        *sum.amounts.entry(kind).or_default() += sums.cost_pico();
    }

    /// Returns the savings of each currency; of a report without prices, none. `repeated`: the cost of repetitions, if
    /// it is known.
    pub(crate) fn finish(mut self, repeated: Option<&BTreeMap<In, i128>>) -> Vec<(In, Savings)> {
        if let Some(repeated) = repeated {
            for (currency, savings) in &mut self.by {
                let amount = repeated.get(currency).copied().unwrap_or(0);
                savings.amounts.insert(Kind::Repeated, amount);
            }
        }
        self.by.into_iter().filter(|(currency, _)| currency.is_some()).collect()
    }
}

#[cfg(test)]
#[path = "savings_tests.rs"]
mod tests;
