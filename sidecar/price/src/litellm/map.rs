//! Parses the JSON of a price map. Numbers stay text, because a float would change the price.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::amount::{self, NumberError, Parts};

/// Names with their values, in the order of the map, duplicates included.
pub(super) type Object = Vec<(String, Value)>;

/// A value of the map.
#[derive(Debug)]
pub(super) enum Value {
    /// A number as written.
    Number(String),
    Text(String),
    Bool,
    Null,
    List(Vec<Value>),
    Object(Object),
}

impl Value {
    /// Returns whether it is a number above 0 of any size, or an object that contains one.
    pub(super) fn is_above_zero(&self) -> bool {
        match self {
            Self::Number(text) | Self::Text(text) => {
                !text.starts_with('-')
                    && match amount::parts(text, 0) {
                        Ok(Parts { whole, exact }) => whole > 0 || !exact,
                        Err(NumberError::TooLarge) => true,
                        Err(NumberError::Malformed) => false,
                    }
            }
            Self::Object(fields) => fields.iter().any(|(_, value)| value.is_above_zero()),
            Self::List(_) | Self::Bool | Self::Null => false,
        }
    }
}

/// Parses the whole map.
pub(super) fn read(json: &str) -> Result<Object, String> {
    let pairs: Pairs<'_> = serde_json::from_str(json).map_err(|error| error.to_string())?;
    pairs.values(0)
}

/// Maximum nesting of values: three times the map's own.
const MAX_DEPTH: usize = 16;

struct Pairs<'a>(Vec<(String, &'a RawValue)>);

impl Pairs<'_> {
    fn values(self, depth: usize) -> Result<Object, String> {
        self.0.into_iter().map(|(name, raw)| Ok((name, value(raw, depth + 1)?))).collect()
    }
}

fn value(raw: &RawValue, depth: usize) -> Result<Value, String> {
    let text = raw.get();
    if depth > MAX_DEPTH {
        return Err("values are nested too deeply".to_owned());
    }
    let message = |error: serde_json::Error| error.to_string();
    Ok(match text.as_bytes().first() {
        Some(b'{') => Value::Object(serde_json::from_str::<Pairs<'_>>(text).map_err(message)?.values(depth)?),
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text).map_err(message)?;
            Value::List(items.into_iter().map(|item| value(item, depth + 1)).collect::<Result<_, _>>()?)
        }
        Some(b'"') => Value::Text(serde_json::from_str(text).map_err(message)?),
        Some(b'n') => Value::Null,
        Some(b't' | b'f') => Value::Bool,
        _ => Value::Number(text.to_owned()),
    })
}

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PairsVisitor).map(Pairs)
    }
}

struct PairsVisitor;

impl<'de> Visitor<'de> for PairsVisitor {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("names with values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = entries.next_entry()? {
            pairs.push(pair);
        }
        Ok(pairs)
    }
}
