//! What an exchange was charged, as its span and its log record tell it. The law: money leaves as a
//! decimal text with every digit, since no number of the protocol holds it.

use std::sync::Arc;

use ::text::money;

use crate::attributes::Attributes;

/// What came of charging one exchange by the price book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Charge {
    /// It costs so much.
    Priced {
        /// Pico-units (10^-12) of the currency.
        pico: i64,
        /// The currency's ISO 4217 code.
        currency: Arc<str>,
        /// The version of the price book.
        version: Arc<str>,
    },
    /// Nobody can say what it costs, and why.
    Unpriced(&'static str),
}

impl Charge {
    pub(crate) fn tell(&self, list: &mut Attributes) {
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
