//! The oracle of the usage edit: it has the whole body, splits it into events at blank lines, parses each payload and
//! removes the added parts. It also builds the expected request.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use usage::{AddedOptions, UsageOptions};

/// The client's body of an event stream for which the proxy `added` options.
pub fn edit(body: &[u8], added: AddedOptions) -> Vec<u8> {
    let (mark, body) = match body.strip_prefix("\u{FEFF}".as_bytes()) {
        Some(rest) => ("\u{FEFF}".as_bytes(), rest),
        None => (&b""[..], body),
    };
    let mut out = mark.to_vec();
    let mut event: Vec<Line> = Vec::new();
    let mut rules = Rules::default();
    for line in lines(body) {
        let over = line.text.is_empty() && !line.end.is_empty();
        event.push(line);
        if over {
            out.extend(rules.edit_event(&event, added));
            event.clear();
        }
    }
    // An unfinished event is forwarded unchanged.
    out.extend(event.iter().flat_map(Line::bytes));
    out
}

/// The expected request after `want` is merged into `body`; `None` if it stays unchanged, or if the result is
/// undefined.
pub fn asked(body: &[u8], want: UsageOptions) -> Option<Value> {
    let mut request: Value = serde_json::from_slice(body).ok()?;
    let request_map = request.as_object()?;
    if request_map.get("stream").and_then(truth) != Some(true) {
        return None;
    }
    let flags = ["include_usage", "continuous_usage_stats"].map(|name| format!("/stream_options/{name}"));
    let timings = want.timings.then_some("/timings_per_token".to_owned());
    let is_odd =
        |path: &String| request.pointer(path).is_some_and(|flag| !flag.is_boolean() && !flag.is_null());
    if want.is_strict && flags.iter().chain(&timings).any(is_odd) {
        return None;
    }
    let request_map = request.as_object_mut()?;
    let mut changed = false;
    if want.timings {
        match request_map.get("timings_per_token") {
            Some(flag) if lax(flag).is_none() && !flag.is_null() => return None,
            Some(flag) if lax(flag) == Some(true) => {}
            _ => {
                changed =
                    request_map.insert("timings_per_token".to_owned(), Value::Bool(true)) != Some(true.into())
            }
        }
    }
    if want.include || want.continuous {
        changed |= asked_by_options(request_map, want)?;
    }
    changed.then_some(request)
}

/// Merges the missing members into `stream_options`; false if none is missing, `None` if the body stays unchanged.
fn asked_by_options(request: &mut Map<String, Value>, want: UsageOptions) -> Option<bool> {
    let written = request.get("stream_options").cloned();
    let mut options = match written {
        None | Some(Value::Null) => Map::new(),
        Some(written) => written.as_object()?.clone(),
    };
    let flags = [("include_usage", want.include), ("continuous_usage_stats", want.continuous)];
    let is_on = |name: &str| options.get(name).and_then(lax) == Some(true);
    let is_odd = |name: &str| options.get(name).is_some_and(|flag| lax(flag).is_none() && !flag.is_null());
    if flags.iter().any(|(name, _)| is_odd(name)) {
        return None;
    }
    let alone = is_on("continuous_usage_stats") && !is_on("include_usage");
    let missing: Vec<_> = flags.iter().filter(|(name, wanted)| *wanted && !is_on(name)).collect();
    if missing.is_empty() || alone && !want.alone_is_void {
        return Some(false);
    }
    for (name, _) in missing {
        options.insert((*name).to_owned(), Value::Bool(true));
    }
    request.insert("stream_options".to_owned(), Value::Object(options));
    Some(true)
}

/// A flag by pydantic's table ("Conversion table", lax mode).
pub(super) fn truth(value: &Value) -> Option<bool> {
    let strict = match value {
        Value::Null => return None,
        Value::String(word) => !word.is_empty(),
        _ => true,
    };
    Some(lax(value).unwrap_or(strict))
}

/// A flag in pydantic's reading.
pub(super) fn lax(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::Number(number) if number.as_f64() == Some(1.0) => Some(true),
        Value::Number(number) if number.as_f64() == Some(0.0) => Some(false),
        Value::String(word) => match &*word.to_ascii_lowercase() {
            "1" | "on" | "t" | "true" | "y" | "yes" => Some(true),
            "0" | "off" | "f" | "false" | "n" | "no" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// The state of the oracle from earlier events.
#[derive(Default)]
struct Rules {
    /// A frame with content had no usage.
    bare: bool,
    /// A frame without a finish had some.
    running: bool,
}

impl Rules {
    fn edit_event(&mut self, event: &[Line], added: AddedOptions) -> Vec<u8> {
        let all = || event.iter().flat_map(Line::bytes).collect();
        let data: Vec<&[u8]> = event.iter().filter_map(Line::data).collect();
        let payload = data.join(&b'\n');
        let Ok(frame) = serde_json::from_slice::<Value>(&payload) else { return all() };
        let named_error = event.iter().rfind(|line| line.name() == b"event").is_some_and(Line::says_error);
        let error = named_error
            || frame["object"] == "error"
            || !matches!(frame.get("error"), None | Some(Value::Null | Value::Bool(false)));
        let empty = Vec::new();
        let choices = frame.get("choices").and_then(Value::as_array);
        let usage = frame["usage"].is_object();
        let has_object = frame["object"].is_string();
        if usage && !error && choices.map_or(has_object, |choices| is_usage_only(choices)) {
            if !added.include {
                return all();
            }
            return event.iter().filter(|line| line.is_comment()).flat_map(Line::bytes).collect();
        }
        let choices = choices.unwrap_or(&empty);
        let finish = choices.iter().any(is_finish);
        let running = frame["timings"].is_object() && !usage && !finish && !error;
        if added.timings && running {
            return places(&payload, "timings").map_or_else(all, |gone| without(event, gone));
        }
        let member = || places(&payload, "usage").map_or_else(all, |gone| without(event, gone));
        if !usage {
            self.bare |=
                choices.iter().any(|choice| has_content(choice) || !is_finish(choice) && !has_role(choice));
            return if added.include { member() } else { all() };
        }
        if !added.continuous {
            return if added.include && are_zeros(&frame["usage"]) { member() } else { all() };
        }
        let own = finish && self.bare && !self.running;
        self.running |= !finish;
        if own { all() } else { member() }
    }
}

/// Some counts, all of them zero.
fn are_zeros(usage: &Value) -> bool {
    let mut counts = ["prompt_tokens", "completion_tokens"].iter().filter_map(|name| usage[name].as_f64());
    counts.clone().count() > 0 && counts.all(|count| count == 0.0) && usage["prompt_tokens_details"].is_null()
}

/// No choice, or LiteLLM's: one with an index and an empty delta.
fn is_usage_only(choices: &[Value]) -> bool {
    let is_bare = |choice: &Map<String, Value>| {
        choice
            .iter()
            .all(|(name, value)| name == "index" || name == "delta" && *value == Value::Object(Map::new()))
    };
    match choices {
        [] => true,
        [only] => only.as_object().is_some_and(is_bare),
        _ => false,
    }
}

fn is_finish(choice: &Value) -> bool {
    choice["finish_reason"].as_str().is_some_and(|reason| !reason.is_empty())
}

fn has_role(choice: &Value) -> bool {
    choice["delta"]["role"].as_str().is_some_and(|role| !role.is_empty())
}

fn has_content(choice: &Value) -> bool {
    choice["delta"]["content"].as_str().is_some_and(|text| !text.is_empty())
}

/// The event without the payload bytes `gone`.
fn without(event: &[Line], gone: std::ops::Range<usize>) -> Vec<u8> {
    let (mut at, mut out) = (0, Vec::new());
    for line in event {
        let Some(data) = line.data() else {
            out.extend(line.bytes());
            continue;
        };
        out.extend_from_slice(&line.text[..line.text.len() - data.len()]);
        for &byte in data {
            if !gone.contains(&at) {
                out.push(byte);
            }
            at += 1;
        }
        at += 1;
        out.extend_from_slice(line.end);
    }
    out
}

/// The bytes of the last member `name` of `payload` and of a comma.
fn places(payload: &[u8], name: &str) -> Option<std::ops::Range<usize>> {
    let members: Members<'_> = serde_json::from_slice(payload).ok()?;
    let ends = |n: usize| {
        let value = members.0[n].1.get();
        let from = value.as_ptr().addr() - payload.as_ptr().addr();
        (from, from + value.len())
    };
    // Between two values there are a comma, a key, a colon and white space.
    let find = |from: usize, byte: u8| Some(from + payload[from..].iter().position(|b| *b == byte)?);
    let number = members.0.iter().rposition(|(key, _)| key == name)?;
    let (_, to) = ends(number);
    if number > 0 {
        return Some(find(ends(number - 1).1, b',')?..to);
    }
    let from = find(find(0, b'{')?, b'"')?;
    match members.0.len() {
        1 => Some(from..to),
        _ => Some(from..find(to, b'"')?),
    }
}

/// Members in their order.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Members<'de>;

            fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                to.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Members<'de>, M::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Read)
    }
}

/// A line and its end, which is empty if the body ends first.
struct Line<'a> {
    text: &'a [u8],
    end: &'a [u8],
}

impl<'a> Line<'a> {
    fn bytes(&self) -> impl Iterator<Item = u8> {
        self.text.iter().chain(self.end).copied()
    }

    fn is_comment(&self) -> bool {
        self.text.starts_with(b":")
    }

    fn name(&self) -> &'a [u8] {
        self.text.split(|b| *b == b':').next().unwrap_or_default()
    }

    fn value(&self) -> &'a [u8] {
        let value = self.text.get(self.name().len() + 1..).unwrap_or_default();
        value.strip_prefix(b" ").unwrap_or(value)
    }

    fn data(&self) -> Option<&'a [u8]> {
        (self.name() == b"data").then(|| self.value())
    }

    fn says_error(&self) -> bool {
        self.value() == b"error"
    }
}

fn lines(body: &[u8]) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        let text = rest.iter().position(|b| matches!(b, b'\n' | b'\r')).unwrap_or(rest.len());
        let end = match rest[text..] {
            [b'\r', b'\n', ..] => 2,
            [] => 0,
            _ => 1,
        };
        lines.push(Line { text: &rest[..text], end: &rest[text..text + end] });
        rest = &rest[text + end..];
    }
    lines
}
