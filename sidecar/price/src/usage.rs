//! The facts of one exchange on which its price depends.

use meter::TokenType;

/// The facts of one exchange on which its price depends.
#[derive(Clone, Copy, Debug)]
pub struct Usage<'a> {
    /// The tenant, which may have terms of its own.
    pub tenant: &'a str,
    /// The requested model.
    pub model: &'a str,
    /// The model that the response names. It is charged if the book has no entry for the requested one, if a hosted
    /// provider answered, or if an entry with exactly its name costs more.
    pub response_model: Option<&'a str>,
    /// `gen_ai.provider.name`.
    pub provider: &'a str,
    /// The upstream's name.
    pub upstream: &'a str,
    /// The service tier that the response names, with its speed and geography.
    pub tier: Option<&'a str>,
    /// The service tier that the request names. It is charged only if the response names none and it costs
    /// more than the standard one.
    pub requested_tier: Option<&'a str>,
    /// The end of the exchange, in microseconds since 1970; the prices in force then apply.
    pub at_us: i64,
    /// Tokens by type, in the order of [`TokenType::ALL`]; the types are disjoint.
    pub tokens: &'a [u64; TokenType::ALL.len()],
    /// The upstream answered with a status of 2xx: the price per request is charged.
    pub success: bool,
    /// The upstream may have processed the request ([`meter::is_processed`]).
    pub processed: bool,
    /// The tokens of at least one direction are known; otherwise zeros in `tokens` are not counts.
    pub counted: bool,
}

impl Usage<'_> {
    /// Returns whether the response names another model than the request. A dated name does not count as another.
    pub(crate) fn is_other_model(&self) -> bool {
        self.response_model.is_some_and(|model| !model.contains(self.model) && !self.model.contains(model))
    }

    /// Returns all prompt tokens, cached ones included; context tiers depend on them.
    pub fn input_tokens(&self) -> u64 {
        let types = TokenType::ALL.into_iter().zip(self.tokens);
        types.filter(|(kind, _)| kind.is_input()).fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }
}
