//! What an exchange was charged, as its span and its log record tell it. The law: money leaves as a
//! decimal text with every digit, since no number of the protocol holds it.

use std::sync::Arc;

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
                list.text("tokenmeter.cost", &decimal(*pico));
                list.text("tokenmeter.cost.currency", currency);
                list.text("tokenmeter.price.version", version);
            }
            Self::Unpriced(reason) => list.text("tokenmeter.unpriced", reason),
        }
    }
}

/// Every digit there is, and at least two after the point.
fn decimal(pico: i64) -> String {
    let (sign, whole) = (if pico < 0 { "-" } else { "" }, pico.unsigned_abs());
    let digits = format!("{:012}", whole % UNIT);
    let kept = digits.trim_end_matches('0').len().max(2);
    format!("{sign}{}.{}", whole / UNIT, &digits[..kept])
}

/// Pico-units in a unit.
const UNIT: u64 = 1_000_000_000_000;

#[cfg(test)]
mod tests {
    use super::decimal;

    #[test]
    fn money_is_told_to_the_last_digit() {
        for (pico, told) in [
            (0, "0.00"),
            (1, "0.000000000001"),
            (10_000_000_000, "0.01"),
            (500_000_000_000, "0.50"),
            (1_234_500_000_000, "1.2345"),
            (-1_000_000_000_001, "-1.000000000001"),
            (i64::MAX, "9223372.036854775807"),
            (i64::MIN, "-9223372.036854775808"),
        ] {
            assert_eq!(decimal(pico), told);
        }
    }
}
