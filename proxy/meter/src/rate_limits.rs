//! The rate limits that a hosted provider reports in the head of a response.

scan::listed_enum! {
    /// A quantity that a provider limits.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Quota {
        /// Requests.
        Requests = "requests",
        /// Tokens of prompts and answers.
        Tokens = "tokens",
        /// Tokens of prompts.
        InputTokens = "input_tokens",
        /// Tokens of answers.
        OutputTokens = "output_tokens",
    }
    /// The label value.
    pub fn name(self);
}

/// One quota, as far as a head reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaReading {
    /// The maximum in one period of the provider.
    pub limit: Option<u64>,
    /// The remainder in the current period.
    pub remaining: Option<u64>,
    /// The end of the current period, in milliseconds since 1970.
    pub reset_unix_ms: Option<u64>,
}

/// The rate limits in one head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateLimits {
    /// The time at which the head arrived, in milliseconds since 1970.
    pub at_unix_ms: u64,
    /// In the order of [`Quota::ALL`].
    pub quotas: [QuotaReading; Quota::ALL.len()],
    /// The time after which the client may try again, in milliseconds.
    pub retry_after_ms: Option<u64>,
}
