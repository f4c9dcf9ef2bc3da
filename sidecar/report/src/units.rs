//! Costs of a unit: of a million tokens and of an exchange.
//!
//! Exchanges without a price are not in the divisor. The separate costs of input and output are known only if every
//! charge is the sum of its tokens at their prices: a correction is a difference of two charges, without tokens.

use ledger::DailyTotal;
use meter::TokenType;
use price::Rate;
use text::{Decimal, quotient};

/// Digits after the point of a cost of a unit: those of money.
const DIGITS: u32 = 12;

/// Pico-units in a unit of a currency, as a divisor.
const PICO: i128 = 1_000_000_000_000;

/// Tokens and their cost, of exchanges with a price.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitSums {
    tokens: [i128; 2],
    cost_pico: [i128; 2],
    /// The cost of all exchanges if each were charged the price of a request.
    requests_max_pico: i128,
    /// True if money without tokens is in the cost.
    has_difference: bool,
    /// True if some of the tokens may belong to another price.
    is_mixed: bool,
}

/// A direction of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Prompts.
    Input,
    /// Responses.
    Output,
}

impl UnitSums {
    /// Adds a daily total that is not a correction, charged by a rate. `is_mixed`: some of its tokens may belong to
    /// another price.
    pub(crate) fn add(&mut self, line: &DailyTotal, rate: &Rate, is_mixed: bool) {
        self.is_mixed |= is_mixed;
        for (kind, count) in TokenType::ALL.into_iter().zip(line.sums.tokens) {
            let direction = if kind.is_input() { Direction::Input } else { Direction::Output };
            self.tokens[direction as usize] += i128::from(count);
            let price = rate.price_of(kind).unwrap_or(0);
            self.cost_pico[direction as usize] += i128::from(count) * i128::from(price);
        }
        self.requests_max_pico += i128::from(line.sums.exchanges) * i128::from(rate.per_request);
    }

    /// Adds a correction whose tokens are counted under another price than the corrected one.
    pub(crate) fn add_difference(&mut self) {
        self.has_difference = true;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        let Self { tokens, cost_pico, requests_max_pico, has_difference, is_mixed } = other;
        for at in 0..2 {
            self.tokens[at] += tokens[at];
            self.cost_pico[at] += cost_pico[at];
        }
        self.requests_max_pico += requests_max_pico;
        self.has_difference |= has_difference;
        self.is_mixed |= is_mixed;
    }

    /// Returns the cost of a million tokens of a direction; `None` if it is not known.
    pub(crate) fn of(&self, direction: Direction, all_pico: i128, round: Option<u32>) -> Option<Decimal> {
        let is_known = !self.has_difference && !self.is_mixed && self.explains(all_pico);
        let at = direction as usize;
        is_known.then(|| million(self.cost_pico[at], self.tokens[at], round)).flatten()
    }

    /// Returns the cost of a million tokens of both directions.
    pub(crate) fn of_tokens(&self, all_pico: i128, round: Option<u32>) -> Option<Decimal> {
        let is_known = !self.is_mixed && (self.has_difference || self.explains(all_pico));
        is_known.then(|| million(all_pico, self.tokens.iter().sum(), round)).flatten()
    }

    /// Returns true if a cost is that of the tokens, with or without the price of each request. Otherwise it includes
    /// the price of tokens that are not in these counts.
    fn explains(&self, all_pico: i128) -> bool {
        (0..=self.requests_max_pico).contains(&(all_pico - self.cost_pico.iter().sum::<i128>()))
    }
}

/// Returns the cost of a million tokens, rounded half to even.
pub(crate) fn million(pico: i128, tokens: i128, round: Option<u32>) -> Option<Decimal> {
    divided(pico, tokens.checked_mul(PICO / 1_000_000)?, round)
}

/// Returns the cost of an exchange, rounded half to even.
pub(crate) fn each(pico: i128, exchanges: i128, round: Option<u32>) -> Option<Decimal> {
    divided(pico, exchanges.checked_mul(PICO)?, round)
}

/// Returns a quotient, rounded and printed as money.
fn divided(dividend: i128, divisor: i128, round: Option<u32>) -> Option<Decimal> {
    let quotient = quotient(dividend, divisor, round.unwrap_or(DIGITS))?;
    Some(Decimal { least: round.unwrap_or(quotient.least), ..quotient })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use meter::TokenType;
    use price::Charge;
    use proptest::prelude::*;

    use crate::memory::{Memory, cost};
    use crate::tests::query;
    use crate::{Basis, Column, Group, Key, Query, make};

    const COSTS: [Column; 4] =
        [Column::CostPerInput, Column::CostPerOutput, Column::CostPerTokens, Column::CostPerExchange];

    fn cells(group: &Group, query: &Query, round: Option<u32>) -> [String; 4] {
        COSTS.map(|column| column.cell(group, query, round).to_string())
    }

    /// Tokens and cost by direction, cost and exchanges.
    type Naive = ([i128; 2], [i128; 2], i128, i128);

    /// A decimal of 12 digits as a whole number.
    fn units(text: &str) -> i128 {
        let (whole, after) = text.split_once('.').expect("a point");
        format!("{whole}{after:0<12}").parse().expect("digits")
    }

    /// Two exchanges, one without a price, of one model.
    fn by_hand() -> Memory {
        let mut memory = Memory { kept_since_us: i64::MIN, ..Memory::of_chance(1, 30) };
        memory.shed.clear();
        memory.corrections.clear();
        memory.rows.truncate(2);
        let rate = memory.rates[1].clone();
        for (at, (_, row, used)) in memory.rows.iter_mut().enumerate() {
            (row.tenant, row.model, *used) = ("acme".into(), "m".into(), None);
            row.tokens.by_type = [0; TokenType::ALL.len()];
            row.tokens.by_type[TokenType::Input as usize] = 3;
            row.tokens.by_type[TokenType::InputCached as usize] = 4;
            row.tokens.by_type[TokenType::Output as usize] = 6;
            row.charge = match at {
                0 => Charge::Priced { cost: cost(&rate, &row.tokens), rate: rate.clone() },
                _ => Charge::Unpriced(price::Unpriced::Model),
            };
        }
        memory
    }

    /// 3 tokens at 0.17, 4 at 0.017, 6 at 0.68 a million, and 3 pico for the request.
    #[test]
    fn costs_of_a_unit_by_hand() {
        let memory = by_hand();
        let report = make(&memory, &query(&[Key::Tenant])).expect("it is readable");
        let [group] = &report.groups[..] else { panic!("one group") };
        assert_eq!((group.sums.exchanges, group.sums.unpriced), (2, 1));
        let expected = ["0.082571428571", "0.68", "0.358307923077", "0.000004658003"];
        assert_eq!(
            cells(group, &report.query, None),
            expected,
            "(510000 + 68000) / 7, 4080000 / 6, all / 13"
        );
        assert_eq!(cells(group, &report.query, Some(2)), ["0.08", "0.68", "0.36", "0.00"]);
        let unpriced = make(&memory, &query(&[Key::Currency])).expect("it is readable");
        let without = unpriced.groups.iter().find(|group| group.currency.is_none()).expect("one");
        assert_eq!(cells(without, &unpriced.query, None), [""; 4]);
    }

    /// A later price is a difference: rows show its input and its output, daily totals only the sum.
    #[test]
    fn split_of_repriced_exchanges_needs_rows() {
        use ledger::source::Correction;
        use ledger::{Class, DailyTotal, Sums, TotalKey};
        let mut memory = by_hand();
        let (billed, row, _) = memory.rows[0].clone();
        let to = memory.rates[0].clone();
        let delta = i128::from(cost(&to, &row.tokens)) - i128::from(row.charge.cost().expect("a cost"));
        let line = DailyTotal {
            key: TotalKey { rate: Some(to.id), ..TotalKey::of_row(&row, Class::Correction) },
            sums: Sums { cost_pico: delta, ..Sums::default() },
        };
        let id = ledger::corrections::id_of(&row.id, row.ended_us, 0);
        let made = Correction { id, made_us: row.ended_us, exchange: row.id, line, ended_us: row.ended_us };
        memory.corrections.push((billed, made));
        let of = |by: &[Key]| {
            let report = make(&memory, &query(by)).expect("it is readable");
            let is_it = |group: &&Group| group.sums.priced && group.sums.exchanges > 0;
            let group = report.groups.iter().find(is_it).expect("one").clone();
            cells(&group, &report.query, None)
        };
        assert_eq!(of(&[Key::Tenant]), ["", "", "0.316153846154", "0.00000411"]);
        // The usage alone has the present price, and the cost before the correction.
        assert_eq!(of(&[Key::Class, Key::Version])[..3], ["", "", ""]);
        assert_eq!(
            of(&[Key::Tenant, Key::Version]),
            ["0.072857142857", "0.60", "0.316153846154", "0.00000411"]
        );
    }

    /// Two differences that cancel each other do not show a price.
    #[test]
    fn differences_of_zero_are_not_divided() {
        use ledger::source::Correction;
        use ledger::{Class, DailyTotal, Sums, TotalKey};
        let mut memory = by_hand();
        let (billed, row, _) = memory.rows[0].clone();
        for (at, cost_pico) in [7, -7].into_iter().enumerate() {
            let key = TotalKey::of_row(&row, Class::Correction);
            let line = DailyTotal { key, sums: Sums { cost_pico, ..Sums::default() } };
            let id = ledger::corrections::id_of(&row.id, row.ended_us, at);
            let made =
                Correction { id, made_us: row.ended_us, exchange: row.id, line, ended_us: row.ended_us };
            memory.corrections.push((billed + i32::try_from(at).expect("small"), made));
        }
        let report = make(&memory, &query(&[Key::Tenant])).expect("it is readable");
        assert_eq!(cells(&report.groups[0], &report.query, None)[..2], ["", ""]);
    }

    #[test]
    fn gpu_unit_cost_needs_all_exchanges_measured() {
        let mut memory = by_hand();
        let asked = Query { basis: Basis::Gpu, ..query(&[Key::Tenant]) };
        memory.devices.clear();
        let used = ledger::source::Used { gpu_hours_pico: 26, gpu_ns: Some(1), ..Default::default() };
        for (measured, expected) in [(1, ["", ""]), (2, ["0.000002", "0.000000000026"])] {
            memory.rows.iter_mut().take(measured).for_each(|(_, _, of)| *of = Some(used));
            let report = make(&memory, &asked).expect("it is readable");
            let [_, _, tokens, exchange] = cells(&report.groups[0], &asked, None);
            assert_eq!([&*tokens, &*exchange], expected);
        }
        assert!(!Column::all(&asked).contains(&Column::CostPerInput));
    }

    proptest! {
        #![proptest_config(chance::cases(32))]

        /// Against sums over single rows: a quotient differs from the exact one by half a unit at most.
        #[test]
        fn costs_of_a_unit_are_those_of_rows(seed in any::<u64>()) {
            let memory = Memory { kept_since_us: i64::MIN, ..Memory::of_chance(seed, 120) };
            let memory = Memory { corrections: Vec::new(), ..memory };
            let report = make(&memory, &query(&[Key::Model, Key::Currency])).expect("it is readable");
            let mut naive: BTreeMap<(String, String), Naive> = BTreeMap::new();
            let rows = memory.rows.iter().map(|(_, row, _)| ledger::DailyTotal::of_row(row, None));
            for line in rows.chain(memory.shed.iter().map(|(_, line)| line.clone())) {
                let Some(rate) = memory.rates.iter().find(|rate| Some(rate.id) == line.key.rate) else { continue };
                let key = (line.key.model.to_string(), rate.currency.code().to_owned());
                let sums = naive.entry(key).or_default();
                for kind in TokenType::ALL {
                    let (count, at) = (i128::from(line.sums.tokens[kind as usize]), usize::from(!kind.is_input()));
                    sums.0[at] += count;
                    sums.1[at] += count * i128::from(rate.per_token[kind as usize].expect("a price"));
                }
                sums.2 += line.sums.cost_pico;
                sums.3 += i128::from(line.sums.exchanges);
            }
            for group in report.groups.iter().filter(|group| group.sums.priced) {
                let key = (group.values[0].to_string(), group.values[1].to_string());
                let (tokens, costs, cost, exchanges) = naive[&key];
                let cells = cells(group, &report.query, None);
                // Pico-units of the unit's cost times the divisor.
                let exact = [
                    (costs[0] * 1_000_000, tokens[0]),
                    (costs[1] * 1_000_000, tokens[1]),
                    (cost * 1_000_000, tokens[0] + tokens[1]),
                    (cost, exchanges),
                ];
                for (text, (dividend, divisor)) in cells.iter().zip(exact) {
                    if divisor == 0 {
                        prop_assert_eq!(text, "");
                    } else {
                        let distance = (units(text) * divisor - dividend).abs();
                        prop_assert!(2 * distance <= divisor, "{} of {} / {}", text, dividend, divisor);
                    }
                }
            }
        }
    }
}
