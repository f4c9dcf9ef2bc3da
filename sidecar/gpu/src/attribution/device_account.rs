//! One device's account: where its energy and its time went.
//!
//! The law: the growth of the device's counter is attributed, idle, unattributed or unclaimed,
//! to the nanojoule, at every sample. The same for its time.

use std::sync::Arc;
use std::time::Duration;

use meter::load::SHARES_PER_NS;
use meter::{LoadReading, Tick};

use super::curve::Curve;
use super::money::{Cost, Pricer};
use super::unclaimed::{Claim, UnclaimedUse};
use super::wide::mul_div;
use super::{ENERGY, Pair, TIME, added};
use crate::limits::{COUNTER_STALL_TIMEOUT, CURVE_MAX_POINTS};

/// A device's state in a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceSample {
    /// The sample lacks it.
    Absent,
    /// The sample has it.
    Present {
        /// Its energy counter in nanojoules, if it has one.
        energy_nj: Option<u128>,
        /// Its utilisation in millionths, over the time before the sample.
        utilization_ppm: Option<u32>,
        /// Others than the upstreams use it, too, so that the upstreams' part is unknown.
        has_others: bool,
    },
}

/// One device's totals and unclaimed use.
#[derive(Clone, Debug)]
pub(crate) struct DeviceAccount {
    pub(crate) uuid: Arc<str>,
    pub(crate) unclaimed_uses: Vec<UnclaimedUse>,
    pub(crate) ledger: Ledger,
    /// The tick of the last sample that had it.
    seen: Tick,
    /// The tick up to which its time is accounted for.
    counted: Tick,
    /// Its counter at that tick.
    energy_nj: Option<u128>,
    /// Over ticks: ∫utilisation dt in millionths × ns, and the ns in which utilisation was known.
    utilization: Curve<2>,
    /// Others used it in a sample since the last one that was accounted for.
    has_others: bool,
}

/// Totals by destination.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) grown: Pair,
    pub(crate) attributed: Pair,
    pub(crate) idle: Pair,
    pub(crate) unattributed: Pair,
    pub(crate) idle_cost: Cost,
    pub(crate) unattributed_cost: Cost,
}

impl DeviceAccount {
    /// Opens the account of a device that appears. Earlier use is not counted.
    pub(crate) fn new(
        uuid: Arc<str>,
        upstreams: &[usize],
        at: Tick,
        (energy_nj, has_others): (Option<u128>, bool),
        loads: &[LoadReading],
    ) -> Self {
        Self {
            uuid,
            unclaimed_uses: upstreams
                .iter()
                .map(|&upstream| UnclaimedUse::new(upstream, at, &loads[upstream]))
                .collect(),
            ledger: Ledger::default(),
            seen: at,
            counted: at,
            energy_nj,
            utilization: Curve::new(u128::from(at.0), CURVE_MAX_POINTS),
            has_others,
        }
    }

    /// Takes a sample. `stale` is how long samples may be missing before the growth is unattributed;
    /// `last` marks the last sample.
    pub(crate) fn sample(
        &mut self,
        at: Tick,
        seen: DeviceSample,
        loads: &[LoadReading],
        stale: Duration,
        last: bool,
        costs: &mut Costs,
    ) {
        let gap = u128::from(at.since(self.seen)) > stale.as_nanos();
        let DeviceSample::Present { energy_nj, utilization_ppm, has_others } = seen else {
            if gap {
                self.pass(loads);
            }
            return;
        };
        self.utilize(at, utilization_ppm.filter(|_| !gap));
        self.seen = at;
        let length = u128::from(at.since(self.counted));
        let (growth, reset) = growth(self.energy_nj, energy_nj);
        self.has_others |= has_others;
        let still = energy_nj.is_some() && energy_nj == self.energy_nj;
        if !gap && (length == 0 || (still && !last && length < COUNTER_STALL_TIMEOUT.as_nanos())) {
            return;
        }
        if gap || self.has_others {
            // Only the sum is known; after a gap with a reset not even that.
            let unknown = if gap && reset { [0; 2] } else { pair(growth, length) };
            self.ledger.grown = added(self.ledger.grown, unknown);
            costs.whole(unknown);
            self.add_unattributed(unknown, costs);
            self.pass(loads);
        } else {
            self.close(pair(growth, length), growth > 0, loads, costs);
        }
        self.has_others = has_others;
        self.counted = at;
        self.energy_nj = energy_nj.or(self.energy_nj);
    }

    /// Distributes the use of an interval. `knows_energy` is false if the energy of the interval is unknown:
    /// a counter that does not change gives no information, because every device uses some energy.
    fn close(&mut self, used: Pair, knows_energy: bool, loads: &[LoadReading], costs: &mut Costs) {
        self.ledger.grown = added(self.ledger.grown, used);
        costs.whole(used);
        let whole = used[TIME] * SHARES_PER_NS;
        let granted = |unclaimed: &UnclaimedUse| unclaimed.granted_since(&loads[unclaimed.upstream]);
        let all: u128 = self.unclaimed_uses.iter().map(granted).sum();
        // With several upstreams on it, the device was busy as long as the busiest of them. `min`: the
        // cells may have been read a moment late.
        let active = self.unclaimed_uses.iter().map(granted).max().unwrap_or(0).min(whole);
        let busy = used.map(|used| mul_div(used, active, whole));
        let mut rest = busy;
        let mut known = [true; 2];
        known[ENERGY] = knows_energy;
        for unclaimed in &mut self.unclaimed_uses {
            let load = &loads[unclaimed.upstream];
            let granted = unclaimed.granted_since(load);
            let its = busy.map(|busy| if all == 0 { 0 } else { mul_div(busy, granted, all) });
            rest = less(rest, its);
            unclaimed.fill(load, its, known);
        }
        let idle = less(used, busy);
        self.ledger.idle = added(self.ledger.idle, idle);
        self.ledger.idle_cost.add(costs.part(idle));
        self.add_unattributed(rest, costs);
    }

    /// Covers an interval of which nothing is known: shares are granted without energy.
    fn pass(&mut self, loads: &[LoadReading]) {
        for unclaimed in &mut self.unclaimed_uses {
            unclaimed.fill(&loads[unclaimed.upstream], [0; 2], [false; 2]);
        }
    }

    fn utilize(&mut self, at: Tick, ppm: Option<u32>) {
        let length = u128::from(at.0).saturating_sub(self.utilization.end());
        let by = ppm.map_or([0; 2], |ppm| [length * u128::from(ppm), length]);
        self.utilization.grow(u128::from(at.0), by);
    }

    /// Returns the mean utilisation between two ticks, 0–1, over the time in which it is known.
    pub(crate) fn utilization(&self, from: Tick, to: Tick) -> Option<f64> {
        let [sum, known] = self.utilization.between(u128::from(from.0), u128::from(to.0));
        (known > 0).then(|| (sum as f64 / known as f64 / 1e6).min(1.0))
    }

    /// Returns the unclaimed use of an upstream on this device.
    pub(crate) fn unclaimed(&self, upstream: usize) -> Option<&UnclaimedUse> {
        self.unclaimed_uses.iter().find(|unclaimed| unclaimed.upstream == upstream)
    }

    /// Moves an exchange's use from unclaimed to attributed.
    pub(crate) fn claim(&mut self, upstream: usize, entered: u128, left: u128, costs: &mut Costs) -> Claim {
        let Some(unclaimed) = self.unclaimed_uses.iter_mut().find(|unclaimed| unclaimed.upstream == upstream)
        else {
            return Claim::default();
        };
        let claim = unclaimed.claim(entered, left);
        self.ledger.attributed = added(self.ledger.attributed, claim.used);
        self.add_unattributed(claim.remainder, costs);
        claim
    }

    /// Notes that exchanges of an upstream have ended by this sample.
    pub(crate) fn note(&mut self, upstream: usize, at: Tick, load: &LoadReading) {
        self.unclaimed_uses
            .iter_mut()
            .filter(|unclaimed| unclaimed.upstream == upstream)
            .for_each(|unclaimed| unclaimed.note_exit(at, load));
    }

    /// Completes the exits of earlier samples whose unclaimed use is known by now.
    pub(crate) fn complete_exits(&mut self) {
        self.unclaimed_uses.iter_mut().for_each(UnclaimedUse::complete_exits);
    }

    /// Writes off the share of exchanges that had ended by the sample of `then` and sent no notice.
    pub(crate) fn write_off(&mut self, upstream: usize, then: Tick, share: u128, costs: &mut Costs) {
        if let Some(unclaimed) =
            self.unclaimed_uses.iter_mut().find(|unclaimed| unclaimed.upstream == upstream)
        {
            let lost = unclaimed.write_off(then, share);
            self.add_unattributed(lost, costs);
        }
    }

    /// Returns the sum of the unclaimed use.
    pub(crate) fn pending(&self) -> Pair {
        self.unclaimed_uses.iter().fold([0; 2], |sum, unclaimed| added(sum, unclaimed.held()))
    }

    fn add_unattributed(&mut self, amount: Pair, costs: &mut Costs) {
        self.ledger.unattributed = added(self.ledger.unattributed, amount);
        self.ledger.unattributed_cost.add(costs.part(amount));
    }
}

/// The cost of the whole, and of the parts. Both carry their own remainder, so that they agree in sum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    whole: Pricer,
    part: Pricer,
    all: Cost,
    gone: Cost,
}

impl Costs {
    pub(crate) fn new(till: Pricer) -> Self {
        Self { whole: till, part: till, all: Cost::default(), gone: Cost::default() }
    }

    fn whole(&mut self, amount: Pair) {
        let cost = self.whole.charge(amount);
        self.all.add(cost);
    }

    /// Returns the cost of a part that was attributed, idle or unattributed.
    pub(crate) fn part(&mut self, amount: Pair) -> Cost {
        let cost = self.part.charge(amount);
        self.gone.add(cost);
        cost
    }

    /// Returns the cost of everything.
    pub(crate) fn all(&self) -> Cost {
        self.all
    }

    /// Returns the cost of what is not yet assigned.
    pub(crate) fn pending(&self) -> Cost {
        Cost {
            hours_pico: self.all.hours_pico - self.gone.hours_pico,
            energy_pico: self.all.energy_pico - self.gone.energy_pico,
        }
    }
}

/// Returns the growth of a counter, and true if it went back instead.
fn growth(before: Option<u128>, now: Option<u128>) -> (u128, bool) {
    match (before, now) {
        (Some(before), Some(now)) => (now.saturating_sub(before), now < before),
        _ => (0, false),
    }
}

fn pair(energy: u128, time: u128) -> Pair {
    let mut pair = [0; 2];
    (pair[ENERGY], pair[TIME]) = (energy, time);
    pair
}

fn less(from: Pair, amount: Pair) -> Pair {
    [from[0] - amount[0], from[1] - amount[1]]
}
