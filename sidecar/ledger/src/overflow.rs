//! Overflow totals: the sums of rows for which the queue had no room, in memory until they are on the disk.
//!
//! Laws: a row beyond the queue is in the totals or counted as lost; money of two rates is never added; memory is
//! bounded.

use std::collections::HashMap;
use std::sync::Arc;

use meter::Provenance;
use price::{Charge, Rate};

use crate::energy::EnergyRow;
use crate::lost_cost::LostCost;
use crate::source::{DeviceTotal, Gap};
use crate::{Class, GpuSums, Row, Sums, TotalKey};

/// The most separate totals at each of three levels of detail: the full key; tenant, model and rate; the rate alone.
/// One is about 400 bytes.
const MAX_KEYS: usize = 10_000;

/// The name in the place of those that a coarser total leaves out.
const OTHER: &str = "_other";

/// The sums of rows, energy and GPU use that the queue could not take.
#[derive(Clone, Debug, Default)]
pub(crate) struct OverflowTotals {
    totals: [HashMap<TotalKey, Sums>; 3],
    rates: HashMap<[u8; 16], Arc<Rate>>,
    devices: HashMap<(i32, Arc<str>, &'static str), DeviceTotal>,
    kept: Span,
    lost: Loss,
    /// The rows of merged failures. They have no gap: their disk would not be bounded.
    merged: Span,
}

/// A number of rows, and the times at which the first and the last of them ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub rows: u64,
    pub from_us: i64,
    pub until_us: i64,
}

impl Span {
    pub(crate) fn add(&mut self, us: i64, rows: u64) {
        if self.rows == 0 {
            (self.from_us, self.until_us) = (us, us);
        }
        self.rows += rows;
        self.from_us = self.from_us.min(us);
        self.until_us = self.until_us.max(us);
    }

    /// Adds the rows of another span.
    pub(crate) fn join(&mut self, other: Self) {
        if other.rows > 0 {
            self.add(other.from_us, other.rows);
            self.add(other.until_us, 0);
        }
    }

    /// Returns the time at which the first row ended; `None` without rows.
    pub(crate) fn first_us(&self) -> Option<i64> {
        (self.rows > 0).then_some(self.from_us)
    }

    pub(crate) fn gap(&self, why: &str, totals_kept: bool) -> Option<Gap> {
        let unknown = || Gap::unknown(self.from_us, self.until_us, why);
        (self.rows > 0).then(|| Gap { lost_rows: Some(self.rows), totals_kept, ..unknown() })
    }
}

/// Rows that are lost with their totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    pub span: Span,
    pub cost: LostCost,
}

impl Default for Loss {
    fn default() -> Self {
        Self { span: Span::default(), cost: LostCost::NONE }
    }
}

impl Loss {
    /// Adds rows, with the time at which one of them ended.
    pub(crate) fn add(&mut self, ended_us: i64, rows: u64, cost: LostCost) {
        self.span.add(ended_us, rows);
        self.cost = self.cost.plus(cost);
    }

    /// Adds another loss.
    pub(crate) fn join(&mut self, other: Self) {
        self.span.join(other.span);
        self.cost = self.cost.plus(other.cost);
    }

    /// Returns the gap of the rows; `None` without rows.
    pub(crate) fn gap(&self) -> Option<Gap> {
        Some(Gap { cost: self.cost, ..self.span.gap("lost", false)? })
    }
}

impl OverflowTotals {
    pub(crate) fn is_empty(&self) -> bool {
        self.totals.iter().all(HashMap::is_empty) && self.devices.is_empty() && self.lost.span.rows == 0
    }

    /// Adds a row's counts and money. Returns false if there was no room.
    pub(crate) fn row(&mut self, row: &Row) -> bool {
        // A total with a row that no file can hold could not be entered, and its other rows would be lost with it.
        let fits = crate::values::numbered(0, row).is_ok();
        let Some(sums) = fits.then(|| self.sums(TotalKey::of_row(row, Class::Shed))).flatten() else {
            self.lost.add(row.ended_us, 1, LostCost::of_row(&row.charge));
            return false;
        };
        sums.add_row(row);
        self.kept.add(row.ended_us, 1);
        if let Charge::Priced { rate, .. } = &row.charge {
            self.rates.entry(rate.id).or_insert_with(|| Arc::clone(rate));
        }
        true
    }

    /// Adds a failed exchange to the total of its upstream and ending. Returns false if there was no room.
    pub(crate) fn merge(&mut self, row: &Row) -> bool {
        let key = TotalKey { model: OTHER.into(), ..TotalKey::of_row(row, Class::Shed) };
        let mut one = Self::default();
        one.totals[0].entry(key).or_default().add_row(row);
        one.merged.add(row.ended_us, 1);
        if let Charge::Priced { rate, .. } = &row.charge {
            one.rates.insert(rate.id, Arc::clone(rate));
        }
        self.join(one)
    }

    /// Adds other totals. Returns false if there was no room for some, whose rows are lost.
    pub(crate) fn join(&mut self, other: Self) -> bool {
        let mut has_all = true;
        self.rates.extend(other.rates);
        for (key, sums) in other.totals.into_iter().flatten() {
            let cost = self.cost_of(&key, &sums);
            match self.sums(key) {
                Some(own) => own.add(&sums),
                None => {
                    let span = Span { rows: sums.exchanges, ..other.merged };
                    self.lost.join(Loss { span, cost });
                    has_all = false;
                }
            }
        }
        self.kept.join(other.kept);
        self.lost.join(other.lost);
        self.merged.join(other.merged);
        has_all
    }

    /// Adds the GPU use of an exchange. Returns false if there was no room.
    pub(crate) fn energy(&mut self, row: &EnergyRow) -> bool {
        let Some(sums) = self.sums(row.key(Class::Shed)) else { return false };
        sums.add_used(&row.used, row.role);
        // The rate may be only in another file, with the exchange.
        if let Some(rate) = &row.rate {
            self.rates.entry(rate.id).or_insert_with(|| Arc::clone(rate));
        }
        true
    }

    /// Adds GPU use without an exchange. Returns false if there was no room.
    pub(crate) fn device(&mut self, line: &DeviceTotal) -> bool {
        let key = (line.day, Arc::clone(&line.hw_id), line.share.name());
        if self.devices.len() >= MAX_KEYS && !self.devices.contains_key(&key) {
            return false;
        }
        let none = || DeviceTotal { sums: GpuSums::default(), ..line.clone() };
        self.devices.entry(key).or_insert_with(none).sums.add(&line.sums);
        true
    }

    /// Returns the sums for a key: its own, else those of its tenant and model, else those of its rate.
    fn sums(&mut self, key: TotalKey) -> Option<&mut Sums> {
        let paired = TotalKey {
            principal: None,
            upstream: OTHER.into(),
            provider: OTHER.into(),
            ending: OTHER.into(),
            input_provenance: Provenance::None,
            output_provenance: Provenance::None,
            ..key.clone()
        };
        let alone = TotalKey { tenant: OTHER.into(), model: OTHER.into(), ..paired.clone() };
        for (totals, key) in self.totals.iter_mut().zip([key, paired, alone]) {
            if totals.len() < MAX_KEYS || totals.contains_key(&key) {
                return Some(totals.entry(key).or_default());
            }
        }
        None
    }

    /// Returns the totals.
    pub(crate) fn totals(&self) -> impl Iterator<Item = (&TotalKey, &Sums)> {
        self.totals.iter().flatten()
    }

    /// Returns the rates to which totals refer.
    pub(crate) fn rates(&self) -> impl Iterator<Item = &Rate> {
        self.rates.values().map(|rate| &**rate)
    }

    /// Returns the GPU use without an exchange.
    pub(crate) fn devices(&self) -> impl Iterator<Item = &DeviceTotal> {
        self.devices.values()
    }

    /// Returns a part with one of the totals and its rate, or else with one GPU's use; without gaps.
    pub(crate) fn one(&self) -> Option<Self> {
        let mut one = Self::default();
        for (totals, own) in self.totals.iter().zip(&mut one.totals) {
            if let Some((key, sums)) = totals.iter().next() {
                let rate = key.rate.and_then(|id| self.rates.get(&id));
                one.rates.extend(rate.map(|rate| (rate.id, Arc::clone(rate))));
                own.insert(key.clone(), *sums);
                return Some(one);
            }
        }
        let (key, line) = self.devices.iter().next()?;
        one.devices.insert(key.clone(), line.clone());
        Some(one)
    }

    /// Removes such a part, which is on the disk.
    pub(crate) fn without(&mut self, one: &Self) {
        for (totals, gone) in self.totals.iter_mut().zip(&one.totals) {
            for key in gone.keys() {
                totals.remove(key);
            }
        }
        one.devices.keys().for_each(|key| drop(self.devices.remove(key)));
    }

    /// Removes such a part, which no file can hold, and counts its rows as lost. Returns the number of its rows, and
    /// of its energies and idle shares.
    pub(crate) fn lose_one(&mut self, one: &Self) -> (u64, u64) {
        self.without(one);
        let rows = one.totals().fold(0_u64, |sum, (_, sums)| sum.saturating_add(sums.exchanges));
        let kept = rows.min(self.kept.rows);
        self.kept.rows -= kept;
        self.merged.rows = self.merged.rows.saturating_sub(rows - kept);
        if rows > 0 {
            // The exact times of these rows are not known any more.
            let span = Span { rows, ..self.kept };
            self.lost.join(Loss { span, cost: one.cost() });
        }
        (rows, one.others())
    }

    /// Returns the gaps of the rows in totals and of the lost rows.
    pub(crate) fn gaps(&self) -> impl Iterator<Item = Gap> {
        [self.kept.gap("shed", true), self.lost.gap()].into_iter().flatten()
    }

    /// Counts rows as lost, with the time at which one of them ended.
    pub(crate) fn lose(&mut self, ended_us: i64, rows: u64, cost: LostCost) {
        self.lost.add(ended_us, rows, cost);
    }

    /// Counts rows as lost.
    pub(crate) fn lose_all(&mut self, lost: Loss) {
        self.lost.join(lost);
    }

    /// Returns the times of the rows in totals and of the lost rows.
    pub(crate) fn span(&self) -> Span {
        let mut span = self.kept;
        span.join(self.lost.span);
        span.join(self.merged);
        span
    }

    /// Returns what the rows in totals and the lost rows cost.
    pub(crate) fn cost(&self) -> LostCost {
        self.totals().map(|(key, sums)| self.cost_of(key, sums)).fold(self.lost.cost, LostCost::plus)
    }

    fn cost_of(&self, key: &TotalKey, sums: &Sums) -> LostCost {
        let rate = key.rate.and_then(|id| self.rates.get(&id));
        LostCost::of_total(sums.exchanges, sums.cost_pico, rate.map(|rate| &**rate))
    }

    /// Returns the number of energies and idle shares in totals. All shares of one GPU, day and kind count as one,
    /// because their number is not known.
    pub(crate) fn others(&self) -> u64 {
        let energies = self.totals().fold(0_u64, |sum, (_, sums)| sum.saturating_add(sums.energy_exchanges));
        energies.saturating_add(self.devices.len() as u64)
    }

    /// Returns the number of rows in totals, and of lost rows.
    pub(crate) fn rows(&self) -> (u64, u64) {
        (self.kept.rows + self.merged.rows, self.lost.span.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_KEYS, OverflowTotals};
    use crate::lost_cost::LostCost;
    use crate::source::{DeviceTotal, Share, Used};
    use crate::testing::{NOON_US, rate, row};
    use crate::{EnergyRow, GpuSums};

    /// The use of a GPU without an exchange.
    fn device(hw_id: &str) -> DeviceTotal {
        let sums = GpuSums { energy_nj: 2, gpu_ns: 3, gpu_hours_pico: 5, gpu_energy_pico: 7 };
        DeviceTotal { day: 1, hw_id: hw_id.into(), share: Share::Idle, sums }
    }

    #[test]
    fn gaps_span_their_rows() {
        let mut shed = OverflowTotals::default();
        assert!(shed.is_empty() && shed.gaps().next().is_none());
        assert!(shed.row(&row(9)) && shed.row(&row(4)));
        shed.lose(50, 3, LostCost::UNKNOWN);
        shed.lose(40, 1, LostCost::UNKNOWN);
        assert_eq!(shed.rows(), (2, 4));
        let gaps = shed.gaps().map(|gap| (gap.from_us, gap.until_us, gap.lost_rows, gap.totals_kept));
        assert_eq!(
            gaps.collect::<Vec<_>>(),
            [(NOON_US + 4, NOON_US + 9, Some(2), true), (40, 50, Some(4), false)]
        );
    }

    #[test]
    fn row_device_or_loss_alone_is_not_empty() {
        let fillings: [fn(&mut OverflowTotals); 3] = [
            |shed| assert!(shed.row(&row(1))),
            |shed| assert!(shed.device(&device("GPU-1"))),
            |shed| shed.lose(1, 1, LostCost::UNKNOWN),
        ];
        for fill in fillings {
            let mut shed = OverflowTotals::default();
            fill(&mut shed);
            assert!(!shed.is_empty(), "{shed:?}");
        }
    }

    /// Rows 2 and 8 have one key.
    #[test]
    fn part_no_file_can_hold_is_counted() {
        let mut shed = OverflowTotals::default();
        let used = Used { energy_nj: Some(5), gpu_ns: Some(1), ..Used::default() };
        assert!(shed.row(&row(8)) && shed.row(&row(2)) && shed.energy(&EnergyRow::of(&row(2), used)));
        assert!(shed.device(&device("GPU-1")) && shed.device(&device("GPU-1")));
        assert_eq!(shed.others(), 2);
        let part = shed.one().unwrap();
        assert_eq!((part.totals().count(), part.rates().count(), part.devices().count()), (1, 1, 0));
        assert_eq!(shed.lose_one(&part), (2, 1));
        assert_eq!(shed.rows(), (0, 2));
        let gaps = shed.gaps().map(|gap| (gap.from_us, gap.until_us, gap.lost_rows, gap.totals_kept));
        assert_eq!(gaps.collect::<Vec<_>>(), [(NOON_US + 2, NOON_US + 8, Some(2), false)]);
        let part = shed.one().unwrap();
        let sums: Vec<_> = part.devices().map(|line| line.sums).collect();
        let twice = GpuSums { energy_nj: 4, gpu_ns: 6, gpu_hours_pico: 10, gpu_energy_pico: 14 };
        assert_eq!(sums, [twice]);
        assert_eq!(shed.lose_one(&part), (0, 1));
        assert!(shed.one().is_none() && shed.rows() == (0, 2));
    }

    #[test]
    fn lost_device_changes_no_gap() {
        let mut shed = OverflowTotals::default();
        shed.lose(50, 3, LostCost::UNKNOWN);
        assert!(shed.device(&device("GPU-1")));
        let part = shed.one().unwrap();
        assert_eq!(shed.lose_one(&part), (0, 1));
        let gaps: Vec<_> = shed.gaps().map(|gap| (gap.from_us, gap.until_us, gap.lost_rows)).collect();
        assert_eq!(gaps, [(50, 50, Some(3))]);
    }

    #[test]
    fn devices_beyond_the_bound_are_refused() {
        let mut shed = OverflowTotals::default();
        assert!((0..MAX_KEYS).all(|n| shed.device(&device(&format!("GPU-{n}")))));
        assert!(!shed.device(&device("one more")) && shed.device(&device("GPU-0")));
        assert_eq!(shed.devices().count(), MAX_KEYS);
    }

    /// Twice as many tenants as there is room for, then twice as many models of one tenant: every row is
    /// in the totals, and their sums are those of the rows.
    #[test]
    fn every_row_is_in_overflow_totals() {
        let mut shed = OverflowTotals::default();
        let (mut cost, mut tokens) = (0_i128, 0_u64);
        for n in 0..u64::try_from(3 * MAX_KEYS).unwrap() {
            let mut row = row(n);
            row.tenant = format!("tenant {n}").into();
            cost += i128::from(row.charge.cost().unwrap_or(0));
            tokens += row.tokens.input() + row.tokens.output();
            assert!(shed.row(&row));
        }
        assert_eq!(shed.rows(), (3 * MAX_KEYS as u64, 0));
        assert_eq!(shed.totals().map(|(_, sums)| sums.cost_pico).sum::<i128>(), cost);
        assert_eq!(shed.totals().map(|(_, sums)| sums.tokens.iter().sum::<u64>()).sum::<u64>(), tokens);
        assert!(shed.totals().count() <= 3 * MAX_KEYS);
        let tenants: std::collections::BTreeSet<_> = shed.totals().map(|(key, _)| &*key.tenant).collect();
        assert!(tenants.contains("tenant 0") && tenants.contains("_other"));
    }

    #[test]
    fn rows_beyond_overflow_bound_are_lost() {
        let mut shed = OverflowTotals::default();
        for n in 0..u64::try_from(3 * MAX_KEYS).unwrap() + 5 {
            let mut row = row(n);
            row.tenant = format!("tenant {n}").into();
            row.charge = rate(n);
            shed.row(&row);
        }
        assert_eq!(shed.rows(), (3 * MAX_KEYS as u64, 5));
        let gaps: Vec<_> = shed.gaps().map(|gap| (gap.lost_rows, gap.totals_kept)).collect();
        assert_eq!(gaps, [(Some(3 * MAX_KEYS as u64), true), (Some(5), false)]);
    }
}
