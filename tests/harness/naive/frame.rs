//! What one frame's tree means.

use scan::{Counts, Dialect, Event, Finish, Piece, Scope, Usage};
use serde_json::Value;

use super::{Frame, counts};

/// One answer in a frame.
struct Choice {
    index: u32,
    finished: bool,
    /// Its events in order; usage only where the frame is the choice.
    events: Vec<Event>,
}

/// The model a frame names, or "". `None` if the name is too long to be sure how it is cut.
pub(crate) fn model(dialect: Dialect, frame: &Value) -> Option<&str> {
    let name =
        |value: &'_ Value| value.get("model").and_then(Value::as_str).filter(|m| !m.is_empty()).is_some();
    let holder = match frame {
        Value::Array(list) if dialect == Dialect::LlamacppCompletion => {
            list.iter().find(|e| name(e)).unwrap_or(frame)
        }
        _ => frame,
    };
    let model = holder.get("model").and_then(Value::as_str).unwrap_or_default();
    (model.len() <= 40).then_some(model)
}

/// The events of a frame.
pub(crate) fn events(dialect: Dialect, outside: Frame, frame: &Value) -> Option<Vec<Event>> {
    let choices = choices(dialect, outside, frame)?;
    let progress = frame.get("prompt_progress").is_some_and(Value::is_object);
    let error = outside.error || is_error(dialect, frame);
    let usage = usage(dialect, outside, frame, &choices)?;

    let mut events: Vec<Event> = choices.iter().flat_map(|choice| choice.events.clone()).collect();
    let many = events.len() > scan::limits::FRAME_EVENTS;
    let early = dialect == Dialect::LlamacppCompletion && choices.len() > 1;
    if (many || early) && (error || progress || !outside.whole || outside.commented) {
        // Some may have been let go before that was known.
        return None;
    }
    if !outside.whole {
        events.retain(|event| matches!(event, Event::Finish { .. } | Event::Usage(_)));
    }
    if error {
        events.insert(0, Event::Error);
    } else if progress {
        events = vec![Event::Progress];
    } else if choices.is_empty() && usage.is_none() {
        let meta = dialect != Dialect::LlamacppCompletion && frame.get("choices").is_some();
        events.push(if meta { Event::Meta } else { Event::Other });
    }
    events.extend(usage.map(Event::Usage));
    Some(events)
}

fn is_error(dialect: Dialect, frame: &Value) -> bool {
    match (dialect, frame) {
        (Dialect::LlamacppCompletion, Value::Array(list)) => list.iter().any(says_error),
        (Dialect::LlamacppCompletion, _) => says_error(frame),
        _ => says_error(frame) || frame.get("object").is_some_and(|object| object == "error"),
    }
}

fn says_error(value: &Value) -> bool {
    match value.get("error") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(flag)) => *flag,
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(_) | Value::Object(_)) => true,
    }
}

/// The frame's own usage, which follows its choices.
fn usage(dialect: Dialect, outside: Frame, frame: &Value, choices: &[Choice]) -> Option<Option<Usage>> {
    if dialect == Dialect::LlamacppCompletion {
        return Some(None);
    }
    let one = match choices {
        [choice] => Some(choice.index),
        _ => None,
    };
    let running = choices.last().map(|choice| Scope::Running(choice.index));
    let final_ = outside.unstreamed || choices.iter().any(|choice| choice.finished);
    let timings = frame.get("timings").filter(|timings| timings.is_object());
    let Some(usage) = frame.get("usage").filter(|usage| usage.is_object()) else {
        let counts = timings.and_then(counts::of_timings);
        return Some(
            counts.zip(running).filter(|_| one.is_some()).map(|(counts, scope)| Usage { scope, counts }),
        );
    };
    let scope = match (choices.len(), timings) {
        // llama.cpp, whose mark are the timings, counts each choice for itself.
        (0, Some(_)) => Scope::Choice(None),
        (_, Some(_)) if final_ => Scope::Choice(one),
        // The others count one choice in that choice's last frame, and all of them in a frame of
        // its own or in an answer that is whole.
        (0, None) => Scope::Whole,
        (1, None) if final_ => Scope::Choice(one),
        (_, None) if final_ => Scope::Whole,
        _ => running?,
    };
    Some(Some(Usage { scope, counts: counts::of_usage(usage)? }))
}

fn choices(dialect: Dialect, outside: Frame, frame: &Value) -> Option<Vec<Choice>> {
    let none = Vec::new();
    let list: Vec<&Value> = match (dialect, frame) {
        (Dialect::LlamacppCompletion, Value::Object(_)) => vec![frame],
        (Dialect::LlamacppCompletion, Value::Array(list)) => list.iter().collect(),
        (Dialect::LlamacppCompletion, _) => Vec::new(),
        _ => frame.get("choices").and_then(Value::as_array).unwrap_or(&none).iter().collect(),
    };
    // Where the frame is the choice, it may be an error instead.
    let native = dialect == Dialect::LlamacppCompletion;
    let is_choice = |value: &&Value| value.is_object() && !(native && says_error(value));
    let objects = list.into_iter().filter(is_choice);
    let mut choices = Vec::new();
    for (place, value) in objects.enumerate() {
        let index = value.get("index").and_then(counts::count).and_then(|n| u32::try_from(n).ok());
        let index = index.unwrap_or(u32::try_from(place).ok()?);
        let mut choice = match dialect {
            Dialect::OpenaiChat => chat(index, value)?,
            Dialect::OpenaiCompletions => {
                let tokens = tokens(value, &["/token_ids"], &["/logprobs/content", "/logprobs/tokens"]);
                let text = chars(value.get("text"));
                Choice::new(index, tokens, [0, text, 0, 0, 0], false, finish(value, "finish_reason"))
            }
            _ => {
                let tokens = tokens(value, &["/tokens"], &["/completion_probabilities"]);
                let stopped = value.get("stop") == Some(&Value::Bool(true));
                let finish = stopped.then(|| finish(value, "stop_type").unwrap_or(Finish::Stop));
                Choice::new(index, tokens, [0, chars(value.get("content")), 0, 0, 0], false, finish)
            }
        };
        if dialect == Dialect::LlamacppCompletion
            && let Some(counts) = counts::of_native(value)?
        {
            choice.count(outside, counts);
        }
        choices.push(choice);
    }
    Some(choices)
}

fn chat(index: u32, choice: &Value) -> Option<Choice> {
    let object = |name: &str| choice.get(name).filter(|value| !value.is_null());
    let delta = match (object("delta"), object("message")) {
        (Some(_), Some(_)) => return None,
        (delta, message) => delta.or(message).unwrap_or(&Value::Null),
    };
    let text = match delta.get("content") {
        Some(Value::Array(parts)) => parts.iter().map(|part| chars(part.get("text"))).sum(),
        content => chars(content),
    };
    // Two spellings of one thing; a server that sends both sends the same text twice.
    let reasoning = chars(delta.get("reasoning")).max(chars(delta.get("reasoning_content")));
    let function = |value: Option<&Value>| {
        let part = |name: &str| chars(value.and_then(|v| v.get(name)));
        part("name") + part("arguments")
    };
    let calls = delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
    let tool =
        calls.map(|call| function(call.get("function"))).sum::<u32>() + function(delta.get("function_call"));
    let tokens = tokens(choice, &["/token_ids"], &["/logprobs/content"]);
    let pieces = [reasoning, text, chars(delta.get("refusal")), tool, chars(delta.pointer("/audio/data"))];
    let role = delta.get("role").and_then(Value::as_str).is_some_and(|role| !role.is_empty());
    Some(Choice::new(index, tokens, pieces, role, finish(choice, "finish_reason")))
}

impl Choice {
    /// Pieces stand in the order reasoning, text, refusal, tool, audio.
    fn new(index: u32, tokens: Option<u32>, chars: [u32; 5], role: bool, finish: Option<Finish>) -> Self {
        const KINDS: [fn(Piece) -> Event; 5] =
            [Event::Reasoning, Event::Text, Event::Refusal, Event::Tool, Event::Audio];
        let mut events = Vec::new();
        for (kind, chars) in KINDS.into_iter().zip(chars) {
            if chars > 0 {
                let rest = if events.is_empty() { tokens } else { tokens.map(|_| 0) };
                events.push(kind(Piece { choice: index, chars, tokens: rest }));
            }
        }
        if events.is_empty() {
            if role {
                events.push(Event::Role { choice: index });
            }
            let told = role || finish.is_some();
            if !told || tokens.is_some_and(|n| n > 0) {
                events.push(Event::Empty(Piece { choice: index, chars: 0, tokens }));
            }
        }
        if let Some(reason) = finish {
            events.push(Event::Finish { choice: index, reason });
        }
        Self { index, finished: finish.is_some(), events }
    }

    /// The count a native frame carries.
    fn count(&mut self, outside: Frame, counts: Counts) {
        let scope = match self.finished || outside.unstreamed {
            true => Scope::Choice(Some(self.index)),
            false => Scope::Running(self.index),
        };
        self.events.push(Event::Usage(Usage { scope, counts }));
    }
}

fn finish(choice: &Value, name: &str) -> Option<Finish> {
    Finish::from_word(choice.get(name)?.as_str()?.as_bytes())
}

fn chars(value: Option<&Value>) -> u32 {
    let text = value.and_then(Value::as_str).unwrap_or_default();
    u32::try_from(text.chars().count()).unwrap_or(u32::MAX)
}

/// Ids if there are any; else the log-probability entries.
fn tokens(choice: &Value, ids: &[&str], logprobs: &[&str]) -> Option<u32> {
    let entries = |paths: &[&str]| {
        let lists = paths.iter().filter_map(|path| choice.pointer(path)?.as_array());
        lists.map(|list| u32::try_from(list.len()).unwrap_or(u32::MAX)).max()
    };
    match (entries(ids), entries(logprobs)) {
        (None | Some(0), Some(n)) => Some(n),
        (ids, _) => ids,
    }
}
