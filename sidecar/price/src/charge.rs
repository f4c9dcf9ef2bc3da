//! The charge of one exchange and its rate.

use std::sync::Arc;

use blake3::Hasher;
use meter::TokenType;

use crate::currency::Currency;
use crate::entry::{UNPRICED_MARK, shared_words, words};
use crate::prices::{LATER_DERIVED, fallback, identifying, key_of};

/// Money per unit, in pico-units (10⁻¹²) of a currency.
pub type Pico = i64;

/// The unit prices by which an exchange was charged. Rates with equal prices are one rate in every version of the
/// price book: see [`Rate::id`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The first 16 bytes of a BLAKE3 hash over all else here but [`Self::version`] and [`Self::book`]: the same on
    /// every node and in every book with these prices.
    pub id: [u8; 16],
    /// The version of a price book with this rate, as its file names it. A ledger keeps the first by which it charged.
    pub version: Arc<str>,
    /// That book's content hash, in hexadecimal.
    pub book: Arc<str>,
    /// The entry of the book: the model's name or pattern.
    pub entry: Arc<str>,
    /// The service tier the prices are for: `standard`, `batch`, `flex`, `priority`, …; several words (`batch+us`) if the
    /// response has a speed or a geography; with `?` at the end if it stated a word that has no price.
    pub tier: Arc<str>,
    /// The prices hold for prompts of more tokens than this; 0 for prompts of any length.
    pub above_input_tokens: u64,
    /// The currency of the prices.
    pub currency: Currency,
    /// Price of one token by [`TokenType`], in the order of [`TokenType::ALL`]; `None` without a price.
    pub per_token: [Option<Pico>; TokenType::ALL.len()],
    /// Price of one request.
    pub per_request: Pico,
}

impl Rate {
    /// Computes [`Self::id`] from entry, tier, currency and prices. Prices are hashed by their types' names,
    /// and missing prices are left out, so that a token type added later changes no existing rate.
    pub fn identify(&self) -> [u8; 16] {
        let mut hasher = Hasher::new();
        for text in ["tokenmeter rate 2", &self.entry, &self.tier, self.currency.code()] {
            hash_text(&mut hasher, text);
        }
        hasher.update(&self.above_input_tokens.to_le_bytes());
        for (kind, price) in identifying(&self.per_token) {
            hash_text(&mut hasher, kind.name());
            hasher.update(&price.to_le_bytes());
        }
        hash_text(&mut hasher, "");
        hasher.update(&self.per_request.to_le_bytes());
        let mut id = [0; 16];
        hasher.finalize_xof().fill(&mut id);
        id
    }

    /// Returns the price of one token of a type, if it has one. A rate from before a type was counted has
    /// the price that the type derives from.
    pub fn price_of(&self, kind: TokenType) -> Option<Pico> {
        let like = fallback(kind).filter(|_| LATER_DERIVED.contains(&kind));
        self.per_token[kind as usize].or_else(|| self.per_token[like? as usize])
    }

    /// Returns its prices by the keys of a price file: those of tokens, pico-units each.
    pub fn prices(&self) -> impl Iterator<Item = (&'static str, Pico)> + '_ {
        TokenType::ALL.into_iter().filter_map(|kind| Some((key_of(kind), self.price_of(kind)?)))
    }

    /// Returns whether its prices are this tier's, by any of the tier's names.
    pub fn is_of(&self, tier: &str) -> bool {
        shared_words(&self.tier, tier) == Some(words(tier).count())
    }

    /// Returns whether the response stated a service tier, speed or geography that has no price.
    pub fn is_tier_unpriced(&self) -> bool {
        self.tier.ends_with(UNPRICED_MARK)
    }

    /// Returns whether any token of a prompt has a price above zero.
    pub fn prices_prompts(&self) -> bool {
        TokenType::ALL
            .into_iter()
            .any(|kind| kind.is_input() && self.price_of(kind).is_some_and(|price| price > 0))
    }

    /// Returns whether any token has a price above zero.
    pub(crate) fn prices_tokens(&self) -> bool {
        self.per_token.iter().flatten().any(|price| *price > 0)
    }

    /// Returns the cost of these tokens and, if `success`, of one request.
    pub fn cost(&self, tokens: &[u64; TokenType::ALL.len()], success: bool) -> Result<Pico, Unpriced> {
        let mut sum: i128 = if success { self.per_request.into() } else { 0 };
        for (kind, count) in TokenType::ALL.into_iter().zip(tokens) {
            if *count > 0 {
                let price = self.price_of(kind).ok_or(Unpriced::TokenType)?;
                let part = i128::from(*count) * i128::from(price);
                sum = sum.checked_add(part).ok_or(Unpriced::Overflow)?;
            }
        }
        Pico::try_from(sum).map_err(|_| Unpriced::Overflow)
    }
}

/// Hashes a text after its length, so that different lists of texts differ.
fn hash_text(hasher: &mut Hasher, text: &str) {
    hasher.update(&(text.len() as u64).to_le_bytes());
    hasher.update(text.as_bytes());
}

/// The cost of one exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Charge {
    /// The cost is known.
    Priced {
        /// The rate.
        rate: Arc<Rate>,
        /// The sum, pico-units of the rate's currency.
        cost: Pico,
    },
    /// The cost is not known.
    Unpriced(Unpriced),
}

meter::listed_enum! {
    /// The reason why an exchange has no price.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Unpriced {
        /// There is no price book.
        NoBook = "no_book",
        /// The book has no entry for the model, or none in force then.
        Model = "model",
        /// The entry has no price for a type of token that was counted.
        TokenType = "token_type",
        /// The sum is more than a charge can hold (9.2 million units).
        Overflow = "overflow",
        /// The server may have processed the request, tokens have a price, and their number is unknown.
        Uncounted = "uncounted",
        /// It is a prefill leg: the request is charged once, with its decode leg.
        Leg = "leg",
    }
    /// Returns the label value.
    pub fn name(self);
}

impl Charge {
    /// Returns whether the exchange is priced, by this tier's prices.
    pub fn is_of(&self, tier: &str) -> bool {
        matches!(self, Self::Priced { rate, .. } if rate.is_of(tier))
    }

    /// Returns the cost, if it is known.
    pub fn cost(&self) -> Option<Pico> {
        match self {
            Self::Priced { cost, .. } => Some(*cost),
            Self::Unpriced(_) => None,
        }
    }

    /// Returns the rate, if the exchange is priced.
    pub fn rate(&self) -> Option<&Arc<Rate>> {
        match self {
            Self::Priced { rate, .. } => Some(rate),
            Self::Unpriced(_) => None,
        }
    }

    /// Returns the reason why the exchange has no price.
    pub fn unpriced(&self) -> Option<Unpriced> {
        match self {
            Self::Priced { .. } => None,
            Self::Unpriced(why) => Some(*why),
        }
    }

    /// Returns the cost as an exact decimal with at least two digits after the point, if it is known.
    pub fn decimal(&self) -> Option<String> {
        self.cost().map(|pico| text::money(pico.into()).to_string())
    }
}
