//! Another price book, by which a report charges its exchanges again, beside the actual cost. Nothing is entered.
//!
//! Law: only stored rows are charged again; an exchange without a row, or without a price in the book, is counted.

use std::sync::Arc;

use ledger::Class;
use price::{Book, Charge, Currency};
use text::{group_thousands, money};

use super::contributions::{Contribution, Detail};
use super::group::{Group, Report};
use super::query::Basis;

/// A price book by which exchanges are charged again. Books with equal texts are equal.
#[derive(Clone, Debug)]
pub struct WhatIf {
    /// The book.
    pub book: Arc<Book>,
}

impl PartialEq for WhatIf {
    fn eq(&self, other: &Self) -> bool {
        self.book.hash() == other.book.hash()
    }
}

impl Eq for WhatIf {}

/// The charges of a group by the other book.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WhatIfSums {
    /// Exchanges with a charge.
    pub exchanges: i128,
    /// Exchanges without a price in the book.
    pub unpriced: i128,
    /// The charges, pico-units of the book's currency.
    pub cost_pico: i128,
}

impl WhatIfSums {
    /// Charges a contribution again, if it is an exchange with a row.
    pub(crate) fn add(&mut self, what_if: &WhatIf, contribution: &Contribution<'_>) {
        let Detail::Row(row, _) = contribution.detail else { return };
        if contribution.line.key.class == Class::Correction || !row.role.is_counted() {
            return;
        }
        match row.charge_again(&what_if.book) {
            Charge::Priced { cost, .. } => {
                self.exchanges += 1;
                self.cost_pico += i128::from(cost);
            }
            Charge::Unpriced(_) => self.unpriced += 1,
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.exchanges += other.exchanges;
        self.unpriced += other.unpriced;
        self.cost_pico += other.cost_pico;
    }
}

impl Group {
    /// Returns its cost by the other book, pico-units; `None` if no exchange has a charge by it.
    pub(crate) fn what_if(&self) -> Option<i128> {
        (self.sums.what_if.exchanges > 0).then_some(self.sums.what_if.cost_pico)
    }

    /// Returns the exchanges without a charge by the other book.
    pub(crate) fn without_what_if(&self) -> i128 {
        self.sums.exchanges - self.sums.what_if.exchanges
    }
}

/// Returns notes on the book, on exchanges that it did not charge, and on the cost of own GPUs compared with it.
pub(crate) fn sentences(report: &Report) -> Vec<String> {
    let Some(what_if) = &report.query.what_if else { return Vec::new() };
    let mut all = WhatIfSums::default();
    let mut exchanges = 0;
    for total in &report.totals {
        all.merge(&total.sums.what_if);
        exchanges += total.sums.exchanges;
    }
    let mut said = vec![format!(
        "`what_if` is the cost by price book {} ({}); nothing was entered",
        what_if.book.version().escape_debug(),
        what_if.book.hash()
    )];
    let mut missing = |count: i128, why: &str| {
        if count > 0 {
            let (noun, have) = if count == 1 { ("exchange", "has") } else { ("exchanges", "have") };
            let count = group_thousands(&count.to_string());
            said.push(format!("{count} {noun} {have} no {why}, and {have} no share in `what_if`"));
        }
    };
    missing(all.unpriced, "price in that book");
    missing(exchanges - all.exchanges - all.unpriced, "row");
    if report.query.basis == Basis::Gpu && all.exchanges > 0 {
        said.extend(of_own_gpus(report, &all, what_if.book.currency(), exchanges == all.exchanges));
    }
    said
}

/// Returns the cost of own GPUs beside that of the same usage by the other book, or `None` if no GPU cost is known. It
/// says which is cheaper only if both are complete and in one currency.
fn of_own_gpus(report: &Report, all: &WhatIfSums, currency: Currency, is_charged: bool) -> Option<String> {
    let known: Vec<i128> = report.totals.iter().filter_map(|total| total.cost(Basis::Gpu)).collect();
    if known.is_empty() {
        return None;
    }
    let gpu: i128 = known.iter().sum();
    let is_complete = is_charged && report.totals.iter().all(|total| total.without_cost(Basis::Gpu) == 0);
    let currency = currency.code();
    let verdict = match (is_complete, currency, gpu.cmp(&all.cost_pico)) {
        (true, "USD", std::cmp::Ordering::Less) => ": own GPUs are cheaper",
        (true, "USD", std::cmp::Ordering::Greater) => ": these prices are cheaper",
        (true, "USD", std::cmp::Ordering::Equal) => ": both cost the same",
        _ => "",
    };
    Some(format!(
        "own GPUs cost {} USD; the same usage costs {} {currency} at these prices{verdict}",
        money(gpu),
        money(all.cost_pico)
    ))
}

#[cfg(test)]
#[path = "what_if_tests.rs"]
mod tests;
