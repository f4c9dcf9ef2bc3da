//! What is charged: the facts of one exchange that its price depends on.

use meter::TokenType;

/// The facts of one exchange that its price depends on.
#[derive(Clone, Copy, Debug)]
pub struct Usage<'a> {
    /// The model asked for.
    pub model: &'a str,
    /// The model that answered, if it says: it counts where the book has no entry for the one asked for, or one of
    /// this very name that makes the exchange dearer.
    pub response_model: Option<&'a str>,
    /// `gen_ai.provider.name`.
    pub provider: &'a str,
    /// The upstream's name.
    pub upstream: &'a str,
    /// The service tier, as the response says.
    pub tier: Option<&'a str>,
    /// The service tier that the request asks for: it counts where the response says none, and only
    /// where it costs more than the ordinary one.
    pub requested_tier: Option<&'a str>,
    /// When the exchange ended, microseconds since 1970 in UTC: the prices in force then count.
    pub at_us: i64,
    /// Tokens by type, in the order of [`TokenType::ALL`]; the types are disjoint.
    pub tokens: &'a [u64; TokenType::ALL.len()],
    /// The upstream answered with a status of 2xx: what a request costs is owed.
    pub success: bool,
    /// The upstream may have worked on it ([`meter::is_processed`]).
    pub processed: bool,
    /// The tokens of at least one direction are known: of an exchange without that, zeros are no count.
    pub counted: bool,
}

impl Usage<'_> {
    /// All prompt tokens, cached ones included: what context tiers go by.
    pub fn input_tokens(&self) -> u64 {
        let types = TokenType::ALL.into_iter().zip(self.tokens);
        types.filter(|(kind, _)| kind.is_input()).fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }
}
