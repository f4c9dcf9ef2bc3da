//! The cost of time and energy, in pico-dollars. The law: exact. Each division's remainder is carried
//! into the next, so that the parts add up to the cost of the whole.

use super::{ENERGY, Pair, TIME};

/// Prices of GPU time and energy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices {
    /// A device-hour, busy or not, in pico-dollars; 0: not counted.
    pub hour_pico: u64,
    /// A kilowatt-hour, in pico-dollars; 0: not counted.
    pub kwh_pico: u64,
    /// Power usage effectiveness, in millionths: the building's power per device power.
    /// 1,000,000 means no overhead.
    pub pue_micro: u64,
}

impl Default for Prices {
    fn default() -> Self {
        Self { hour_pico: 0, kwh_pico: 0, pue_micro: 1_000_000 }
    }
}

/// Money in pico-dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// GPU time × price of an hour.
    pub hours_pico: i128,
    /// Energy × price of a kilowatt-hour × power usage effectiveness.
    pub energy_pico: i128,
}

impl Cost {
    pub(crate) fn add(&mut self, other: Self) {
        self.hours_pico += other.hours_pico;
        self.energy_pico += other.energy_pico;
    }
}

/// Nanoseconds in an hour.
const HOUR_NS: u128 = 3_600_000_000_000;

/// Nanojoules in a kilowatt-hour, times the millionths of the power usage effectiveness.
const KWH: u128 = 3_600_000_000_000_000 * 1_000_000;

/// Prices amounts, and carries the remainders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pricer {
    rate: Pair,
    carry: Pair,
}

impl Pricer {
    pub(crate) fn new(prices: &Prices) -> Self {
        let mut rate = [0; 2];
        rate[TIME] = u128::from(prices.hour_pico);
        rate[ENERGY] = u128::from(prices.kwh_pico) * u128::from(prices.pue_micro);
        Self { rate, carry: [0; 2] }
    }

    /// Returns the cost of an amount plus the last remainder.
    pub(crate) fn charge(&mut self, amount: Pair) -> Cost {
        let mut pico = |i: usize, per: u128| {
            let due = amount[i].saturating_mul(self.rate[i]).saturating_add(self.carry[i]);
            self.carry[i] = due % per;
            i128::try_from(due / per).unwrap_or(i128::MAX)
        };
        Cost { hours_pico: pico(TIME, HOUR_NS), energy_pico: pico(ENERGY, KWH) }
    }
}
