//! The parts of GPU cost without an exchange: the method by which each was allocated, and its ratio to the whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use text::Decimal;

use super::charge::{Charge, Split};
use crate::allocation::split;
use crate::query::Idle;

/// Digits of a ratio after the point.
const RATIO_DIGITS: u32 = 12;

/// Sets the ratio of each part of GPU cost without an exchange: those of one SKU and period sum to 1.
pub(super) fn set_ratios(idle: Idle, charges: &mut [Charge]) {
    let method = match idle {
        Idle::None | Idle::Proportional => "tokenmeter-idle-proportional",
        Idle::Even => "tokenmeter-idle-even",
    };
    let mut origins: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (at, charge) in charges.iter().enumerate() {
        let sku = charge.sku.as_ref().map(|sku| sku.meter);
        if let Some((share, "GPU")) = &charge.resource {
            origins.entry((charge.billed, charge.period_us, Arc::clone(share), sku)).or_default().push(at);
        }
    }
    for parts in origins.into_values() {
        let quantity =
            |at: &usize| charges[*at].quantity.as_ref().map_or(0, |quantity| quantity.priced.units);
        let costs: Vec<_> = parts.iter().map(|at| charges[*at].cost_pico).collect();
        // Without a price, the parts are those of the quantity.
        let is_priced = costs.iter().any(|cost| *cost != 0);
        let weights = if is_priced { costs } else { parts.iter().map(quantity).collect() };
        for (at, units) in parts.iter().zip(split(10_i128.pow(RATIO_DIGITS), &weights)) {
            let ratio = Decimal { units, digits: RATIO_DIGITS, least: 0 };
            charges[*at].split = Some(Split { method, ratio });
        }
    }
}
