//! Which exchange used how much of which device: the rule is in `attribution.md` beside this crate.
//! Pure: samples and ended exchanges in, settled ones out; no clock and no I/O.
//!
//! ```text
//!   sample ──▶ account (a device) ──▶ idle
//!                │  ▲        └──────▶ unattributed ◀── lost: who left (departures) and never told
//!                ▼  │ take
//!               pool (an upstream on it)
//!                   │
//!   ended ──▶ waiting ──▶ settled, and the totals by tenant and model
//! ```
//!
//! Laws: what is not known is not made up, and what is known is not lost: the device's counter is
//! the sum of what it went to, to the nanojoule. An ended exchange always comes back, with what it
//! used or without.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use meter::{LoadReading, Tick};

use crate::limits::{LATE, WAITING};

mod account;
mod curve;
mod departures;
mod money;
mod pool;
mod totals;
mod wide;

#[cfg(test)]
mod long;
#[cfg(test)]
mod twin;

use account::{Account, Tills};
use departures::{Departures, Told};
use money::Till;
use pool::Pool;
use totals::Totals;

pub use account::Seen;
pub use money::{Cost, Prices};
pub use totals::{ModelUse, OTHER, TenantUse};

/// Nanojoules and nanoseconds.
pub(crate) type Pair = [u128; 2];
pub(crate) const ENERGY: usize = 0;
pub(crate) const TIME: usize = 1;

pub(crate) fn added(a: Pair, b: Pair) -> Pair {
    [a[0] + b[0], a[1] + b[1]]
}

/// The numbers attribution goes by.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// How long a device may not be seen before what it does meanwhile is nobody's.
    pub stale: Duration,
    /// What devices cost.
    pub prices: Prices,
    /// Tenants that are told apart.
    pub tenants: usize,
    /// Models that are told apart.
    pub models: usize,
}

/// An exchange that ended.
#[derive(Clone, Debug)]
pub struct Ended<T> {
    /// The upstream's number.
    pub upstream: usize,
    /// The model's label.
    pub model: Arc<str>,
    /// Whose it was.
    pub tenant: Arc<str>,
    /// The upstream's load cell when it began.
    pub entered: LoadReading,
    /// The upstream's load cell when it ended.
    pub left: LoadReading,
    /// Tokens it put out.
    pub output_tokens: u64,
    /// What it is to the caller; comes back with [`Settled`].
    pub ticket: T,
}

/// An ended exchange comes back.
#[derive(Clone, Debug, PartialEq)]
pub struct Settled<T> {
    /// The caller's.
    pub ticket: T,
    /// What it used; `None` if that is not known: no device, or the notice came too late.
    pub used: Option<Used>,
}

/// What an exchange used of all devices of its upstream. A sum that lacks anything is not given: where
/// a device said nothing for a part of its life, or was not there yet, that is `None`. What is known of
/// it still counts for its tenant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Used {
    /// Energy in nanojoules.
    pub energy_nj: Option<u64>,
    /// Energy of each of its output tokens, in nanojoules; `None` also if it put out none.
    pub per_token_nj: Option<u64>,
    /// Device time in nanoseconds × devices: its share of it.
    pub gpu_ns: Option<u64>,
    /// Mean utilisation of the devices during its life, 0–1; `None` also if they do not say it.
    pub utilization: Option<f64>,
    /// What energy and time cost, of what is known.
    pub cost: Cost,
}

/// A device in a sample.
#[derive(Clone, Debug)]
pub struct Metered {
    /// Its name.
    pub uuid: Arc<str>,
    /// The numbers of the upstreams that run on it.
    pub upstreams: Vec<usize>,
    /// What the sample says.
    pub seen: Seen,
}

/// Where everything went, since the beginning.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AttributionReading {
    /// By tenant's label.
    pub tenants: Vec<(Arc<str>, TenantUse)>,
    /// By model's label.
    pub models: Vec<(Arc<str>, ModelUse)>,
    /// By device.
    pub devices: Vec<DeviceUse>,
    /// What everything cost: tenants', idle, unattributed and pending.
    pub cost: Cost,
    /// What that costs which is pending.
    pub pending_cost: Cost,
    /// Ended exchanges that came back with what they used.
    pub settled: u64,
    /// Ended exchanges whose notice came too late: what they used is in `unattributed`.
    pub late: u64,
    /// Ended exchanges that found no room to wait: likewise.
    pub refused: u64,
}

/// Where a device's energy and time went. Of each: grown = attributed + idle + unattributed +
/// pending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceUse {
    /// Its name.
    pub uuid: Arc<str>,
    /// What its counter grew by since it was first seen, in nanojoules.
    pub energy_nj: u128,
    /// Of that, what settled exchanges used.
    pub attributed_nj: u128,
    /// Of that, what was used when no exchange was in flight.
    pub idle_nj: u128,
    /// Of that, what nobody answers for.
    pub unattributed_nj: u128,
    /// Of that, what exchanges used that are not settled.
    pub pending_nj: u128,
    /// Its time since it was first seen, in nanoseconds.
    pub gpu_ns: u128,
    /// Of that, settled exchanges'.
    pub attributed_ns: u128,
    /// Of that, with no exchange in flight.
    pub idle_ns: u128,
    /// Of that, nobody's.
    pub unattributed_ns: u128,
    /// Of that, of exchanges that are not settled.
    pub pending_ns: u128,
    /// What idling cost.
    pub idle_cost: Cost,
    /// What nobody answers for cost.
    pub unattributed_cost: Cost,
}

/// Attributes.
#[derive(Debug)]
pub struct Attribution<T> {
    rules: Rules,
    accounts: Vec<Account>,
    departures: Vec<Departures>,
    waiting: VecDeque<Ended<T>>,
    totals: Totals,
    tills: Tills,
    settled: u64,
    late: u64,
    refused: u64,
}

impl<T> Attribution<T> {
    /// Begins; `loads` are the upstreams' cells now.
    pub fn new(rules: Rules, loads: &[LoadReading]) -> Self {
        Self {
            accounts: Vec::new(),
            departures: loads.iter().map(Departures::new).collect(),
            waiting: VecDeque::new(),
            totals: Totals::new(rules.tenants, rules.models),
            tills: Tills::new(Till::new(&rules.prices)),
            rules,
            settled: 0,
            late: 0,
            refused: 0,
        }
    }

    /// Takes a sample of every device that was ever seen, with the cells as they were at its tick.
    /// `last` says that no other will come. Whatever can be settled now goes to `settled`.
    pub fn sample(
        &mut self,
        at: Tick,
        devices: &[Metered],
        loads: &[LoadReading],
        last: bool,
        settled: &mut dyn FnMut(Settled<T>),
    ) {
        for device in devices {
            match self.accounts.iter_mut().find(|account| account.uuid == device.uuid) {
                Some(account) => {
                    account.sample(at, device.seen, loads, self.rules.stale, last, &mut self.tills);
                }
                None => {
                    if let Seen::There { energy_nj, .. } = device.seen {
                        let uuid = Arc::clone(&device.uuid);
                        self.accounts.push(Account::new(uuid, &device.upstreams, at, energy_nj, loads));
                    }
                }
            }
        }
        self.settle(settled);
        self.accounts.iter_mut().for_each(Account::fill_notes);
        for (upstream, (departures, load)) in self.departures.iter_mut().zip(loads).enumerate() {
            // Of what happened before there was a device, nothing is in any pool, and nothing is lost.
            let mut pools = self.accounts.iter().filter_map(|account| account.pool(upstream));
            if !pools.any(|pool| pool.began() < at) {
                departures.begin(load);
            } else if departures.mark(at, load) {
                self.accounts.iter_mut().for_each(|account| account.note(upstream, at, load));
            }
        }
        self.write_off(at);
    }

    /// An exchange ended. It comes back later, or at once if what it used cannot be known: it left
    /// before there was a device, or comes too late, or finds no room.
    pub fn ended(&mut self, ended: Ended<T>) -> Option<Settled<T>> {
        let watched = self.accounts.iter().any(|account| account.pool(ended.upstream).is_some());
        let departures = self.departures.get_mut(ended.upstream).filter(|_| watched);
        let Some(departures) = departures else {
            return Some(Settled { ticket: ended.ticket, used: None });
        };
        if self.waiting.len() >= WAITING {
            self.refused += 1;
            return Some(Settled { ticket: ended.ticket, used: None });
        }
        match departures.tell(&ended.entered, &ended.left) {
            Told::InTime => {
                self.waiting.push_back(ended);
                return None;
            }
            Told::Late => self.late += 1,
            Told::Before => {}
        }
        Some(Settled { ticket: ended.ticket, used: None })
    }

    /// An exchange came back that had found no room even here.
    pub(crate) fn refused(&mut self, count: u64) {
        self.refused += count;
    }

    /// Exchanges that wait to be settled.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Gives back who still waits, without what they used.
    pub fn finish(&mut self, settled: &mut dyn FnMut(Settled<T>)) {
        for ended in self.waiting.drain(..) {
            settled(Settled { ticket: ended.ticket, used: None });
        }
    }

    /// Where everything went.
    pub fn reading(&self) -> AttributionReading {
        AttributionReading {
            tenants: self.totals.tenants(),
            models: self.totals.models(),
            devices: self.accounts.iter().map(device_use).collect(),
            cost: self.tills.all(),
            pending_cost: self.tills.pending(),
            settled: self.settled,
            late: self.late,
            refused: self.refused,
        }
    }

    fn settle(&mut self, settled: &mut dyn FnMut(Settled<T>)) {
        for _ in 0..self.waiting.len() {
            let Some(ended) = self.waiting.pop_front() else { return };
            let mut pools = self.accounts.iter().filter_map(|account| account.pool(ended.upstream));
            if !pools.all(|pool| pool.end() >= ended.left.share) {
                self.waiting.push_back(ended);
                continue;
            }
            let used = self.take(&ended);
            self.settled += u64::from(used.is_some());
            settled(Settled { ticket: ended.ticket, used });
        }
    }

    /// What an exchange used of each device of its upstream.
    fn take(&mut self, ended: &Ended<T>) -> Option<Used> {
        let (mut used, mut devices, mut known) = ([0; 2], 0u32, [true; 2]);
        let (mut utilization, mut utilized) = (0.0, 0u32);
        let was_there = |account: &&mut Account| {
            account.pool(ended.upstream).is_some_and(|pool| !pool.began_after(&ended.left))
        };
        for account in self.accounts.iter_mut().filter(was_there) {
            let its = account.take(ended.upstream, ended.entered.share, ended.left.share, &mut self.tills);
            used = added(used, its.used);
            devices += 1;
            known = [known[0] && its.known[0], known[1] && its.known[1]];
            if let Some(mean) = account.utilization(ended.entered.at, ended.left.at) {
                utilization += mean;
                utilized += 1;
            }
        }
        if devices == 0 {
            return None;
        }
        let cost = self.tills.part(used);
        self.totals.add(&ended.tenant, &ended.model, used, cost);
        let small = |amount: u128| u64::try_from(amount).unwrap_or(u64::MAX);
        let energy_nj = known[ENERGY].then(|| small(used[ENERGY]));
        Some(Used {
            energy_nj,
            per_token_nj: energy_nj.and_then(|energy| energy.checked_div(ended.output_tokens)),
            gpu_ns: known[TIME].then(|| small(used[TIME])),
            utilization: (known[TIME] && utilized > 0).then(|| utilization / f64::from(utilized)),
            cost,
        })
    }

    /// What those used who left long ago and never told becomes nobody's.
    fn write_off(&mut self, at: Tick) {
        for (upstream, departures) in self.departures.iter_mut().enumerate() {
            let pools = self.accounts.iter().filter_map(|account| account.pool(upstream));
            // What is granted beyond this is in the cell and not in all pools yet.
            let covered = pools.map(Pool::end).min().unwrap_or(u128::MAX);
            while let Some((then, lost)) = departures.lost(at, LATE, covered) {
                for account in &mut self.accounts {
                    account.lose(upstream, then, lost, &mut self.tills);
                }
            }
        }
    }
}

fn device_use(account: &Account) -> DeviceUse {
    let (ledger, pending) = (&account.ledger, account.pending());
    DeviceUse {
        uuid: Arc::clone(&account.uuid),
        energy_nj: ledger.grown[ENERGY],
        attributed_nj: ledger.attributed[ENERGY],
        idle_nj: ledger.idle[ENERGY],
        unattributed_nj: ledger.unattributed[ENERGY],
        pending_nj: pending[ENERGY],
        gpu_ns: ledger.grown[TIME],
        attributed_ns: ledger.attributed[TIME],
        idle_ns: ledger.idle[TIME],
        unattributed_ns: ledger.unattributed[TIME],
        pending_ns: pending[TIME],
        idle_cost: ledger.idle_cost,
        unattributed_cost: ledger.unattributed_cost,
    }
}
