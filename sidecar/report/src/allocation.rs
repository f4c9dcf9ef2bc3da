//! Idle GPU cost allocated to tenants: the GPU use of a day without an exchange is split among the tenants of that day.
//!
//! A ledger row names no GPU, so all GPUs of a day are one pool. The weights come from daily totals that are billed in
//! their own month: neither the keys and filters of a report nor what arrives after a month was closed change a share.
//!
//! Law: what is allocated and what remains sum to the GPU use without an exchange, to the last unit.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ledger::month;
use ledger::source::{DeviceTotal, Month, Source, SourceError};
use ledger::{Class, DailyTotal, GpuSums};

use crate::group::GROUPS_MAX;
use crate::query::{Basis, Idle, Query};

/// The shares of tenants and of their places in a report.
pub(crate) struct Allocation<P> {
    /// The weights of the tenants of each day.
    days: HashMap<i32, BTreeMap<Arc<str>, i128>>,
    /// The weights of a tenant's places on a day; the place of contributions that are not selected is `None`.
    places: HashMap<(i32, Arc<str>), BTreeMap<Option<P>, Weight>>,
    places_count: usize,
    /// True if the report distinguishes the month of the bill, so that late usage has no share.
    by_bill: bool,
}

/// The callback that takes a place, `None` if it is not selected, and its part.
type Sink<'a, P> = dyn FnMut(Option<&P>, GpuSums) -> Result<(), SourceError> + 'a;

/// The weight of a place within its tenant: the GPU cost, or the exchanges if no place has a GPU cost.
#[derive(Clone, Copy, Default)]
struct Weight {
    gpu_pico: i128,
    exchanges: i128,
}

impl<P: Ord + Clone> Allocation<P> {
    /// Reads the weights of tenants; `None` if the query allocates nothing.
    pub(crate) fn read(
        source: &dyn Source,
        query: &Query,
        by_bill: bool,
    ) -> Result<Option<Self>, SourceError> {
        if query.basis != Basis::Gpu || query.idle == Idle::None {
            return Ok(None);
        }
        let mut days: HashMap<i32, BTreeMap<Arc<str>, i128>> = HashMap::new();
        source.daily_totals(&query.range, &mut |billed, line| {
            if !is_weight(billed, line) {
                return Ok(());
            }
            let gpu_pico = line.sums.gpu.cost_pico();
            let has_usage = line.sums.exchanges > 0 || line.sums.gpu != GpuSums::default();
            let tenants = days.entry(line.key.day).or_default();
            match query.idle {
                Idle::Even if has_usage => *tenants.entry(Arc::clone(&line.key.tenant)).or_default() = 1,
                Idle::Proportional if gpu_pico > 0 => {
                    *tenants.entry(Arc::clone(&line.key.tenant)).or_default() += gpu_pico;
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(Some(Self { days, places: HashMap::new(), places_count: 0, by_bill }))
    }

    /// Records a contribution and its place; `None` if the report does not select it.
    pub(crate) fn see(
        &mut self,
        billed: Month,
        line: &DailyTotal,
        place: Option<P>,
    ) -> Result<(), SourceError> {
        if line.key.class == Class::Correction || (self.by_bill && !is_weight(billed, line)) {
            return Ok(());
        }
        let places = self.places.entry((line.key.day, Arc::clone(&line.key.tenant))).or_default();
        let weight = match places.get_mut(&place) {
            Some(weight) => weight,
            None if self.places_count >= GROUPS_MAX => {
                return Err(format!(
                    "idle cost would be allocated to more than {GROUPS_MAX} groups by day; \
                     use fewer keys or a shorter period"
                )
                .into());
            }
            None => {
                self.places_count += 1;
                places.entry(place).or_default()
            }
        };
        weight.gpu_pico += line.sums.gpu.cost_pico();
        weight.exchanges += i128::from(line.sums.exchanges);
        Ok(())
    }

    /// Passes on the shares of a day's GPU use: the place, `None` if it is not selected, and its part. Returns false if
    /// no tenant has a share, so that the use stays idle.
    pub(crate) fn allocate(&self, device: &DeviceTotal, to: &mut Sink<'_, P>) -> Result<bool, SourceError> {
        let Some(tenants) = self.days.get(&device.day).filter(|tenants| !tenants.is_empty()) else {
            return Ok(false);
        };
        let weights: Vec<_> = tenants.values().copied().collect();
        for (tenant, part) in tenants.keys().zip(split_use(&device.sums, &weights)) {
            let Some(places) = self.places.get(&(device.day, Arc::clone(tenant))) else {
                return Err("a tenant with GPU cost is in the daily totals but not in the report".into());
            };
            let has = |of: fn(&Weight) -> i128| places.values().any(|weight| of(weight) != 0).then_some(of);
            let of =
                has(|weight| weight.gpu_pico).or_else(|| has(|weight| weight.exchanges)).unwrap_or(|_| 1);
            let weights: Vec<_> = places.values().map(of).collect();
            for (place, part) in places.keys().zip(split_use(&part, &weights)) {
                to(place.as_ref(), part)?;
            }
        }
        Ok(true)
    }
}

/// Returns the GPU use without an exchange by day and class, as one GPU.
pub(crate) fn pooled(devices: Vec<DeviceTotal>) -> Vec<DeviceTotal> {
    let mut pools: BTreeMap<_, GpuSums> = BTreeMap::new();
    for device in devices {
        pools.entry((device.day, device.share)).or_default().add(&device.sums);
    }
    let all: Arc<str> = Arc::default();
    pools
        .into_iter()
        .map(|((day, share), sums)| DeviceTotal { day, hw_id: Arc::clone(&all), share, sums })
        .collect()
}

/// Returns true for usage that is billed in its own month.
fn is_weight(billed: Month, line: &DailyTotal) -> bool {
    line.key.class != Class::Correction && billed == month::of_day(line.key.day)
}

fn split_use(sums: &GpuSums, weights: &[i128]) -> Vec<GpuSums> {
    let [energy, time, hours, energy_cost] =
        [sums.energy_nj, sums.gpu_ns, sums.gpu_hours_pico, sums.gpu_energy_pico]
            .map(|amount| split(amount, weights));
    (0..weights.len())
        .map(|at| GpuSums {
            energy_nj: energy[at],
            gpu_ns: time[at],
            gpu_hours_pico: hours[at],
            gpu_energy_pico: energy_cost[at],
        })
        .collect()
}

/// Splits an amount in proportion to weights, of which one at least is above zero and none below. The parts sum to the
/// amount: each is rounded down, and the units that remain go to the largest remainders, of equal ones to the first.
pub(crate) fn split(amount: i128, weights: &[i128]) -> Vec<i128> {
    let bits = |number: i128| i128::BITS - number.unsigned_abs().leading_zeros();
    // Products beyond an `i128` would need weights of more than 30 digits: their last digits decide nothing.
    let all: i128 = weights.iter().sum();
    let shift = (bits(amount) + bits(all)).saturating_sub(i128::BITS - 2);
    let weights: Vec<_> = weights.iter().map(|weight| weight >> shift).collect();
    let all: i128 = weights.iter().sum();
    let mut parts: Vec<_> = weights.iter().map(|weight| (amount * weight).div_euclid(all)).collect();
    let remainder = |at: usize| (amount * weights[at]).rem_euclid(all);
    let rest = usize::try_from(amount - parts.iter().sum::<i128>()).unwrap_or(0);
    let mut order: Vec<_> = (0..parts.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(remainder(*at)));
    order.iter().take(rest).for_each(|at| parts[*at] += 1);
    parts
}

#[cfg(test)]
#[path = "allocation_tests.rs"]
pub(crate) mod tests;
