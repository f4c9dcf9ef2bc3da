//! One exchange as the ledger keeps it. Times are microseconds since 1970 in UTC, which both SQLite's
//! integers and PostgreSQL's timestamps hold exactly.

use std::sync::Arc;

use meter::{ExchangeId, Record, Role, Tokens};
use price::{Book, Charge, Unpriced, Usage, has_tiers};

/// One exchange. Columns of the table `exchange` have the same names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The exchange's id; the row's key everywhere.
    pub id: ExchangeId,
    /// The time at which the request's head came, microseconds since 1970.
    pub started_us: i64,
    /// The time at which it ended, microseconds since 1970: it belongs to that day and month.
    pub ended_us: i64,
    /// The tenant.
    pub tenant: Arc<str>,
    /// The key or account it was made with, as a keyed hash or a name of ours.
    pub principal: Option<Arc<str>>,
    /// The end user it was made for, as a keyed hash.
    pub consumer: Option<Arc<str>>,
    /// The upstream's name.
    pub upstream: Arc<str>,
    /// `gen_ai.provider.name`.
    pub provider: Arc<str>,
    /// The JSON shape spoken.
    pub dialect: Arc<str>,
    /// The model asked for.
    pub model: Arc<str>,
    /// The model that answered, as it says.
    pub response_model: Option<Arc<str>>,
    /// The response's id, as it says.
    pub response_id: Option<Arc<str>>,
    /// The service tier it was served in, as the response of a server that has tiers says; else the one
    /// that the request asked for, if it was charged by that tier's prices.
    pub service_tier: Option<Arc<str>>,
    /// The ending.
    pub ending: Arc<str>,
    /// HTTP status; 0 if there was none.
    pub status: u16,
    /// True if the response came in frames.
    pub streamed: bool,
    /// The counts and how they are known.
    pub tokens: Tokens,
    /// From the complete request to the end, microseconds.
    pub duration_us: i64,
    /// To the first token, microseconds.
    pub first_token_us: Option<i64>,
    /// The charge.
    pub charge: Charge,
    /// Its trace, if it is part of one.
    pub trace: Option<[u8; 16]>,
    /// The part of a request that it is. A prefill leg adds nothing but its GPU use to a line.
    pub role: Role,
    /// The id that the client gave the request; the legs and the repetitions of one request share it.
    pub request_id: Option<Arc<str>>,
    /// Times that it was sent to the upstream.
    pub upstream_attempts: u8,
    /// Cached tokens that the server reported beyond the prompt; no part of `tokens`.
    pub cached_excess: u64,
}

/// An exchange of which nothing is known.
impl Default for Row {
    fn default() -> Self {
        Self {
            id: ExchangeId::default(),
            started_us: 0,
            ended_us: 0,
            tenant: Arc::default(),
            principal: None,
            consumer: None,
            upstream: Arc::default(),
            provider: Arc::default(),
            dialect: Arc::default(),
            model: Arc::default(),
            response_model: None,
            response_id: None,
            service_tier: None,
            ending: Arc::default(),
            status: 0,
            streamed: false,
            tokens: Tokens::NONE,
            duration_us: 0,
            first_token_us: None,
            charge: Charge::Unpriced(Unpriced::NoBook),
            trace: None,
            role: Role::Whole,
            request_id: None,
            upstream_attempts: 1,
            cached_excess: 0,
        }
    }
}

impl Row {
    /// Returns the row of a finished exchange, charged by a price book if there is one.
    pub fn charged(record: &Record, book: Option<&Book>) -> Self {
        let mut row = Self::uncharged(record);
        row.charge = match book {
            _ if !row.role.is_counted() => Charge::Unpriced(Unpriced::Leg),
            None => Charge::Unpriced(Unpriced::NoBook),
            Some(book) => book.charge(&row.inputs(record.identity.is_tier_reported)),
        };
        row.keep_charged_tier(record.identity.is_tier_reported);
        row
    }

    /// Returns the row of a finished exchange with this charge.
    pub fn of(record: &Record, charge: Charge) -> Self {
        let mut row = Self { charge, ..Self::uncharged(record) };
        row.keep_charged_tier(record.identity.is_tier_reported);
        row
    }

    /// Returns the charge of the exchange by another book. The row's tier is the one that it was charged by.
    pub fn charge_again(&self, book: &Book) -> Charge {
        book.charge(&self.inputs(true))
    }

    /// Returns the inputs of a charge; `is_tier_reported` if the response, and not only the request, names the tier. The only
    /// builder of them: if charging and repricing read an exchange differently, repricing would add false corrections.
    fn inputs(&self, is_tier_reported: bool) -> Usage<'_> {
        let tier = self.service_tier.as_deref();
        let is_said = self.is_tier_said(is_tier_reported);
        Usage {
            model: &self.model,
            response_model: self.response_model.as_deref(),
            provider: &self.provider,
            upstream: &self.upstream,
            tier: tier.filter(|_| is_said),
            requested_tier: tier.filter(|_| !is_said),
            at_us: self.ended_us,
            tokens: &self.tokens.by_type,
            success: (200..300).contains(&self.status),
            processed: meter::is_processed(self.status, self.upstream_attempts),
            counted: self.tokens.is_counted(),
        }
    }

    /// Returns true if the response confirms the tier. A server without tiers only repeats that of the request.
    fn is_tier_said(&self, is_tier_reported: bool) -> bool {
        is_tier_reported && has_tiers(&self.provider)
    }

    /// Removes a tier that was only requested, unless the exchange was charged by it.
    fn keep_charged_tier(&mut self, is_tier_reported: bool) {
        let is_said = self.is_tier_said(is_tier_reported);
        self.service_tier = self.service_tier.take().filter(|tier| is_said || self.charge.is_of(tier));
    }

    /// Returns the row of a finished exchange without a charge, with the tier of its response or its request.
    fn uncharged(record: &Record) -> Self {
        let identity = &record.identity;
        let micros = |ns: u64| i64::try_from(ns / 1000).unwrap_or(i64::MAX);
        Self {
            id: identity.exchange,
            started_us: micros(identity.started_unix_ns),
            ended_us: micros(record.ended_unix_ns()),
            tenant: Arc::clone(&identity.tenant),
            principal: identity.principal.clone(),
            consumer: identity.consumer.clone(),
            upstream: Arc::clone(&identity.upstream),
            provider: Arc::clone(&identity.provider),
            dialect: identity.dialect.name().into(),
            model: Arc::clone(&identity.model),
            response_model: identity.response_model.clone(),
            response_id: identity.response_id.clone(),
            service_tier: identity.service_tier.clone(),
            ending: record.ending.name().into(),
            status: record.status,
            streamed: record.streamed,
            tokens: record.tokens,
            duration_us: micros(record.timing.duration_ns),
            first_token_us: record.timing.first_token_ns.map(micros),
            charge: Charge::Unpriced(Unpriced::NoBook),
            trace: identity.trace.as_ref().map(|trace| trace.trace_id),
            role: identity.role,
            request_id: identity.request_id.clone(),
            upstream_attempts: record.upstream_attempts,
            cached_excess: record.cached_excess,
        }
    }

    /// The id of the rate it was charged by, if it was.
    pub fn rate(&self) -> Option<[u8; 16]> {
        match &self.charge {
            Charge::Priced { rate, .. } => Some(rate.id),
            Charge::Unpriced(_) => None,
        }
    }
}

/// The most bytes of a text of a row. The relay's own bounds are lower; this one is for any other caller.
const TEXT: usize = 1_024;

/// The row, with texts of a bounded length.
pub(crate) fn bounded(mut row: Row) -> Row {
    for text in [
        &mut row.tenant,
        &mut row.upstream,
        &mut row.provider,
        &mut row.dialect,
        &mut row.model,
        &mut row.ending,
    ] {
        cut(text);
    }
    for text in [
        &mut row.principal,
        &mut row.consumer,
        &mut row.response_model,
        &mut row.response_id,
        &mut row.service_tier,
        &mut row.request_id,
    ] {
        text.iter_mut().for_each(cut);
    }
    row
}

/// Cuts a text to what a row holds.
pub(crate) fn cut(text: &mut Arc<str>) {
    if text.len() > TEXT {
        *text = text[..text.floor_char_boundary(TEXT)].into();
    }
}
