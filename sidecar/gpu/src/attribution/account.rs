//! One device's account: where its energy and its time went.
//!
//! The law: what the device's counter grew by is attributed, idle, unattributed or still held in a
//! pool; to the nanojoule, at every sample. The same for its time.

use std::sync::Arc;
use std::time::Duration;

use meter::load::SHARES_PER_NS;
use meter::{LoadReading, Tick};

use super::curve::Curve;
use super::money::{Cost, Till};
use super::pool::{Pool, Taken};
use super::wide::mul_div;
use super::{ENERGY, Pair, TIME, added};
use crate::limits::{HOLD, KNOTS};

/// What a sample says of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Nothing.
    Nothing,
    /// It is there.
    There {
        /// Its energy counter in nanojoules, if it has one.
        energy_nj: Option<u128>,
        /// Its utilisation in millionths, over the time before the sample.
        utilization_ppm: Option<u32>,
    },
}

/// A device's account.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub(crate) uuid: Arc<str>,
    pub(crate) pools: Vec<Pool>,
    pub(crate) ledger: Ledger,
    /// When it was there last.
    seen: Tick,
    /// Until when its time is accounted for.
    counted: Tick,
    /// Its counter then.
    energy_nj: Option<u128>,
    /// ∫utilisation dt in millionths × ns, and the ns in which it was known, over ticks.
    utilization: Curve<2>,
}

/// Where things went.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) grown: Pair,
    pub(crate) attributed: Pair,
    pub(crate) idle: Pair,
    pub(crate) unattributed: Pair,
    pub(crate) idle_cost: Cost,
    pub(crate) unattributed_cost: Cost,
}

impl Account {
    /// A device appears. Nothing of before is anyone's.
    pub(crate) fn new(
        uuid: Arc<str>,
        upstreams: &[usize],
        at: Tick,
        energy_nj: Option<u128>,
        loads: &[LoadReading],
    ) -> Self {
        Self {
            uuid,
            pools: upstreams.iter().map(|&upstream| Pool::new(upstream, at, &loads[upstream])).collect(),
            ledger: Ledger::default(),
            seen: at,
            counted: at,
            energy_nj,
            utilization: Curve::new(u128::from(at.0), KNOTS),
        }
    }

    /// Takes a sample; `stale` is how long nothing may be seen before nothing more is concluded,
    /// and `last` says that no other sample will come.
    pub(crate) fn sample(
        &mut self,
        at: Tick,
        seen: Seen,
        loads: &[LoadReading],
        stale: Duration,
        last: bool,
        tills: &mut Tills,
    ) {
        let gap = u128::from(at.since(self.seen)) > stale.as_nanos();
        let Seen::There { energy_nj, utilization_ppm } = seen else {
            if gap {
                self.pass(loads);
            }
            return;
        };
        self.utilize(at, utilization_ppm.filter(|_| !gap));
        self.seen = at;
        let length = u128::from(at.since(self.counted));
        let (growth, reset) = growth(self.energy_nj, energy_nj);
        if gap {
            // Of what happened meanwhile it is only known how much it was; after a reset not even that.
            let unknown = if reset { [0; 2] } else { pair(growth, length) };
            self.ledger.grown = added(self.ledger.grown, unknown);
            tills.whole(unknown);
            self.nobodys(unknown, tills);
            self.pass(loads);
        } else {
            let still = energy_nj.is_some() && energy_nj == self.energy_nj;
            if length == 0 || (still && !last && length < HOLD.as_nanos()) {
                return;
            }
            self.close(pair(growth, length), growth > 0, loads, tills);
        }
        self.counted = at;
        self.energy_nj = energy_nj.or(self.energy_nj);
    }

    /// Shares out what a time used; `knows_energy` says whether that is its energy, or nothing was said
    /// of it. A counter that stands still says nothing: no device uses nothing.
    fn close(&mut self, used: Pair, knows_energy: bool, loads: &[LoadReading], tills: &mut Tills) {
        self.ledger.grown = added(self.ledger.grown, used);
        tills.whole(used);
        let whole = used[TIME] * SHARES_PER_NS;
        let granted = |pool: &Pool| pool.granted_since(&loads[pool.upstream]);
        let all: u128 = self.pools.iter().map(granted).sum();
        // With several upstreams on it, the device was busy as long as the busiest of them; the
        // cells may have been read a moment late.
        let active = self.pools.iter().map(granted).max().unwrap_or(0).min(whole);
        let busy = used.map(|used| mul_div(used, active, whole));
        let mut rest = busy;
        let mut known = [true; 2];
        known[ENERGY] = knows_energy;
        for pool in &mut self.pools {
            let load = &loads[pool.upstream];
            let granted = pool.granted_since(load);
            let its = busy.map(|busy| if all == 0 { 0 } else { mul_div(busy, granted, all) });
            rest = less(rest, its);
            pool.fill(load, its, known);
        }
        let idle = less(used, busy);
        self.ledger.idle = added(self.ledger.idle, idle);
        self.ledger.idle_cost.add(tills.part(idle));
        self.nobodys(rest, tills);
    }

    /// Time passes of which nothing is known: shares are granted that no energy belongs to.
    fn pass(&mut self, loads: &[LoadReading]) {
        for pool in &mut self.pools {
            pool.fill(&loads[pool.upstream], [0; 2], [false; 2]);
        }
    }

    fn utilize(&mut self, at: Tick, ppm: Option<u32>) {
        let length = u128::from(at.0).saturating_sub(self.utilization.end());
        let by = ppm.map_or([0; 2], |ppm| [length * u128::from(ppm), length]);
        self.utilization.grow(u128::from(at.0), by);
    }

    /// Mean utilisation between two ticks, 0–1, where it is known.
    pub(crate) fn utilization(&self, from: Tick, to: Tick) -> Option<f64> {
        let [sum, known] = self.utilization.between(u128::from(from.0), u128::from(to.0));
        (known > 0).then(|| (sum as f64 / known as f64 / 1e6).min(1.0))
    }

    /// The pool of an upstream that uses this device.
    pub(crate) fn pool(&self, upstream: usize) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.upstream == upstream)
    }

    /// An exchange takes what it used here.
    pub(crate) fn take(&mut self, upstream: usize, entered: u128, left: u128, tills: &mut Tills) -> Taken {
        let Some(pool) = self.pools.iter_mut().find(|pool| pool.upstream == upstream) else {
            return Taken::default();
        };
        let taken = pool.take(entered, left);
        self.ledger.attributed = added(self.ledger.attributed, taken.used);
        self.nobodys(taken.rest, tills);
        taken
    }

    /// Exchanges of an upstream have left by this sample.
    pub(crate) fn note(&mut self, upstream: usize, at: Tick, load: &LoadReading) {
        self.pools.iter_mut().filter(|pool| pool.upstream == upstream).for_each(|pool| pool.note(at, load));
    }

    /// What was used until earlier samples may be known by now.
    pub(crate) fn fill_notes(&mut self) {
        self.pools.iter_mut().for_each(Pool::fill_notes);
    }

    /// Of those who had left by the sample of `then`, some will never come.
    pub(crate) fn lose(&mut self, upstream: usize, then: Tick, share: u128, tills: &mut Tills) {
        if let Some(pool) = self.pools.iter_mut().find(|pool| pool.upstream == upstream) {
            let lost = pool.lose(then, share);
            self.nobodys(lost, tills);
        }
    }

    /// What is in the pools.
    pub(crate) fn pending(&self) -> Pair {
        self.pools.iter().fold([0; 2], |sum, pool| added(sum, pool.held()))
    }

    fn nobodys(&mut self, amount: Pair, tills: &mut Tills) {
        self.ledger.unattributed = added(self.ledger.unattributed, amount);
        self.ledger.unattributed_cost.add(tills.part(amount));
    }
}

/// The cost of the whole, and of the parts it goes to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tills {
    whole: Till,
    part: Till,
    all: Cost,
    gone: Cost,
}

impl Tills {
    pub(crate) fn new(till: Till) -> Self {
        Self { whole: till, part: till, all: Cost::default(), gone: Cost::default() }
    }

    fn whole(&mut self, amount: Pair) {
        let cost = self.whole.charge(amount);
        self.all.add(cost);
    }

    /// What a part costs that was found its place.
    pub(crate) fn part(&mut self, amount: Pair) -> Cost {
        let cost = self.part.charge(amount);
        self.gone.add(cost);
        cost
    }

    /// What everything cost.
    pub(crate) fn all(&self) -> Cost {
        self.all
    }

    /// What that costs which has not found its place yet.
    pub(crate) fn pending(&self) -> Cost {
        Cost {
            hours_pico: self.all.hours_pico - self.gone.hours_pico,
            energy_pico: self.all.energy_pico - self.gone.energy_pico,
        }
    }
}

/// By how much a counter grew, and whether it went back instead.
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

fn less(from: Pair, what: Pair) -> Pair {
    [from[0] - what[0], from[1] - what[1]]
}
