//! What one exchange costs, and by which rate: the values that leave this crate.

use std::sync::Arc;

use meter::TokenType;

/// Money per unit, in pico-units (10⁻¹²) of a currency.
pub type Pico = i64;

/// A currency by its ISO 4217 code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Currency(pub [u8; 3]);

impl Currency {
    /// US dollars.
    pub const USD: Self = Self(*b"USD");

    /// The code, three upper-case letters.
    pub fn code(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or("XXX")
    }
}

/// The unit prices by which an exchange was charged. Two of one content are one: see [`Rate::id`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The first 16 bytes of a BLAKE3 hash over all else here: the same on every node.
    pub id: [u8; 16],
    /// The version of the price book, as its file names it.
    pub version: Arc<str>,
    /// The book's content hash, in hexadecimal.
    pub book: Arc<str>,
    /// The entry of the book: the model's name or pattern.
    pub entry: Arc<str>,
    /// The service tier the prices are for: `standard`, `batch`, `flex`, `priority`, ….
    pub tier: Arc<str>,
    /// The prices hold for prompts of more tokens than this; 0 for the entry's ordinary ones.
    pub above_input_tokens: u64,
    /// What the prices are in.
    pub currency: Currency,
    /// Price of one token by [`TokenType`], in the order of [`TokenType::ALL`]; `None` is "not named".
    pub per_token: [Option<Pico>; TokenType::ALL.len()],
    /// Price of one request.
    pub per_request: Pico,
}

/// What one exchange costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Charge {
    /// So much, by that rate.
    Priced {
        /// The rate.
        rate: Arc<Rate>,
        /// The sum, pico-units of the rate's currency.
        cost: Pico,
    },
    /// Nobody can say.
    Unpriced(Unpriced),
}

/// Why an exchange has no price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unpriced {
    /// There is no price book.
    NoBook,
    /// The book has no entry for the model, or none in force then.
    Model,
    /// The entry names no price for a type of token that there was.
    TokenType,
    /// The sum is more than a charge can hold (9.2 million units).
    Overflow,
}

impl Unpriced {
    /// Every reason.
    pub const ALL: [Self; 4] = [Self::NoBook, Self::Model, Self::TokenType, Self::Overflow];

    /// The label value.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoBook => "no_book",
            Self::Model => "model",
            Self::TokenType => "token_type",
            Self::Overflow => "overflow",
        }
    }
}

impl Charge {
    /// The sum, if there is one.
    pub fn cost(&self) -> Option<Pico> {
        match self {
            Self::Priced { cost, .. } => Some(*cost),
            Self::Unpriced(_) => None,
        }
    }
}
