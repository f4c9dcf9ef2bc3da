//! Limits of one exchange.

/// Choices that are timed one by one; further ones are counted only. A larger n is rare and adds nothing to
/// the latency distribution.
pub const TIMED_CHOICES: usize = 8;

/// Choices with running counts of their own; counts of higher indices are not trusted.
pub const COUNTED_CHOICES: usize = 128;

/// The default limit of one token count of one exchange: a hundred times the longest context of any model.
pub const TOKENS_MAX: u64 = 10_000_000;
