//! The facts of an exchange from which the inputs of its charge follow, of a record or of a ledger's row.

use std::sync::Arc;

use meter::{Identity, Record, Role, TokenType, Tokens};

use crate::book::Book;
use crate::charge::{Charge, Unpriced};
use crate::tier::is_hosted;
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
            is_tier_reported: identity.is_tier_its_own(),
            ended_us: i64::try_from(record.ended_unix_ns() / 1000).unwrap_or(i64::MAX),
            tokens: &record.tokens,
            status: record.status,
            upstream_attempts: record.upstream_attempts,
            role: identity.role,
        }
    }

    /// Returns the model by which the exchange costs most: the requested one, or one of `others`, which the request names,
    /// too. The server may have used any of them, and a known cost is more than an unknown one.
    pub fn dearest_model<'m>(&self, others: &'m [Arc<str>], book: &Book) -> Option<&'m Arc<str>> {
        let cost = |model| Facts { model, ..*self }.charge(Some(book)).cost();
        let dearer =
            others.iter().map(|model| (cost(model), model)).filter(|(other, _)| *other > cost(self.model));
        dearer.max_by_key(|(cost, _)| *cost).map(|(_, model)| model)
    }

    /// Returns true if the response confirms the tier. A server that no vendor hosts only repeats that of the request.
    pub fn is_tier_confirmed(&self) -> bool {
        self.is_tier_reported && is_hosted(self.provider)
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

/// Makes the dearest of the models that a request names the requested one, so that all that is made of the record names
/// the model that is charged. An answer of OpenAI's interface that has one of these names may only repeat it, as gateways
/// do: then it does not say which model answered. Neither does that of an unknown server if its name is the cheaper one.
pub fn name_dearest(record: &mut Arc<Record>, book: Option<&Book>) {
    let identity = &record.identity;
    let Some(book) = book.filter(|_| may_be_dearer(identity)) else { return };
    let is_name =
        |answered: &Arc<str>| identity.model == *answered || identity.other_models.contains(answered);
    let mut facts = Facts::of(record);
    let is_cheaper = || {
        let cost = |model, response_model| Facts { model, response_model, ..facts }.charge(Some(book)).cost();
        let names = std::iter::once(&identity.model).chain(&identity.other_models);
        names.map(|name| cost(name, None)).max() > Some(cost(facts.model, facts.response_model))
    };
    let repeats = book.may_repeat_names(&identity.provider)
        && (!identity.other_models.is_empty() && identity.response_model.as_ref().is_some_and(is_name)
            || !identity.is_provider_known && is_cheaper());
    facts.response_model = facts.response_model.filter(|_| !repeats);
    let dearest = facts.dearest_model(&identity.other_models, book).cloned();
    if dearest.is_some() || repeats {
        let identity = &mut Arc::make_mut(record).identity;
        identity.response_model = identity.response_model.take().filter(|_| !repeats);
        identity.model = dearest.unwrap_or_else(|| Arc::clone(&identity.model));
    }
}

/// Returns false if only one model can be charged.
pub fn may_be_dearer(identity: &Identity) -> bool {
    !identity.other_models.is_empty() || !identity.is_provider_known && identity.response_model.is_some()
}
