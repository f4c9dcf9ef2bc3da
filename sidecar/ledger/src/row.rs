//! The row: one exchange in the ledger, with its names, its counts and its charge.
//!
//! A row is built from the record of a finished exchange and never changes afterwards; a [correction] stands beside it.
//! Times are microseconds since 1970 in UTC, which SQLite's integers and PostgreSQL's timestamps hold exactly.
//!
//! [correction]: crate::source::Correction

use std::sync::Arc;

use meter::{DEFAULT_TENANT, Disagreement, ExchangeId, Record, Role, Tokens};
use price::{Book, Charge, Facts, Unpriced};

use crate::{Calendar, month};

/// One exchange. The columns of the table `exchange` have the names of these fields; `crate::columns` lists them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The exchange's id. It is the row's key in every store, so a row that is entered twice is there once.
    pub id: ExchangeId,
    /// The arrival of the request's head, microseconds since 1970.
    pub started_us: i64,
    /// The end of the exchange, microseconds since 1970. It decides the day and the month that the exchange is billed
    /// in, by the ledger's calendar.
    pub ended_us: i64,
    /// The tenant that the exchange is charged to.
    pub tenant: Arc<str>,
    /// The API key or account that made the request, as a keyed hash or as a configured name.
    pub principal: Option<Arc<str>>,
    /// The tenant's end user, as a keyed hash.
    pub consumer: Option<Arc<str>>,
    /// The upstream's name in the configuration.
    pub upstream: Arc<str>,
    /// The kind of server, as OpenTelemetry's `gen_ai.provider.name`.
    pub provider: Arc<str>,
    /// The dialect: the JSON shape of the endpoint.
    pub dialect: Arc<str>,
    /// The model in the request.
    pub model: Arc<str>,
    /// The model in the response.
    pub response_model: Option<Arc<str>>,
    /// The id in the response.
    pub response_id: Option<Arc<str>>,
    /// The service tier: that of the response if the server has tiers, else that of the request if the exchange was
    /// charged by that tier's prices.
    pub service_tier: Option<Arc<str>>,
    /// The way in which the exchange ended, a name of [`meter::Ending`].
    pub ending: Arc<str>,
    /// The response's HTTP status; 0 without a response.
    pub status: u16,
    /// True if the response was a stream of frames.
    pub streamed: bool,
    /// The tokens by type, and the provenance of the counts.
    pub tokens: Tokens,
    /// The time from the complete request to the end, microseconds.
    pub duration_us: i64,
    /// The time from the complete request to the first token, microseconds.
    pub first_token_us: Option<i64>,
    /// The cost and its rate, or the reason why there is no price.
    pub charge: Charge,
    /// The trace id, if the request carried one.
    pub trace: Option<[u8; 16]>,
    /// The leg of the request, where a prefill and a decode server share it. A prefill leg adds only its GPU use to a
    /// daily total: its tokens are those of the decode leg.
    pub role: Role,
    /// The client's id of the request, which its legs and its repetitions share.
    pub request_id: Option<Arc<str>>,
    /// The number of times that the request was sent to the upstream.
    pub upstream_attempts: u8,
    /// The cached tokens that the server reported beyond those of the prompt. They are not in `tokens`.
    pub cached_excess: u64,
    /// The way in which the server's counts contradict one another, if they do.
    pub usage_disagreement: Option<Disagreement>,
    /// The day by the ledger's calendar, in days since 1970-01-01; `None`: the UTC day of `ended_us`.
    pub day: Option<i32>,
}

/// The row of an exchange without any data.
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
            usage_disagreement: None,
            day: None,
        }
    }
}

impl Row {
    /// Returns the row of a finished exchange, charged by a price book if there is one.
    pub fn charged(record: &Record, book: Option<&Book>) -> Self {
        let mut row = Self::uncharged(record);
        row.charge = row.facts(record.identity.is_tier_its_own()).charge(book);
        row.keep_charged_tier(record.identity.is_tier_its_own());
        row
    }

    /// Returns the row of a finished exchange with a charge that was made before.
    pub fn of(record: &Record, charge: Charge) -> Self {
        let mut row = Self { charge, ..Self::uncharged(record) };
        row.keep_charged_tier(record.identity.is_tier_its_own());
        row
    }

    /// Returns the charge of the exchange by another book, in the tier by which it was charged.
    pub fn charge_again(&self, book: &Book) -> Charge {
        book.charge(&self.facts(true).usage())
    }

    /// Returns the facts on which the charge depends. `is_tier_reported`: the response, and not only the request, names
    /// the tier.
    ///
    /// Charging and repricing share this function: if they read an exchange differently, repricing would add false
    /// corrections.
    fn facts(&self, is_tier_reported: bool) -> Facts<'_> {
        Facts {
            tenant: &self.tenant,
            model: &self.model,
            response_model: self.response_model.as_deref(),
            provider: &self.provider,
            upstream: &self.upstream,
            service_tier: self.service_tier.as_deref(),
            is_tier_reported,
            ended_us: self.ended_us,
            tokens: &self.tokens,
            status: self.status,
            upstream_attempts: self.upstream_attempts,
            role: self.role,
        }
    }

    /// Removes a tier that was only requested, unless the exchange was charged by it.
    fn keep_charged_tier(&mut self, is_tier_reported: bool) {
        let is_confirmed = self.facts(is_tier_reported).is_tier_confirmed();
        self.service_tier = self.service_tier.take().filter(|tier| is_confirmed || self.charge.is_of(tier));
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
            usage_disagreement: record.disagreement,
            day: None,
        }
    }

    /// Returns the day of the exchange, in days since 1970-01-01.
    pub fn day(&self) -> i32 {
        self.day.unwrap_or_else(|| month::day(self.ended_us))
    }

    /// Sets the day by the calendar of the ledger into which the row is entered.
    pub(crate) fn dated(self, calendar: &Calendar) -> Self {
        Self { day: other_day(calendar.day(self.ended_us), self.ended_us), ..self }
    }

    /// Returns true for a failed exchange without a tenant, tokens or cost: a client without a key can make thousands of
    /// them a second.
    pub(crate) fn is_anonymous_failure(&self) -> bool {
        let is_anonymous =
            *self.tenant == *DEFAULT_TENANT && self.principal.is_none() && self.consumer.is_none();
        let has_failed = !(200..400).contains(&self.status);
        let is_free =
            self.tokens.by_type.iter().all(|count| *count == 0) && self.charge.cost().unwrap_or(0) == 0;
        is_anonymous && has_failed && is_free
    }

    /// Returns the id of the rate; `None` without a price.
    pub fn rate(&self) -> Option<[u8; 16]> {
        match &self.charge {
            Charge::Priced { rate, .. } => Some(rate.id),
            Charge::Unpriced(_) => None,
        }
    }
}

/// Returns a day as a row stores it: `None` if it is the UTC day of the instant.
pub(crate) fn other_day(day: i32, ended_us: i64) -> Option<i32> {
    (day != month::day(ended_us)).then_some(day)
}

/// The longest text of a row, bytes. The relay's own bounds are lower; this one holds for any other caller.
const TEXT_MAX_BYTES: usize = 1_024;

/// Returns the row with each text cut to the longest length.
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

/// Cuts a text to the longest length, at the end of a character.
pub(crate) fn cut(text: &mut Arc<str>) {
    if text.len() > TEXT_MAX_BYTES {
        *text = text[..text.floor_char_boundary(TEXT_MAX_BYTES)].into();
    }
}
