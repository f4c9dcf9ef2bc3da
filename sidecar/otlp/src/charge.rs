//! The charge of an exchange, for its span and its log record. Invariant: money is exported as an exact decimal text,
//! because the protocol has no decimal numbers.

use std::sync::Arc;

use ::text::money;

use crate::attributes::Attributes;

/// The charge of one exchange by the price book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Charge {
    /// The cost.
    Priced {
        /// Pico-units (10^-12) of the currency.
        pico: i64,
        /// The currency's ISO 4217 code.
        currency: Arc<str>,
        /// The version of the price book.
        version: Arc<str>,
    },
    /// No price, with the reason.
    Unpriced(&'static str),
}

impl Charge {
    /// Adds its attributes to a list.
    pub(crate) fn add_to(&self, list: &mut Attributes) {
        match self {
            Self::Priced { pico, currency, version } => {
                list.text("tokenmeter.cost", &money(i128::from(*pico)).to_string());
                list.text("tokenmeter.cost.currency", currency);
                list.text("tokenmeter.price.version", version);
            }
            Self::Unpriced(reason) => list.text("tokenmeter.unpriced", reason),
        }
    }
}
