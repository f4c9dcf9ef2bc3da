//! The sums of a group, and the provenance of its counts.

use ledger::source::DeviceTotal;
use ledger::{Class, DailyTotal, GpuSums};
use meter::{Provenance, TokenType};
use price::{Currency, Rate};

use super::query::Basis;
use super::units::UnitSums;
use super::what_if::WhatIfSums;

/// The number of token types.
pub const TYPES: usize = TokenType::ALL.len();

/// The number of provenances.
pub const PROVENANCES: usize = Provenance::ALL.len();

/// The sums of a group. Differences by corrections may be negative.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Exchanges.
    pub exchanges: i128,
    /// Tokens by type, in the order of [`TokenType::ALL`].
    pub tokens: [i128; TYPES],
    /// Input tokens by provenance, in the order of [`Provenance::ALL`].
    pub input_known: [i128; PROVENANCES],
    /// Output tokens likewise.
    pub output_known: [i128; PROVENANCES],
    /// The cost by price, pico-units.
    pub cost_pico: i128,
    /// True if anything in it has a price; otherwise the cost is unknown and not zero.
    pub priced: bool,
    /// Exchanges without a price.
    pub unpriced: i128,
    /// Answered exchanges with an uncounted prompt.
    pub uncounted_prompts: i128,
    /// Exchanges with known energy and GPU time.
    pub measured: i128,
    /// The GPU use of those, or without an exchange.
    pub gpu: GpuSums,
    /// The part of that use that is the cost of idle GPUs, allocated to the tenant, pico-dollars.
    pub allocated_pico: i128,
    /// The tokens with a price, and their cost.
    pub units: UnitSums,
    /// The charges by another price book, if the query names one.
    pub what_if: WhatIfSums,
}

impl Sums {
    /// Adds a daily total that is not a correction, with its rate if it has a price. `is_mixed`: some of its tokens may
    /// belong to another price.
    pub(crate) fn add(&mut self, line: &DailyTotal, rate: Option<&Rate>, is_mixed: bool) {
        let exchanges = i128::from(line.sums.exchanges);
        self.exchanges += exchanges;
        for (kind, &count) in TokenType::ALL.iter().zip(&line.sums.tokens) {
            let count = i128::from(count);
            self.tokens[*kind as usize] += count;
            let known = if kind.is_input() { &mut self.input_known } else { &mut self.output_known };
            let provenance =
                if kind.is_input() { line.key.input_provenance } else { line.key.output_provenance };
            known[provenance as usize] += count;
        }
        match rate {
            Some(rate) => {
                self.priced = true;
                self.units.add(line, rate, is_mixed);
            }
            None => self.unpriced += exchanges,
        }
        self.uncounted_prompts += uncounted_prompts(line);
        self.cost_pico += line.sums.cost_pico;
        self.measured += i128::from(line.sums.energy_exchanges);
        self.gpu.add(&line.sums.gpu);
    }

    /// Adds a correction, which is money alone: the counts of its exchange are in the exchange's own total.
    /// `is_present`: they are in this group, under the corrected price.
    pub(crate) fn correct(&mut self, line: &DailyTotal, is_present: bool) {
        self.priced = true;
        self.cost_pico += line.sums.cost_pico;
        if !is_present && line.sums.cost_pico != 0 {
            self.units.add_difference();
        }
    }

    /// Adds GPU use without an exchange.
    pub(crate) fn add_device(&mut self, device: &DeviceTotal) {
        self.gpu.add(&device.sums);
    }

    /// Adds GPU use without an exchange that is allocated to the tenant.
    pub(crate) fn allocate(&mut self, part: &GpuSums) {
        self.gpu.add(part);
        self.allocated_pico += part.cost_pico();
    }

    /// Adds the sums of another group.
    pub(crate) fn merge(&mut self, other: &Self) {
        let Self {
            exchanges,
            tokens,
            input_known,
            output_known,
            cost_pico,
            priced,
            unpriced,
            uncounted_prompts,
            measured,
            gpu,
            allocated_pico,
            units,
            what_if,
        } = other;
        self.exchanges += exchanges;
        add_each(&mut self.tokens, tokens);
        add_each(&mut self.input_known, input_known);
        add_each(&mut self.output_known, output_known);
        self.cost_pico += cost_pico;
        self.priced |= priced;
        self.unpriced += unpriced;
        self.uncounted_prompts += uncounted_prompts;
        self.measured += measured;
        self.gpu.add(gpu);
        self.allocated_pico += allocated_pico;
        self.units.merge(units);
        self.what_if.merge(what_if);
    }

    /// All prompt tokens, cached ones included.
    pub fn input(&self) -> i128 {
        self.of(TokenType::is_input)
    }

    /// Prompt tokens that a cache had.
    pub fn cached(&self) -> i128 {
        self.of(TokenType::is_cached)
    }

    /// All generated tokens, reasoning ones included.
    pub fn output(&self) -> i128 {
        self.of(|kind| !kind.is_input())
    }

    fn of(&self, belongs: fn(TokenType) -> bool) -> i128 {
        let types = TokenType::ALL.into_iter().filter(|kind| belongs(*kind));
        types.map(|kind| self.tokens[kind as usize]).sum()
    }
}

/// Returns true if the exchanges of a total succeeded.
pub(crate) fn went_well(line: &DailyTotal) -> bool {
    matches!(&*line.key.ending, "complete" | "length")
}

/// Returns the number of exchanges of a total that were answered, at least in part, with an uncounted prompt: most
/// often their clients left before the server reported it.
pub(crate) fn uncounted_prompts(line: &DailyTotal) -> i128 {
    let generated =
        || TokenType::ALL.into_iter().any(|kind| !kind.is_input() && line.sums.tokens[kind as usize] > 0);
    match line.key.input_provenance {
        Provenance::None if went_well(line) || generated() => i128::from(line.sums.exchanges),
        _ => 0,
    }
}

fn add_each<const N: usize>(to: &mut [i128; N], from: &[i128; N]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += from;
    }
}

/// Returns shares of a total in millionths, which sum to a million: a share above zero is never rounded to zero, and
/// the rounding difference goes to the largest. Empty for a total of zero.
pub fn shares(counts: &[i128; PROVENANCES]) -> Vec<(Provenance, u32)> {
    const WHOLE: i128 = 1_000_000;
    let total: i128 = counts.iter().sum();
    if total <= 0 {
        return Vec::new();
    }
    let mut shares: Vec<_> = Provenance::ALL
        .into_iter()
        .zip(counts)
        .filter(|(_, count)| **count > 0)
        .map(|(provenance, count)| (provenance, (count * WHOLE / total).max(1)))
        .collect();
    let rest = WHOLE - shares.iter().map(|(_, share)| share).sum::<i128>();
    if let Some(largest) = shares.iter_mut().max_by_key(|(_, share)| *share) {
        largest.1 += rest;
    }
    shares.into_iter().map(|(provenance, share)| (provenance, u32::try_from(share).unwrap_or(0))).collect()
}

/// The currency of a row of a report; `None` if it has no price.
pub type In = Option<Currency>;

/// Returns the currency and the cost of a daily total, pico-units; `None` for a correction by GPU, which is not a GPU cost.
pub(crate) fn cost(line: &DailyTotal, rate: Option<&Rate>, basis: Basis) -> Option<(In, i128)> {
    match basis {
        Basis::Price => Some((rate.map(|rate| rate.currency), line.sums.cost_pico)),
        Basis::Gpu if line.key.class == Class::Correction => None,
        Basis::Gpu => Some((Some(Currency::USD), line.sums.gpu.cost_pico())),
    }
}

#[cfg(test)]
mod tests {
    use ledger::{Class, DailyTotal, GpuSums, TotalKey};
    use meter::{Provenance, TokenType};

    use super::{PROVENANCES, Sums, TYPES, UnitSums, WhatIfSums, shares};

    #[test]
    fn merged_group_adds_every_sum() {
        let of = |n: i128, priced: bool| Sums {
            exchanges: n,
            tokens: [2 * n; TYPES],
            input_known: [3 * n; PROVENANCES],
            output_known: [4 * n; PROVENANCES],
            cost_pico: 5 * n,
            priced,
            unpriced: 6 * n,
            uncounted_prompts: 7 * n,
            measured: 8 * n,
            gpu: GpuSums {
                energy_nj: 9 * n,
                gpu_ns: 10 * n,
                gpu_hours_pico: 11 * n,
                gpu_energy_pico: 12 * n,
            },
            allocated_pico: 13 * n,
            units: UnitSums::default(),
            what_if: WhatIfSums { exchanges: 14 * n, unpriced: 15 * n, cost_pico: 16 * n },
        };
        for (one, two) in [(true, false), (false, true)] {
            let mut sum = of(3, one);
            sum.merge(&of(4, two));
            assert_eq!(sum, of(7, true));
        }
    }

    /// A prompt is uncounted if its exchange succeeded or any output token was counted.
    #[test]
    fn answered_exchanges_without_input_count_are_counted() {
        let mut sums = Sums::default();
        let none = [0; TYPES];
        let (mut input, mut output) = (none, none);
        input[TokenType::Input as usize] = 1;
        output[TokenType::OutputReasoning as usize] = 1;
        for (ending, provenance, tokens, exchanges, sum) in [
            ("complete", Provenance::None, none, 2, 2),
            ("length", Provenance::None, none, 3, 5),
            ("client_abort", Provenance::None, none, 7, 5),
            ("client_abort", Provenance::None, input, 7, 5),
            ("client_abort", Provenance::None, output, 11, 16),
            ("complete", Provenance::Reported, output, 13, 16),
        ] {
            let key = TotalKey {
                day: 0,
                tenant: "t".into(),
                principal: None,
                upstream: "u".into(),
                provider: "vllm".into(),
                model: "m".into(),
                ending: ending.into(),
                input_provenance: provenance,
                output_provenance: Provenance::None,
                rate: None,
                class: Class::Usage,
            };
            let line =
                DailyTotal { key, sums: ledger::Sums { exchanges, tokens, ..ledger::Sums::default() } };
            sums.add(&line, None, false);
            assert_eq!(sums.uncounted_prompts, sum, "{ending} {tokens:?}");
        }
    }

    #[test]
    fn shares_sum_to_one_and_none_vanishes() {
        for counts in [
            [1, 1, 1, 0, 0, 0, 0],
            [0, 1_000_000_000_000, 0, 0, 0, 1, 0],
            [1, 2, 3, 4, 5, 6, 7],
            [7, 0, 0, 0, 0, 0, 0],
            [i128::MAX / 2_000_000, 3, 1, 1, 1, 1, 1],
        ] {
            let shares = shares(&counts);
            assert_eq!(shares.iter().map(|(_, share)| share).sum::<u32>(), 1_000_000, "{counts:?}");
            assert!(shares.iter().all(|(_, share)| *share > 0), "{counts:?}: {shares:?}");
            assert_eq!(shares.len(), counts.iter().filter(|count| **count > 0).count());
        }
        assert_eq!(shares(&[0; PROVENANCES]), []);
        assert_eq!(
            shares(&[2, 1, 0, 0, 0, 1, 0]),
            [(Provenance::Engine, 500_000), (Provenance::Reported, 250_000), (Provenance::Frames, 250_000)]
        );
    }
}
