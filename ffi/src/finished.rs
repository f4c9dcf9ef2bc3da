//! A finished exchange: its record and its charge.

use std::sync::Arc;

use meter::{Record, TokenType};
use price::Charge;
use serde_json::{Map, Value, json};

use crate::numbers::Source;
use crate::values::{Number, RateKind, TextKind};

/// The record of an ended exchange, and its charge.
pub(crate) struct Finished {
    pub(crate) record: Arc<Record>,
    pub(crate) charge: Charge,
}

impl Finished {
    /// Returns all values as one JSON object. Absent ones are left out; `tokens` has the types that are not 0.
    pub(crate) fn json(&self) -> Value {
        let Self { record, charge } = self;
        let mut all = Map::new();
        let texts = TextKind::ALL.into_iter().map(|kind| {
            (kind.name(), kind.in_record(record, charge).map(|text| Value::from(text.into_owned())))
        });
        let numbers =
            Number::ALL.into_iter().map(|kind| (kind.name(), kind.in_record(record).map(Value::from)));
        let rates =
            RateKind::ALL.into_iter().map(|kind| (kind.name(), kind.in_record(record).map(Value::from)));
        for (name, value) in texts.chain(numbers).chain(rates) {
            all.extend(value.map(|value| (name.to_owned(), value)));
        }
        let tokens = &record.tokens;
        let counted = TokenType::ALL.into_iter().filter(|kind| tokens.of(*kind) > 0);
        let by_type: Map<_, _> =
            counted.map(|kind| (kind.name().to_owned(), Value::from(tokens.of(kind)))).collect();
        all.insert("tokens".to_owned(), by_type.into());
        all.insert("input_provenance".to_owned(), json!(tokens.input_provenance.name()));
        all.insert("output_provenance".to_owned(), json!(tokens.output_provenance.name()));
        all.insert("streamed".to_owned(), json!(record.streamed));
        all.into()
    }

    /// Returns the source of the counts of the prompt or of the output.
    pub(crate) fn source(&self, is_input: bool) -> Source {
        let tokens = &self.record.tokens;
        if is_input { tokens.input_provenance.into() } else { tokens.output_provenance.into() }
    }
}
