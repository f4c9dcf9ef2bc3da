//! Rates for tests.

use meter::TokenType;
use price::{Currency, Rate};

/// A rate in a currency that charges requests only, with a dummy id.
pub(crate) fn rate(currency: Currency, per_request: i64) -> Rate {
    Rate {
        id: [0; 16],
        version: "1".into(),
        book: "00".into(),
        entry: "m".into(),
        tier: "standard".into(),
        above_input_tokens: 0,
        currency,
        per_token: [None; TokenType::ALL.len()],
        per_request,
    }
}
