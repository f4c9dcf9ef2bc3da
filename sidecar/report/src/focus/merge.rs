//! Merges rows of one SKU at one price: rates that differ only in the price of another type of token, or in the text of
//! their book, do not split rows.
//!
//! Law: merged values are added, so that every sum over the rows is unchanged.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use ledger::source::Month;
use price::Currency;
use text::Decimal;

use super::charge::{Charge, Kind, Known};
use crate::attributes::Entry as Attributes;

/// The key of rows of one SKU at one price.
#[derive(PartialEq, Eq, Hash)]
struct Article {
    billed: Month,
    period_us: (i64, i64),
    names: [Option<Arc<str>>; 6],
    attributes: Option<Arc<Attributes>>,
    currency: Currency,
    kind: Kind,
    description: String,
    /// The price's id identifies the price.
    price: Option<String>,
}

impl Article {
    fn of(charge: &Charge) -> Self {
        Self {
            billed: charge.billed,
            period_us: charge.period_us,
            names: [
                charge.tenant.clone(),
                charge.principal.clone(),
                charge.consumer.clone(),
                charge.resource.as_ref().map(|(id, _)| Arc::clone(id)),
                charge.model.clone(),
                charge.provider.clone(),
            ],
            attributes: charge.attributes.clone(),
            currency: charge.currency,
            kind: charge.kind,
            description: charge.description.clone(),
            price: charge.sku.as_ref().map(|sku| sku.price_id.clone()),
        }
    }
}

/// Returns the same charges with each SKU at each price once, at its first position.
pub(super) fn merge(charges: Vec<Charge>) -> Vec<Charge> {
    let mut places: HashMap<Article, usize> = HashMap::with_capacity(charges.len());
    let mut merged: Vec<Charge> = Vec::with_capacity(charges.len());
    for charge in charges {
        match places.entry(Article::of(&charge)) {
            Entry::Occupied(at) => add(&mut merged[*at.get()], charge),
            Entry::Vacant(place) => {
                place.insert(merged.len());
                merged.push(charge);
            }
        }
    }
    merged
}

fn add(to: &mut Charge, from: Charge) {
    to.cost_pico += from.cost_pico;
    to.requests = sum(to.requests, from.requests);
    to.reasoning = sum(to.reasoning, from.reasoning);
    to.energy = match (to.energy, from.energy) {
        (Some(one), Some(two)) => Some(both(one, two)),
        (one, two) => one.or(two),
    };
    if let (Some(to), Some(from)) = (&mut to.quantity, from.quantity) {
        to.consumed = both(to.consumed, from.consumed);
        to.priced = both(to.priced, from.priced);
    }
    match (&mut to.known, from.known) {
        (Known::Counts(to), Known::Counts(from)) => {
            to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        }
        (known @ Known::Unsaid, from) => *known = from,
        _ => {}
    }
}

fn sum(one: Option<i128>, two: Option<i128>) -> Option<i128> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one + two),
        (one, two) => one.or(two),
    }
}

/// Adds two decimals with equally many digits: those of one SKU have the same.
fn both(one: Decimal, two: Decimal) -> Decimal {
    debug_assert_eq!(one.digits, two.digits);
    Decimal { units: one.units + two.units, ..one }
}
