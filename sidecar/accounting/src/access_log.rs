//! The access log: a line for each charged exchange and for each rejected request. A line has the tenant, ids, the
//! route (never the raw path), counts, times and money, never content (law 11): the principal is a configured name or
//! a keyed hash, as in the ledger.

use meter::{Provenance, Record};
use price::Charge;
use relay::Rejection;

use crate::export_link::otlp_charge;

/// The target of access lines, one per exchange.
pub const ACCESS: &str = "access";

/// Logs an exchange. The members for money are those of OTLP's log records.
pub(crate) fn exchange(record: &Record, charge: &Charge) {
    let milliseconds = |ns: u64| thousandths(ns as f64 / 1e6);
    let known = |provenance: Provenance, tokens: u64| (provenance != Provenance::None).then_some(tokens);
    let trace = trace_id(record);
    let (identity, tokens, timing) = (&record.identity, &record.tokens, &record.timing);
    let (cost, currency, price_version, unpriced) = match otlp_charge(charge) {
        Some(otlp::Charge::Priced { pico, currency, version }) => {
            (Some(text::money(pico.into()).to_string()), Some(currency), Some(version), None)
        }
        Some(otlp::Charge::Unpriced(why)) => (None, None, None, Some(why)),
        None => (None, None, None, None),
    };
    let server = timing.server();
    tracing::info!(
        target: ACCESS,
        id = %identity.exchange,
        trace_id = trace.as_deref(),
        response_id = identity.response_id.as_deref(),
        path = identity.dialect.route(),
        tenant = &*identity.tenant,
        principal = identity.principal.as_deref(),
        upstream = &*identity.upstream,
        model = &*identity.model,
        dialect = identity.dialect.name(),
        ending = record.ending.name(),
        status = record.status,
        streamed = record.streamed,
        role = identity.role.is_leg().then(|| identity.role.name()),
        request_id = identity.request_id.as_deref(),
        input_tokens = known(tokens.input_provenance, tokens.input()),
        input_provenance = tokens.input_provenance.name(),
        output_tokens = known(tokens.output_provenance, tokens.output()),
        output_provenance = tokens.output_provenance.name(),
        cost = cost.as_deref(),
        currency = currency.as_deref(),
        price_version = price_version.as_deref(),
        unpriced,
        duration_ms = milliseconds(timing.duration_ns),
        first_token_ms = timing.first_token_ns.map(milliseconds),
        queue_ms = server.queue_ns.map(milliseconds),
        prefill_ms = server.prefill_ns.map(milliseconds),
        decode_ms = server.decode_ns.map(milliseconds),
        draft_tokens = server.draft_tokens,
        accepted_draft_tokens = server.accepted_draft_tokens,
        output_rate = timing.output_rate.map(thousandths),
        concurrency = thousandths(timing.concurrency),
        "exchange"
    );
}

/// Returns the trace's id in hexadecimal, if the exchange has a trace.
fn trace_id(record: &Record) -> Option<String> {
    let trace = record.identity.trace.as_ref()?;
    Some(format!("{:032x}", u128::from_be_bytes(trace.trace_id)))
}

/// Rounds to three digits after the point.
fn thousandths(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

/// Logs a request that the proxy rejected before anything went upstream.
pub(crate) fn rejected(rejection: &Rejection) {
    let known = rejection.known.as_ref();
    tracing::info!(
        target: ACCESS,
        tenant = known.map(|known| &*known.tenant),
        principal = known.and_then(|known| known.principal.as_deref()),
        upstream = &*rejection.upstream,
        model = known.and_then(|known| known.model.as_deref()),
        dialect = known.map(|known| known.dialect.name()),
        status = rejection.status,
        reason = rejection.reason.name(),
        "refused"
    );
}
