//! Prices of one place, and how they override each other. A missing price is taken from the more general
//! type if the missing one is certainly not dearer, or if a client chooses between the two: otherwise it could make its
//! exchanges unpriced, and evade a budget.
//!
//! | missing                       | charged as |
//! |-------------------------------|------------|
//! | `cached_input`, `cache_write` | `input`    |
//! | `reasoning`                   | `output`   |
//! | `input_image`, `input_video`  | `input`    |
//! | `cache_write_1h`              | `cache_write`: the client chooses the lifetime |
//! | `cached_input_audio`          | `input_audio` |
//! | `cached_input_image`          | `cached_input` |
//! | `input_audio`                 | unpriced: audio costs a multiple of text |
//! | `output_audio`, `output_image`, `output_video` | unpriced, for the same reason |
//! | `per_request`                 | nothing    |

use meter::TokenType;

use crate::amount::{NumberError, Parts, parts};
use crate::charge::Pico;

/// Number of token types.
pub(crate) const TYPES: usize = TokenType::ALL.len();

/// The keys of prices in a file, in the order of the documentation.
pub(crate) const KEYS: [(&str, TokenType); TYPES] = [
    ("input", TokenType::Input),
    ("cached_input", TokenType::InputCached),
    ("cache_write", TokenType::InputCacheWrite),
    ("cache_write_1h", TokenType::InputCacheWrite1h),
    ("input_audio", TokenType::InputAudio),
    ("input_image", TokenType::InputImage),
    ("input_video", TokenType::InputVideo),
    ("cached_input_audio", TokenType::InputCachedAudio),
    ("cached_input_image", TokenType::InputCachedImage),
    ("output", TokenType::Output),
    ("reasoning", TokenType::OutputReasoning),
    ("output_audio", TokenType::OutputAudio),
    ("output_image", TokenType::OutputImage),
    ("output_video", TokenType::OutputVideo),
];

/// The key of the price of a request, whatever its tokens.
pub(crate) const PER_REQUEST: &str = "per_request";

/// The keys of all prices: of each token type, and of a request.
pub(crate) const PRICE_KEYS: [&str; TYPES + 1] = {
    let mut keys = [PER_REQUEST; TYPES + 1];
    let mut at = 0;
    while at < TYPES {
        keys[at] = KEYS[at].0;
        at += 1;
    }
    keys
};

/// Returns the key of a type's price.
pub fn key_of(kind: TokenType) -> &'static str {
    KEYS.iter().find(|(_, keyed)| *keyed == kind).map_or(kind.name(), |(key, _)| key)
}

/// The prices given in one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prices {
    pub(crate) per_token: [Option<Pico>; TYPES],
    pub(crate) per_request: Option<Pico>,
}

impl Prices {
    /// Returns these prices, overridden by those that `over` has.
    pub(crate) fn overlaid_by(&self, over: &Self) -> Self {
        let mut merged = *self;
        for (mine, theirs) in merged.per_token.iter_mut().zip(over.per_token) {
            *mine = theirs.or(*mine);
        }
        merged.per_request = over.per_request.or(self.per_request);
        merged
    }

    /// Returns the keys of prices that these have and `other` has not.
    pub(crate) fn missing_from(&self, other: &Self) -> Vec<&'static str> {
        let types = TokenType::ALL.into_iter().enumerate();
        let types = types.filter(|(at, _)| self.per_token[*at].is_some() && other.per_token[*at].is_none());
        let request = self.per_request.is_some() && other.per_request.is_none();
        types.map(|(_, kind)| key_of(kind)).chain(request.then_some(PER_REQUEST)).collect()
    }

    /// Returns the prices with the derived ones filled in, and flags for those.
    pub(crate) fn with_derived(&self) -> ([Option<Pico>; TYPES], [bool; TYPES]) {
        let mut derived = [false; TYPES];
        let mut with_derived = self.per_token;
        for (at, kind) in TokenType::ALL.into_iter().enumerate() {
            let Some(like) = fallback(kind) else { continue };
            if self.per_token[at].is_none() {
                // The more general type is before it.
                with_derived[at] = with_derived[like as usize];
                derived[at] = with_derived[at].is_some();
            }
        }
        (with_derived, derived)
    }
}

/// Returns the more general type, whose price applies if a type has none of its own.
pub(crate) fn fallback(kind: TokenType) -> Option<TokenType> {
    match kind {
        TokenType::InputCached
        | TokenType::InputCacheWrite
        | TokenType::InputImage
        | TokenType::InputVideo => Some(TokenType::Input),
        TokenType::InputCachedAudio => Some(TokenType::InputAudio),
        TokenType::InputCachedImage => Some(TokenType::InputCached),
        TokenType::InputCacheWrite1h => Some(TokenType::InputCacheWrite),
        TokenType::OutputReasoning => Some(TokenType::Output),
        _ => None,
    }
}

/// Types that were added after the first books and that derive from another type's price.
pub(crate) const LATER_DERIVED: [TokenType; 5] = [
    TokenType::InputCacheWrite1h,
    TokenType::InputImage,
    TokenType::InputVideo,
    TokenType::InputCachedAudio,
    TokenType::InputCachedImage,
];

/// Returns the prices that determine the identity of a book or a rate: all of them, except those of [`LATER_DERIVED`]
/// that equal their derived price. So a book keeps its hash and a rate its id.
pub(crate) fn identifying(per_token: &[Option<Pico>; TYPES]) -> impl Iterator<Item = (TokenType, Pico)> {
    let derived = |kind: TokenType, price: Pico| {
        let like = fallback(kind).and_then(|like| per_token[like as usize]);
        LATER_DERIVED.contains(&kind) && like == Some(price)
    };
    let named = TokenType::ALL.into_iter().filter_map(|kind| Some((kind, per_token[kind as usize]?)));
    named.filter(move |&(kind, price)| !derived(kind, price))
}

/// A decimal factor of prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Factor {
    billionths: i128,
}

/// Decimal places of a factor.
const FACTOR_PLACES: i32 = 9;

/// The factor 1, in billionths.
const ONE: i128 = 10_i128.pow(FACTOR_PLACES.unsigned_abs());

/// The largest factor.
const FACTOR_MAX: i128 = 100;

impl Factor {
    /// Reads a number from 0 to 100 of at most nine decimals.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let Parts { whole, exact } = parts(text, FACTOR_PLACES).ok()?;
        (exact && (0..=FACTOR_MAX * ONE).contains(&whole)).then_some(Self { billionths: whole })
    }

    /// Reads a percentage like `12.5%` that is taken off a price, above 0 and up to 100 %.
    pub(crate) fn of_discount(text: &str) -> Option<Self> {
        Self::percent(text, ONE).map(|billionths| Self { billionths: ONE - billionths })
    }

    /// Reads a percentage that is added to a price; the factor is at most that of a tier.
    pub(crate) fn of_markup(text: &str) -> Option<Self> {
        Self::percent(text, (FACTOR_MAX - 1) * ONE).map(|billionths| Self { billionths: ONE + billionths })
    }

    fn percent(text: &str, most: i128) -> Option<i128> {
        let Parts { whole, exact } = parts(text.strip_suffix('%')?.trim_end(), FACTOR_PLACES - 2).ok()?;
        (exact && (1..=most).contains(&whole)).then_some(whole)
    }

    /// Returns the factor in billionths.
    pub(crate) fn billionths(self) -> i128 {
        self.billionths
    }

    /// Returns the product, and whether it is exact.
    pub(crate) fn times(self, price: Pico) -> Result<(Pico, bool), NumberError> {
        let product = i128::from(price) * self.billionths;
        let Parts { whole, exact } = parts(&product.to_string(), -FACTOR_PLACES)?;
        Ok((Pico::try_from(whole).map_err(|_| NumberError::TooLarge)?, exact))
    }
}
