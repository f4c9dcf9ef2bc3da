//! The facts of an exchange from which the inputs of its charge follow, of a record or of a ledger's row.

use meter::{Record, Role, TokenType, Tokens};

use crate::book::Book;
use crate::charge::{Charge, Unpriced};
use crate::tier::has_tiers;
use crate::usage::Usage;

/// The facts of an exchange on which its charge depends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts<'a> {
    /// The tenant that the exchange is charged to.
    pub tenant: &'a str,
    /// The requested model.
    pub model: &'a str,
    /// The model that the response names.
    pub response_model: Option<&'a str>,
    /// `gen_ai.provider.name`.
    pub provider: &'a str,
    /// The upstream's name.
    pub upstream: &'a str,
    /// The service tier of the response, else of the request.
    pub service_tier: Option<&'a str>,
    /// True if the response names that tier, and not only the request.
    pub is_tier_reported: bool,
    /// The end of the exchange, microseconds since 1970.
    pub ended_us: i64,
    /// The counts.
    pub tokens: &'a Tokens,
    /// The HTTP status of the answer; 0 if there was none.
    pub status: u16,
    /// Times that the complete request was sent to the upstream.
    pub upstream_attempts: u8,
    /// The role of the exchange in its request.
    pub role: Role,
}

impl<'a> Facts<'a> {
    /// Returns the facts of a finished exchange.
    pub fn of(record: &'a Record) -> Self {
        let identity = &record.identity;
        Self {
            tenant: &identity.tenant,
            model: &identity.model,
            response_model: identity.response_model.as_deref(),
            provider: &identity.provider,
            upstream: &identity.upstream,
            service_tier: identity.service_tier.as_deref(),
            is_tier_reported: identity.is_tier_reported,
            ended_us: i64::try_from(record.ended_unix_ns() / 1000).unwrap_or(i64::MAX),
            tokens: &record.tokens,
            status: record.status,
            upstream_attempts: record.upstream_attempts,
            role: identity.role,
        }
    }

    /// Returns true if the response confirms the tier. A server without tiers only repeats that of the request.
    pub fn is_tier_confirmed(&self) -> bool {
        self.is_tier_reported && has_tiers(self.provider)
    }

    /// Returns the inputs of the charge. An error costs nothing, also one whose tokens the engine counted.
    pub fn usage(&self) -> Usage<'a> {
        const NONE: [u64; TokenType::ALL.len()] = [0; TokenType::ALL.len()];
        let is_error = self.status >= 400;
        let is_confirmed = self.is_tier_confirmed();
        Usage {
            tenant: self.tenant,
            model: self.model,
            response_model: self.response_model,
            provider: self.provider,
            upstream: self.upstream,
            tier: self.service_tier.filter(|_| is_confirmed),
            requested_tier: self.service_tier.filter(|_| !is_confirmed),
            at_us: self.ended_us,
            tokens: if is_error { &NONE } else { &self.tokens.by_type },
            success: (200..300).contains(&self.status),
            processed: meter::is_processed(self.status, self.upstream_attempts),
            counted: self.tokens.is_counted(),
        }
    }

    /// Returns the charge by a price book. A prefill leg is charged as part of its request.
    pub fn charge(&self, book: Option<&Book>) -> Charge {
        match book {
            _ if !self.role.is_counted() => Charge::Unpriced(Unpriced::Leg),
            None => Charge::Unpriced(Unpriced::NoBook),
            Some(book) => book.charge(&self.usage()),
        }
    }
}
