//! Strict JSON as a tree: of two members of one name the last counts, as in every client's parser. It returns `None` in
//! undefined cases:
//!
//! * the text is not JSON by the strict grammar, not UTF-8, has half a surrogate pair, is nested deeper than
//!   `serde_json` goes, or has a number of more than 200 characters;
//! * a repeated member that is summed or has a second spelling (a tool's arguments, `reasoning`, a refusal, a model's
//!   name) or that limits the output, or a repeated container other than the four that start again (`choices`, `delta`,
//!   `message`, `usage`; these only if they have no id and no model), or a count once as a number and once as another
//!   value or as zero.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Members whose last value counts, whatever the earlier ones are.
const SETTLED: [&str; 15] = [
    "content",
    "finish_reason",
    "index",
    "stop",
    "stop_type",
    "role",
    "object",
    "type",
    "status",
    "stop_reason",
    "done",
    "done_reason",
    "finishReason",
    "thought",
    "generated_text",
];

/// Members that are undefined if repeated.
const OPEN: [&str; 24] = [
    "reasoning",
    "reasoning_content",
    "thinking",
    "name",
    "arguments",
    "partial_json",
    "tool_plan",
    "text",
    "refusal",
    "id",
    "request_id",
    "responseId",
    "model",
    "model_name",
    "modelVersion",
    "error",
    "service_tier",
    // Limits of a request: parsers differ in which of two applies, so the scanner takes the higher one.
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "max_new_tokens",
    "n_predict",
    "num_predict",
    "maxOutputTokens",
];

/// Members that start again if repeated.
const ANEW: [&str; 4] = ["choices", "delta", "message", "usage"];

/// `text` without JSON's white space around it.
pub(crate) fn trim(text: &[u8]) -> &[u8] {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let from = text.iter().position(|byte| !is_space(byte)).unwrap_or(text.len());
    let to = text.iter().rposition(|byte| !is_space(byte)).map_or(from, |at| at + 1);
    &text[from..to]
}

/// Parses a payload.
pub(crate) fn parse(text: &[u8]) -> Option<Value> {
    let text = str::from_utf8(text).ok()?;
    let contested = Cell::new(text.split(|c: char| !c.is_ascii_digit() && c != '.').any(|n| n.len() > 200));
    let mut parser = serde_json::Deserializer::from_str(text);
    let value = Tree { contested: &contested }.deserialize(&mut parser).ok()?;
    parser.end().ok()?;
    (!contested.get()).then_some(value)
}

#[derive(Clone, Copy)]
struct Tree<'a> {
    contested: &'a Cell<bool>,
}

fn settled(key: &str, earlier: &Value, later: &Value) -> bool {
    let scalar = |value: &Value| !value.is_object() && !value.is_array();
    if ANEW.contains(&key) {
        // The name of an answer remains. Of a list of several, some may have been emitted before the second.
        let is_named = ["id", "model"].iter().any(|name| earlier.get(name).is_some());
        return !is_named && earlier.as_array().is_none_or(|list| list.len() < 2);
    }
    if OPEN.contains(&key) || !scalar(earlier) || !scalar(later) {
        return false;
    }
    let (before, now) = (super::counts::stated(earlier), super::counts::stated(later));
    let is_zero = now == Some(0) && before != Some(0);
    let are_strings = earlier.is_string() && later.is_string();
    SETTLED.contains(&key) || !is_zero && (are_strings || before.is_some() && now.is_some())
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element_seed(self)? {
            list.push(element);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            let value = members.next_value_seed(self)?;
            if let Some(earlier) = map.get(&key)
                && !settled(&key, earlier, &value)
            {
                self.contested.set(true);
            }
            map.insert(key, value);
        }
        Ok(map.into())
    }
}
