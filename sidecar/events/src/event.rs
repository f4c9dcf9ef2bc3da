//! The event of an exchange, as a CloudEvent 1.0 in JSON.

use ledger::{Row, utc};
use meter::TokenType;
use serde_json::{Map, Value, json};

/// The type of all events.
pub const EVENT_TYPE: &str = "tokenmeter.exchange";

/// The source of all events. The id alone identifies an exchange, whichever process sends it.
pub const EVENT_SOURCE: &str = "tokenmeter";

/// Returns the event of an exchange; `None` for a prefill leg, whose tokens are those of its decode leg.
pub fn event(row: &Row) -> Option<Value> {
    if !row.role.is_counted() {
        return None;
    }
    let mut event = json!({
        "specversion": "1.0",
        "id": row.id.to_string(),
        "source": EVENT_SOURCE,
        "type": EVENT_TYPE,
        "time": utc(row.ended_us),
        "datacontenttype": "application/json",
        "data": data(row),
    });
    // The attribute may be absent, but must not be empty.
    if !row.tenant.is_empty() {
        event["subject"] = (&*row.tenant).into();
    }
    Some(event)
}

fn data(row: &Row) -> Value {
    let by_type: Map<String, Value> = TokenType::ALL
        .into_iter()
        .zip(row.tokens.by_type)
        .map(|(kind, count)| (kind.name().to_owned(), count.into()))
        .collect();
    let rate = row.charge.rate();
    let entry =
        rate.map(|rate| json!({ "version": &*rate.version, "entry": &*rate.entry, "tier": &*rate.tier }));
    let mut data = json!({
        "model": &*row.model,
        "response_model": row.response_model.as_deref(),
        "upstream": &*row.upstream,
        "provider": &*row.provider,
        "dialect": &*row.dialect,
        "principal": row.principal.as_deref(),
        "consumer": row.consumer.as_deref(),
        "service_tier": row.service_tier.as_deref(),
        "request_id": row.request_id.as_deref(),
        "response_id": row.response_id.as_deref(),
        "ending": &*row.ending,
        "status": row.status,
        "streamed": row.streamed,
        "started_at": utc(row.started_us),
        "duration_us": row.duration_us,
        "first_token_us": row.first_token_us,
        "input_tokens": row.tokens.input(),
        "output_tokens": row.tokens.output(),
        "tokens": by_type,
        "input_provenance": row.tokens.input_provenance.name(),
        "output_provenance": row.tokens.output_provenance.name(),
        "cost": row.charge.decimal(),
        "currency": rate.map(|rate| rate.currency.code()),
        "rate": entry,
        "unpriced": row.charge.unpriced().map(|why| why.name()),
    });
    if let Some(data) = data.as_object_mut() {
        data.retain(|_, value| !value.is_null());
    }
    data
}
