//! The sums of a daily total, and how they grow.

use meter::{Role, TokenType};

use crate::Row;

/// Counts and money of exchanges with equal keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// The number of exchanges; of a correction, those that had no price before it.
    pub exchanges: u64,
    /// Tokens by type, in the order of [`TokenType::ALL`].
    pub tokens: [u64; TokenType::ALL.len()],
    /// The cost by price, pico-units of the rate's currency; a correction's may be negative.
    pub cost_pico: i128,
    /// The number of exchanges whose GPU use is known.
    pub energy_exchanges: u64,
    /// The GPU use of those exchanges.
    pub gpu: GpuSums,
}

/// Energy and time of GPUs, and their cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GpuSums {
    /// Nanojoules.
    pub energy_nj: i128,
    /// Nanoseconds of GPU time.
    pub gpu_ns: i128,
    /// The cost of the time, pico-dollars.
    pub gpu_hours_pico: i128,
    /// The cost of the energy, pico-dollars.
    pub gpu_energy_pico: i128,
}

/// The GPU use of an exchange, and its cost in US dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Nanojoules, if known.
    pub energy_nj: Option<u64>,
    /// Nanoseconds of GPU time, if known.
    pub gpu_ns: Option<u64>,
    /// The cost of the time, pico-dollars.
    pub gpu_hours_pico: i64,
    /// The cost of the energy, pico-dollars.
    pub gpu_energy_pico: i64,
}

impl Sums {
    /// Adds other sums. A count stays at 2^64 - 1; no store accepts half of that.
    pub fn add(&mut self, other: &Self) {
        self.exchanges = self.exchanges.saturating_add(other.exchanges);
        add_tokens(&mut self.tokens, &other.tokens);
        self.cost_pico += other.cost_pico;
        self.energy_exchanges = self.energy_exchanges.saturating_add(other.energy_exchanges);
        self.gpu.add(&other.gpu);
    }

    /// Returns the difference to other sums; `None` if a count would be negative.
    pub fn without(&self, other: &Self) -> Option<Self> {
        let mut tokens = self.tokens;
        for (from, take) in tokens.iter_mut().zip(other.tokens) {
            *from = from.checked_sub(take)?;
        }
        Some(Self {
            exchanges: self.exchanges.checked_sub(other.exchanges)?,
            tokens,
            cost_pico: self.cost_pico - other.cost_pico,
            energy_exchanges: self.energy_exchanges.checked_sub(other.energy_exchanges)?,
            gpu: self.gpu.without(&other.gpu),
        })
    }

    /// Adds one exchange. A prefill leg adds nothing, because its decode leg is counted.
    pub fn add_row(&mut self, row: &Row) {
        if !row.role.is_counted() {
            return;
        }
        self.exchanges = self.exchanges.saturating_add(1);
        add_tokens(&mut self.tokens, &row.tokens.by_type);
        self.cost_pico += row.charge.cost().map_or(0, i128::from);
    }

    /// Adds the GPU use of one exchange or leg.
    pub fn add_used(&mut self, used: &Used, role: Role) {
        self.energy_exchanges = self.energy_exchanges.saturating_add(u64::from(role.is_counted()));
        self.gpu.add(&GpuSums {
            energy_nj: used.energy_nj.unwrap_or(0).into(),
            gpu_ns: used.gpu_ns.unwrap_or(0).into(),
            gpu_hours_pico: used.gpu_hours_pico.into(),
            gpu_energy_pico: used.gpu_energy_pico.into(),
        });
    }
}

impl GpuSums {
    /// Returns the cost of time and energy, pico-dollars.
    pub fn cost_pico(&self) -> i128 {
        self.gpu_hours_pico + self.gpu_energy_pico
    }

    /// Adds other sums.
    pub fn add(&mut self, other: &Self) {
        self.energy_nj += other.energy_nj;
        self.gpu_ns += other.gpu_ns;
        self.gpu_hours_pico += other.gpu_hours_pico;
        self.gpu_energy_pico += other.gpu_energy_pico;
    }

    /// Returns the difference to other sums.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self {
            energy_nj: self.energy_nj - other.energy_nj,
            gpu_ns: self.gpu_ns - other.gpu_ns,
            gpu_hours_pico: self.gpu_hours_pico - other.gpu_hours_pico,
            gpu_energy_pico: self.gpu_energy_pico - other.gpu_energy_pico,
        }
    }
}

fn add_tokens(sums: &mut [u64; TokenType::ALL.len()], tokens: &[u64; TokenType::ALL.len()]) {
    for (sum, count) in sums.iter_mut().zip(tokens) {
        *sum = sum.saturating_add(*count);
    }
}

#[cfg(test)]
mod tests {
    use meter::TokenType;

    use super::{GpuSums, Sums};

    /// Sums in which each field has a value of its own, times a factor.
    fn sums(factor: u32) -> Sums {
        let (count, amount) = (u64::from(factor), i128::from(factor));
        Sums {
            exchanges: 2 * count,
            tokens: TokenType::ALL.map(|kind| (20 + kind as u64) * count),
            cost_pico: 14 * amount,
            energy_exchanges: count,
            gpu: GpuSums {
                energy_nj: 15 * amount,
                gpu_ns: 16 * amount,
                gpu_hours_pico: 17 * amount,
                gpu_energy_pico: 18 * amount,
            },
        }
    }

    #[test]
    fn added_sums_can_be_taken_away() {
        let mut all = sums(1);
        all.add(&sums(2));
        assert_eq!((all, all.without(&sums(1))), (sums(3), Some(sums(2))));
    }

    #[test]
    fn only_amounts_may_be_less() {
        let mut tokens = sums(1).tokens;
        tokens[0] -= 1;
        for less in [
            Sums { exchanges: 1, ..sums(1) },
            Sums { tokens, ..sums(1) },
            Sums { energy_exchanges: 0, ..sums(1) },
        ] {
            assert_eq!(less.without(&sums(1)), None, "{less:?}");
        }
        let less = Sums { cost_pico: 13, ..sums(1) }.without(&sums(1));
        assert_eq!(less, Some(Sums { cost_pico: -1, ..sums(0) }));
    }
}
