//! The cost of exchanges, as the control plane reports it. Invariant: sums are whole pico-units and exact; they become
//! floats in a reading. Names are labels.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::names::OTHER;

meter::listed_enum! {
    /// The basis of a cost. Sums on two bases are never added up.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Basis {
        /// Tokens by the price book, in its currency.
        Price = "price",
        /// Device hours and energy, in US dollars.
        Gpu = "gpu",
    }
    /// Returns the label value.
    pub fn name(self);
}

/// Label values of `reason` of `tokenmeter_unpriced_exchanges_total`.
pub const UNPRICED: [&str; 5] = ["no_book", "model", "token_type", "overflow", "uncounted"];

/// The costs so far, by label.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spend {
    /// By label and basis, pico-units.
    pub(crate) tenants: Sums,
    /// By label and basis, pico-units.
    pub(crate) models: Sums,
    /// By the model's label and the reason.
    pub(crate) unpriced: BTreeMap<(Arc<str>, &'static str), u64>,
    /// By the model's label: exchanges of a tier without prices, charged at base prices.
    pub(crate) unpriced_tiers: BTreeMap<Arc<str>, u64>,
}

pub(crate) type Sums = BTreeMap<Arc<str>, [Option<i128>; Basis::ALL.len()]>;

impl Spend {
    /// Adds one charge.
    pub(crate) fn charge(&mut self, tenant: Arc<str>, model: Arc<str>, basis: Basis, pico: i128) {
        for (sums, label) in [(&mut self.tenants, tenant), (&mut self.models, model)] {
            let sum = sums.entry(label).or_default()[basis as usize].get_or_insert_default();
            // A counter never decreases; corrections are in the ledger only.
            *sum = sum.saturating_add(pico.max(0));
        }
    }

    /// Moves the sums of an evicted model label to `_other`.
    pub(crate) fn evict_model(&mut self, label: &Arc<str>) {
        move_sums(&mut self.models, label);
        for reason in UNPRICED {
            if let Some(n) = self.unpriced.remove(&(Arc::clone(label), reason)) {
                *self.unpriced.entry((OTHER.into(), reason)).or_default() += n;
            }
        }
        if let Some(n) = self.unpriced_tiers.remove(label) {
            *self.unpriced_tiers.entry(OTHER.into()).or_default() += n;
        }
    }

    /// Moves the sums of an evicted tenant label to `_other`.
    pub(crate) fn evict_tenant(&mut self, label: &Arc<str>) {
        move_sums(&mut self.tenants, label);
    }

    /// Adds an exchange without a price.
    pub(crate) fn unpriced(&mut self, model: Arc<str>, reason: &'static str) {
        *self.unpriced.entry((model, reason)).or_default() += 1;
    }

    /// Adds an exchange of a tier without prices.
    pub(crate) fn unpriced_tier(&mut self, model: Arc<str>) {
        *self.unpriced_tiers.entry(model).or_default() += 1;
    }
}

fn move_sums(sums: &mut Sums, label: &Arc<str>) {
    let Some(moved) = sums.remove(label) else { return };
    let others = sums.entry(OTHER.into()).or_default();
    for (sum, moved) in others.iter_mut().zip(moved) {
        if let Some(moved) = moved {
            *sum = Some(sum.unwrap_or_default().saturating_add(moved));
        }
    }
}

/// Converts pico-units to units: the float nearest to the exact sum, rounded once. A sum of up to fifteen digits is
/// printed exactly. A division of floats would round a sum above 9,007 units twice.
pub fn units(pico: i128) -> f64 {
    let sign = if pico < 0 { "-" } else { "" };
    let size = pico.unsigned_abs();
    let decimal = format!("{sign}{}.{:012}", size / UNIT, size % UNIT);
    decimal.parse().expect("digits around a point are a float")
}

/// Pico-units per unit.
const UNIT: u128 = 1_000_000_000_000;

#[cfg(test)]
mod tests {
    use super::units;

    /// The shortest form of the nearest float is the sum itself.
    #[test]
    fn sum_of_fifteen_digits_is_exact() {
        for (pico, shown) in [
            (0, "0"),
            (1, "0.000000000001"),
            (300_000_000_000, "0.3"),
            (-300_000_000_000, "-0.3"),
            (36_536_224_158_904_700, "36536.2241589047"),
            (845_203_924_135_000_000, "845203.924135"),
            (-845_203_924_135_000_000, "-845203.924135"),
            (9_912_440_350_000_000_000, "9912440.35"),
            (82_128_566_239_671_000_000_000_000, "82128566239671"),
        ] {
            assert_eq!(units(pico).to_string(), shown);
        }
    }

    /// Sums with more digits than a float has, rounded up and down.
    #[test]
    fn longer_sum_is_nearest_float() {
        assert_eq!(units(9_007_199_254_740_993_000_000_000_001), 9_007_199_254_740_994.0);
        assert_eq!(units(9_007_199_254_740_993_000_000_000_000), 9_007_199_254_740_992.0);
        assert_eq!(units(i128::MAX), 1.701_411_834_604_692_3e26);
        assert_eq!(units(i128::MIN), -1.701_411_834_604_692_3e26);
    }
}
