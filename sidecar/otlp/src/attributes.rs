//! Lists of attributes. Invariant: no text is longer than the limit.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;

use crate::text::cut;

/// A list of attributes under construction.
pub(crate) struct Attributes {
    list: Vec<KeyValue>,
    text_limit: usize,
}

impl Attributes {
    pub(crate) fn new(text_limit: usize) -> Self {
        Self { list: Vec::new(), text_limit }
    }

    pub(crate) fn into_list(self) -> Vec<KeyValue> {
        self.list
    }

    /// Removes the convention's attributes of a prefill leg, because the decode leg has them too.
    pub(crate) fn remove_gen_ai(&mut self) {
        self.list.retain(|attribute| !attribute.key.starts_with("gen_ai."));
    }

    fn put(&mut self, key: &str, value: Value) {
        self.list.push(KeyValue { key: key.to_owned(), value: Some(any(value)), key_strindex: 0 });
    }

    pub(crate) fn text(&mut self, key: &str, text: &str) {
        self.put(key, string(text, self.text_limit));
    }

    pub(crate) fn texts<'a>(&mut self, key: &str, texts: impl Iterator<Item = &'a str>) {
        let limit = self.text_limit;
        let values = texts.map(|text| any(string(text, limit))).collect();
        self.put(key, Value::ArrayValue(ArrayValue { values }));
    }

    pub(crate) fn count(&mut self, key: &str, count: u64) {
        self.put(key, Value::IntValue(int(count)));
    }

    pub(crate) fn counts(&mut self, key: &str, counts: impl Iterator<Item = u64>) {
        let values = counts.map(|count| any(Value::IntValue(int(count)))).collect();
        self.put(key, Value::ArrayValue(ArrayValue { values }));
    }

    pub(crate) fn numbers(&mut self, key: &str, numbers: impl Iterator<Item = f64>) {
        let values = numbers.map(|number| any(Value::DoubleValue(number))).collect();
        self.put(key, Value::ArrayValue(ArrayValue { values }));
    }

    pub(crate) fn int(&mut self, key: &str, number: i64) {
        self.put(key, Value::IntValue(number));
    }

    pub(crate) fn number(&mut self, key: &str, number: f64) {
        self.put(key, Value::DoubleValue(number));
    }

    pub(crate) fn truth(&mut self, key: &str, truth: bool) {
        self.put(key, Value::BoolValue(truth));
    }

    /// Adds a time in seconds, if there is one.
    pub(crate) fn seconds(&mut self, key: &str, ns: Option<u64>) {
        if let Some(ns) = ns {
            self.number(key, ns as f64 / 1e9);
        }
    }
}

/// Converts a count to the protocol's signed integers, saturating.
pub(crate) fn int(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn string(text: &str, limit: usize) -> Value {
    Value::StringValue(cut(text, limit).to_owned())
}

fn any(value: Value) -> AnyValue {
    AnyValue { value: Some(value) }
}

/// Returns the resource that describes this process.
pub(crate) fn resource(attributes: &[(String, String)], text_limit: usize) -> Resource {
    let mut list = Attributes::new(text_limit);
    for (name, value) in attributes {
        match value.parse() {
            Ok(pid) if name == "process.pid" => list.int(name, pid),
            _ => list.text(name, value),
        }
    }
    Resource { attributes: list.into_list(), ..Resource::default() }
}

/// Returns the instrumentation scope: this program and its version.
pub(crate) fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "tokenmeter".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    }
}
