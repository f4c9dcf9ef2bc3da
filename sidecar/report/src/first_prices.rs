//! First prices: corrections that price exchanges which were charged without a price. The counts of such an exchange
//! move to the rate of its correction, so that tokens and their cost are in one row of a report.
//!
//! Law: for each daily total, the moved counts and the remaining ones sum to the total.

use std::collections::HashMap;

use ledger::corrections::ChargeChange;
use ledger::source::{Month, Range, Source, SourceError};
use ledger::{Class, DailyTotal, Sums, TotalKey};

use super::contributions::{Contribution, Detail, Sink};
use super::key::Key;
use super::query::{Basis, Query};

/// The view of a report on corrections: which of them move counts to another rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CorrectionView {
    /// All usage, whenever it is billed.
    Used,
    /// The bill of each month: only corrections that are billed in the month of their exchange move counts.
    Billed,
    /// All charges: a first price moves counts to the month that it is billed in, another correction as in `Billed`.
    Charged,
}

impl CorrectionView {
    /// Returns the view of a report.
    pub(crate) fn of(query: &Query) -> Self {
        let mut keys = query.by.iter().copied().chain(query.filters.iter().map(|filter| filter.key));
        if query.billed.is_some() || keys.any(|key| key == Key::Billed) { Self::Billed } else { Self::Used }
    }

    /// Returns true if it distinguishes rates of one currency.
    pub(crate) fn is_by_rate(self, query: &Query) -> bool {
        query.is_by_rate() || (self == Self::Charged && query.basis == Basis::Price)
    }

    /// Returns true if a first price billed in `corrected` moves counts billed in `billed`.
    pub(crate) fn moves(self, corrected: Month, billed: Month) -> bool {
        self != Self::Billed || corrected == billed
    }

    /// Returns true if the counts of a corrected exchange are in the same group as the money of the correction, under
    /// the corrected price.
    pub(crate) fn has_counts(self, correction: &Contribution<'_>) -> bool {
        correction.with_counts || (self == Self::Used && matches!(correction.detail, Detail::Row(..)))
    }

    /// Returns the rate of the counts of an exchange in a month, if corrections changed it: the last one of that month,
    /// or, in the view of all usage, the last.
    pub(crate) fn rate_in(self, month: Month, made: &[ChargeChange]) -> Option<[u8; 16]> {
        made.iter().rev().find(|made| self == Self::Used || made.billed == month).and_then(|made| made.rate)
    }
}

/// The daily totals of exchanges without a price of which some were priced later, held until all are read.
pub(crate) struct FirstPrices {
    view: CorrectionView,
    places: HashMap<TotalKey, PendingTotals>,
}

#[derive(Default)]
struct PendingTotals {
    /// Usage charged without a price, by the month of its bill.
    unpriced: Vec<(Month, DailyTotal)>,
    /// The corrections, by the month of their bill and their rate.
    given: Vec<(Month, DailyTotal)>,
    /// The known counts of single exchanges.
    moved: Vec<MovedCounts>,
    /// Exchanges that are still without a price and were already passed on, by the month of their bill.
    seen: HashMap<Month, u64>,
}

/// Counts that move to a rate.
struct MovedCounts {
    billed: Month,
    corrected: Month,
    line: DailyTotal,
    /// Exchanges that were already passed on and are not in `line`.
    seen: u64,
    /// True if some tokens in `line` may belong to another price.
    is_mixed: bool,
}

/// The key of the daily total in which an exchange without a price was counted.
fn unpriced(line: &DailyTotal) -> TotalKey {
    TotalKey { rate: None, class: Class::Usage, ..line.key.clone() }
}

impl FirstPrices {
    /// Reads those of the days that a range touches.
    pub(crate) fn read(
        source: &dyn Source,
        range: &Range,
        view: CorrectionView,
    ) -> Result<Self, SourceError> {
        let mut read = Self { view, places: HashMap::new() };
        source.first_price_totals(range, &mut |_, line| {
            read.places.entry(unpriced(line)).or_default();
            Ok(())
        })?;
        Ok(read)
    }

    /// Records a row that was charged without a price and is already passed on, with the month and the rate of its
    /// first price, if it has one: energy that arrived later follows its exchanges.
    pub(crate) fn see(&mut self, billed: Month, line: &DailyTotal, first: Option<&ChargeChange>) {
        let Some(held) = self.places.get_mut(&unpriced(line)) else { return };
        match first {
            None => *held.seen.entry(billed).or_default() += line.sums.exchanges,
            Some(first) => {
                let key = TotalKey { rate: first.rate, ..unpriced(line) };
                let moved = DailyTotal { key, sums: Sums::default() };
                held.add_moved(billed, first.billed, moved, line.sums.exchanges);
            }
        }
    }

    /// Takes a daily total that waits for [`Self::settle`]; returns false for any other.
    pub(crate) fn take(&mut self, billed: Month, line: &DailyTotal) -> bool {
        let is_given = line.key.class == Class::Correction && line.sums.exchanges > 0;
        let waits = is_given || (line.key.class == Class::Usage && line.key.rate.is_none());
        let Some(held) = waits.then(|| self.places.get_mut(&unpriced(line))).flatten() else { return false };
        collect(if is_given { &mut held.given } else { &mut held.unpriced }, billed, line);
        true
    }

    /// Passes on all that was taken, each count once. `from_rows`: exchanges with rows were already passed on, and are
    /// excluded.
    pub(crate) fn settle(
        mut self,
        source: &dyn Source,
        range: &Range,
        from_rows: bool,
        to: &mut Sink<'_>,
    ) -> Result<(), SourceError> {
        let view = self.view;
        let needs_each = |held: &PendingTotals| !from_rows && !held.moves_whole(view);
        if self.places.values().any(|held| !held.given.is_empty() && needs_each(held)) {
            source.first_prices(range, &mut |corrected, correction, row| {
                let Some(held) = self.places.get_mut(&unpriced(&correction.line)) else { return Ok(()) };
                let row = row.filter(|(billed, ..)| view.moves(corrected, *billed));
                if let Some((billed, row, used)) = row.filter(|_| needs_each(held)) {
                    let rate = correction.line.key.rate;
                    let mut line = DailyTotal::of_row(row, used);
                    line.key.rate = rate;
                    held.add_moved(billed, corrected, line, 0);
                }
                Ok(())
            })?;
        }
        self.places.into_values().try_for_each(|held| held.settle(view, to))
    }
}

impl PendingTotals {
    /// Returns true if one total without a price got one rate as a whole, so that no row must be read.
    fn moves_whole(&self, view: CorrectionView) -> bool {
        match (self.unpriced.as_slice(), self.given.as_slice()) {
            ([], _) => true,
            (unpriced, given)
                if !unpriced
                    .iter()
                    .any(|(billed, _)| given.iter().any(|(at, _)| view.moves(*at, *billed))) =>
            {
                true
            }
            ([(_, line)], [(_, given)]) => line.sums.exchanges == given.sums.exchanges,
            _ => false,
        }
    }

    fn add_moved(&mut self, billed: Month, corrected: Month, line: DailyTotal, seen: u64) {
        let same = |moved: &&mut MovedCounts| {
            (moved.billed, moved.corrected, moved.line.key.rate) == (billed, corrected, line.key.rate)
        };
        match self.moved.iter_mut().find(same) {
            Some(moved) => {
                moved.line.sums.add(&line.sums);
                moved.seen += seen;
            }
            None => self.moved.push(MovedCounts { billed, corrected, line, seen, is_mixed: false }),
        }
    }

    fn settle(mut self, view: CorrectionView, to: &mut Sink<'_>) -> Result<(), SourceError> {
        let mut rests = std::mem::take(&mut self.unpriced);
        for (billed, rest) in &mut rests {
            for moved in self.moved.iter().filter(|moved| moved.billed == *billed) {
                rest.sums = rest.sums.without(&moved.line.sums).ok_or(
                    "the rows that were priced since sum to more than the daily totals without a price: run \
                     `tokenmeter ledger verify` with the same `--ledger`",
                )?;
            }
            self.move_exchanges(view, *billed, rest);
        }
        // Energy may be billed later than its exchange.
        let has_none =
            |billed, rest: &DailyTotal| rest.sums.exchanges + self.seen.get(billed).unwrap_or(&0) == 0;
        let any_month = view != CorrectionView::Billed
            && rests.iter().all(|(_, rest)| rest.sums.exchanges == 0)
            && self.seen.values().all(|seen| *seen == 0);
        for (billed, rest) in &rests {
            let is_here = |moved: &MovedCounts| moved.billed == *billed || any_month;
            let is_only = self.moved.iter().filter(|moved| is_here(moved)).count() == 1;
            let moved = self.moved.iter_mut().filter(|moved| is_here(moved));
            let most = moved.max_by_key(|moved| {
                (moved.line.sums.exchanges + moved.seen, moved.corrected, moved.line.key.rate)
            });
            match most.filter(|_| has_none(billed, rest)) {
                Some(moved) => {
                    moved.line.sums.add(&rest.sums);
                    moved.is_mixed &= !is_only;
                }
                None => to(Contribution::new(rest, *billed))?,
            }
        }
        for MovedCounts { corrected, line, is_mixed, .. } in &self.moved {
            let is_mixed = *is_mixed;
            to(Contribution { first_price: true, is_mixed, ..Contribution::new(line, *corrected) })?;
        }
        for (corrected, line) in &self.given {
            let mut line = line.clone();
            line.sums.exchanges = 0;
            let moved = Contribution::new(&line, *corrected);
            to(Contribution { first_price: true, with_counts: true, ..moved })?;
        }
        Ok(())
    }

    /// Moves as many exchanges without rows as were priced. Their tokens and GPU use are known as a sum only: they
    /// follow if no exchange of the total remains without a price.
    fn move_exchanges(&mut self, view: CorrectionView, billed: Month, rest: &mut DailyTotal) {
        for at in 0..self.given.len() {
            let (corrected, given) = &self.given[at];
            if !view.moves(*corrected, billed) {
                continue;
            }
            let same =
                |moved: &&MovedCounts| (moved.corrected, moved.line.key.rate) == (*corrected, given.key.rate);
            let known: u64 = self.moved.iter().filter(same).map(|moved| moved.line.sums.exchanges).sum();
            let exchanges = given.sums.exchanges.saturating_sub(known).min(rest.sums.exchanges);
            if exchanges > 0 {
                rest.sums.exchanges -= exchanges;
                let (rate, corrected) = (given.key.rate, *corrected);
                let key = TotalKey { rate, ..unpriced(rest) };
                let line = DailyTotal { key, sums: Sums { exchanges, ..Sums::default() } };
                self.add_moved(billed, corrected, line, 0);
                let place = (billed, corrected, rate);
                let mut moved = self.moved.iter_mut();
                let moved = moved.find(|moved| (moved.billed, moved.corrected, moved.line.key.rate) == place);
                moved.into_iter().for_each(|moved| moved.is_mixed = true);
            }
        }
    }
}

/// Adds a daily total to the one with the same month and rate.
fn collect(lines: &mut Vec<(Month, DailyTotal)>, billed: Month, line: &DailyTotal) {
    match lines.iter_mut().find(|(month, has)| (*month, has.key.rate) == (billed, line.key.rate)) {
        Some((_, has)) => has.sums.add(&line.sums),
        None => lines.push((billed, line.clone())),
    }
}
