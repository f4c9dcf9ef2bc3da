//! Attribution of each device's energy and time to exchanges, by the rule in `attribution.md` beside this crate.
//! Pure: samples and ended exchanges in, settled exchanges out; no clock and no I/O.
//!
//! ```text
//!   sample ──▶ device account ──▶ idle
//!                │  ▲        └──────▶ unattributed ◀── write-off: exchanges without a notice (lost records)
//!                ▼  │ claim
//!               unclaimed use (of one upstream on the device)
//!                   │
//!   ended ──▶ waiting ──▶ settled, and the totals by tenant and model
//! ```
//!
//! Laws: nothing unknown is invented, and nothing known is lost: the growth of a device's counter is
//! the sum of its parts, to the nanojoule. Every ended exchange comes back, with its use or
//! without.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use meter::{LoadReading, Tick};

use crate::limits::{NOTICE_TIMEOUT, WAITING_MAX_ITEMS};

mod curve;
mod device_account;
mod lost_records;
mod money;
mod totals;
mod unclaimed;
mod wide;

#[cfg(test)]
mod long;
#[cfg(test)]
mod twin;

use device_account::{Costs, DeviceAccount};
use lost_records::{LostRecords, NoticeArrival};
use money::Pricer;
use totals::Totals;
use unclaimed::UnclaimedUse;

pub use device_account::DeviceSample;
pub use money::{Cost, Prices};
pub use totals::{ModelUse, OTHER, TenantUse};

/// An amount of energy in nanojoules and of time in nanoseconds, indexed by [`ENERGY`] and [`TIME`].
pub(crate) type Pair = [u128; 2];
pub(crate) const ENERGY: usize = 0;
pub(crate) const TIME: usize = 1;

pub(crate) fn added(a: Pair, b: Pair) -> Pair {
    [a[0] + b[0], a[1] + b[1]]
}

/// The parameters of attribution.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The staleness limit: if a device is missing from the samples for longer, its growth meanwhile is unattributed.
    pub stale: Duration,
    /// The prices of device time and energy.
    pub prices: Prices,
    /// The number of tenants that have totals of their own.
    pub tenants: usize,
    /// The number of models that have totals of their own.
    pub models: usize,
}

/// An exchange that ended.
#[derive(Clone, Debug)]
pub struct Ended<T> {
    /// The upstream's number.
    pub upstream: usize,
    /// The model's label.
    pub model: Arc<str>,
    /// The tenant's label.
    pub tenant: Arc<str>,
    /// The upstream's load cell when it began.
    pub entered: LoadReading,
    /// The upstream's load cell when it ended.
    pub left: LoadReading,
    /// Output tokens of the exchange.
    pub output_tokens: u64,
    /// The caller's value, returned in [`Settled`].
    pub context: T,
}

/// An ended exchange that comes back.
#[derive(Clone, Debug, PartialEq)]
pub struct Settled<T> {
    /// The caller's value.
    pub context: T,
    /// Its use; `None` if unknown: there was no device, or the notice came too late.
    pub used: Option<ExchangeUse>,
}

/// The use that an exchange made of all devices of its upstream. A sum that would be incomplete is `None`: a device
/// reported nothing for a part of the exchange's life, or was not there yet. The known part still counts for
/// the tenant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExchangeUse {
    /// Energy in nanojoules.
    pub energy_nj: Option<u64>,
    /// Energy per output token, in nanojoules; `None` also without output tokens.
    pub per_token_nj: Option<u64>,
    /// Its share of device time, in nanoseconds × devices.
    pub gpu_ns: Option<u64>,
    /// Mean utilisation of the devices during its life, 0–1; `None` also if they do not report it.
    pub utilization: Option<f64>,
    /// The cost of the known energy and time.
    pub cost: Cost,
}

/// A device in a sample.
#[derive(Clone, Debug)]
pub struct MeteredDevice {
    /// The device's UUID.
    pub uuid: Arc<str>,
    /// The indices of the upstreams that run on it.
    pub upstreams: Vec<usize>,
    /// Its state in the sample.
    pub seen: DeviceSample,
}

/// All energy, time and cost since the start, by where it went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AttributionReading {
    /// By tenant's label.
    pub tenants: Vec<(Arc<str>, TenantUse)>,
    /// By model's label.
    pub models: Vec<(Arc<str>, ModelUse)>,
    /// By device.
    pub devices: Vec<DeviceUse>,
    /// The cost of everything: attributed, idle, unattributed and pending.
    pub cost: Cost,
    /// The cost of what is pending.
    pub pending_cost: Cost,
    /// Ended exchanges that came back with their use.
    pub settled: u64,
    /// Ended exchanges whose notice came too late: their use is in `unattributed`.
    pub late: u64,
    /// Ended exchanges for which the queue was full: likewise.
    pub refused: u64,
}

/// A device's energy and time by destination. Each total is attributed + idle + unattributed +
/// pending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceUse {
    /// The device's UUID.
    pub uuid: Arc<str>,
    /// Growth of its counter since it was first seen, in nanojoules.
    pub energy_nj: u128,
    /// Of that, used by settled exchanges.
    pub attributed_nj: u128,
    /// Of that, used while no exchange was in flight.
    pub idle_nj: u128,
    /// Of that, without an exchange to attribute it to.
    pub unattributed_nj: u128,
    /// Of that, used by exchanges that are not settled.
    pub pending_nj: u128,
    /// Time since it was first seen, in nanoseconds.
    pub gpu_ns: u128,
    /// Of that, of settled exchanges.
    pub attributed_ns: u128,
    /// Of that, with no exchange in flight.
    pub idle_ns: u128,
    /// Of that, without an exchange to attribute it to.
    pub unattributed_ns: u128,
    /// Of that, of exchanges that are not settled.
    pub pending_ns: u128,
    /// The cost of idle time and energy.
    pub idle_cost: Cost,
    /// The cost of unattributed time and energy.
    pub unattributed_cost: Cost,
}

/// The accounts of all devices, and the exchanges that wait to be settled.
#[derive(Debug)]
pub struct Attribution<T> {
    rules: Rules,
    accounts: Vec<DeviceAccount>,
    lost_records: Vec<LostRecords>,
    waiting: VecDeque<Ended<T>>,
    totals: Totals,
    costs: Costs,
    settled: u64,
    late: u64,
    refused: u64,
}

impl<T> Attribution<T> {
    /// Returns an empty one; `loads` are the upstreams' cells now.
    pub fn new(rules: Rules, loads: &[LoadReading]) -> Self {
        Self {
            accounts: Vec::new(),
            lost_records: loads.iter().map(LostRecords::new).collect(),
            waiting: VecDeque::new(),
            totals: Totals::new(rules.tenants, rules.models),
            costs: Costs::new(Pricer::new(&rules.prices)),
            rules,
            settled: 0,
            late: 0,
            refused: 0,
        }
    }

    /// Takes a sample of every device that was ever seen, with the cells at its tick.
    /// `last` marks the last sample. Every exchange that can be settled now goes to `settled`.
    pub fn sample(
        &mut self,
        at: Tick,
        devices: &[MeteredDevice],
        loads: &[LoadReading],
        last: bool,
        settled: &mut dyn FnMut(Settled<T>),
    ) {
        for device in devices {
            match self.accounts.iter_mut().find(|account| account.uuid == device.uuid) {
                Some(account) => {
                    account.sample(at, device.seen, loads, self.rules.stale, last, &mut self.costs);
                }
                None => {
                    if let DeviceSample::Present { energy_nj, has_others, .. } = device.seen {
                        let uuid = Arc::clone(&device.uuid);
                        let first = (energy_nj, has_others);
                        self.accounts.push(DeviceAccount::new(uuid, &device.upstreams, at, first, loads));
                    }
                }
            }
        }
        self.settle(settled);
        self.accounts.iter_mut().for_each(DeviceAccount::complete_exits);
        for (upstream, (lost_records, load)) in self.lost_records.iter_mut().zip(loads).enumerate() {
            // Exchanges from before the first device are in no unclaimed use, so none of their use can be lost.
            let mut unclaimed_uses = self.accounts.iter().filter_map(|account| account.unclaimed(upstream));
            if !unclaimed_uses.any(|unclaimed| unclaimed.first_seen() < at) {
                lost_records.begin(load);
            } else if lost_records.record_exits(at, load) {
                self.accounts.iter_mut().for_each(|account| account.note(upstream, at, load));
            }
        }
        self.write_off(at);
    }

    /// Takes an ended exchange. It comes back later, or at once if its use cannot be known: it ended
    /// before there was a device, its notice is too late, or the queue is full.
    pub fn ended(&mut self, ended: Ended<T>) -> Option<Settled<T>> {
        let watched = self.accounts.iter().any(|account| account.unclaimed(ended.upstream).is_some());
        let lost_records = self.lost_records.get_mut(ended.upstream).filter(|_| watched);
        let Some(lost_records) = lost_records else {
            return Some(Settled { context: ended.context, used: None });
        };
        if self.waiting.len() >= WAITING_MAX_ITEMS {
            self.refused += 1;
            return Some(Settled { context: ended.context, used: None });
        }
        match lost_records.notice(&ended.entered, &ended.left) {
            NoticeArrival::OnTime => {
                self.waiting.push_back(ended);
                return None;
            }
            NoticeArrival::Late => self.late += 1,
            NoticeArrival::BeforeFirstSample => {}
        }
        Some(Settled { context: ended.context, used: None })
    }

    /// Counts exchanges that the caller's queue rejected.
    pub(crate) fn refused(&mut self, count: u64) {
        self.refused += count;
    }

    /// Exchanges that wait to be settled.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Gives the waiting exchanges back without their use.
    pub fn finish(&mut self, settled: &mut dyn FnMut(Settled<T>)) {
        for ended in self.waiting.drain(..) {
            settled(Settled { context: ended.context, used: None });
        }
    }

    /// Returns all totals since the start.
    pub fn reading(&self) -> AttributionReading {
        AttributionReading {
            tenants: self.totals.tenants(),
            models: self.totals.models(),
            devices: self.accounts.iter().map(device_use).collect(),
            cost: self.costs.all(),
            pending_cost: self.costs.pending(),
            settled: self.settled,
            late: self.late,
            refused: self.refused,
        }
    }

    fn settle(&mut self, settled: &mut dyn FnMut(Settled<T>)) {
        for _ in 0..self.waiting.len() {
            let Some(ended) = self.waiting.pop_front() else { return };
            let mut unclaimed_uses =
                self.accounts.iter().filter_map(|account| account.unclaimed(ended.upstream));
            if !unclaimed_uses.all(|unclaimed| unclaimed.end() >= ended.left.share) {
                self.waiting.push_back(ended);
                continue;
            }
            let used = self.claim(&ended);
            self.settled += u64::from(used.is_some());
            settled(Settled { context: ended.context, used });
        }
    }

    /// Takes the exchange's use from each device of its upstream.
    fn claim(&mut self, ended: &Ended<T>) -> Option<ExchangeUse> {
        let (mut used, mut devices, mut known) = ([0; 2], 0u32, [true; 2]);
        let (mut utilization, mut utilized) = (0.0, 0u32);
        let was_in_flight = |account: &&mut DeviceAccount| {
            account
                .unclaimed(ended.upstream)
                .is_some_and(|unclaimed| !unclaimed.had_ended_before(&ended.left))
        };
        for account in self.accounts.iter_mut().filter(was_in_flight) {
            let its = account.claim(ended.upstream, ended.entered.share, ended.left.share, &mut self.costs);
            used = added(used, its.used);
            devices += 1;
            known = [known[0] && its.complete[0], known[1] && its.complete[1]];
            if let Some(mean) = account.utilization(ended.entered.at, ended.left.at) {
                utilization += mean;
                utilized += 1;
            }
        }
        if devices == 0 {
            return None;
        }
        let cost = self.costs.part(used);
        self.totals.add(&ended.tenant, &ended.model, used, cost);
        let small = |amount: u128| u64::try_from(amount).unwrap_or(u64::MAX);
        let energy_nj = known[ENERGY].then(|| small(used[ENERGY]));
        Some(ExchangeUse {
            energy_nj,
            per_token_nj: energy_nj.and_then(|energy| energy.checked_div(ended.output_tokens)),
            gpu_ns: known[TIME].then(|| small(used[TIME])),
            utilization: (known[TIME] && utilized > 0).then(|| utilization / f64::from(utilized)),
            cost,
        })
    }

    /// Moves the use of exchanges without a timely notice to unattributed.
    fn write_off(&mut self, at: Tick) {
        for (upstream, lost_records) in self.lost_records.iter_mut().enumerate() {
            let unclaimed_uses = self.accounts.iter().filter_map(|account| account.unclaimed(upstream));
            // A share beyond this is in the cell, but not yet in the unclaimed use of every device.
            let covered = unclaimed_uses.map(UnclaimedUse::end).min().unwrap_or(u128::MAX);
            while let Some((then, lost)) = lost_records.lost(at, NOTICE_TIMEOUT, covered) {
                for account in &mut self.accounts {
                    account.write_off(upstream, then, lost, &mut self.costs);
                }
            }
        }
    }
}

fn device_use(account: &DeviceAccount) -> DeviceUse {
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
