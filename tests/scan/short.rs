//! Events in a short notation for tables: `text0/3=2` means three characters and two tokens of choice 0,
//! `server(decode 5)` five nanoseconds of the server's own time; `|` ends a whole frame, `~` a torn one.

use harness::{Seen, SinkCall};
use scan::{Count, Counts, Delta, Event, Scope, ServerReport};

/// All events in the notation.
pub(crate) fn short(seen: &Seen) -> String {
    let words: Vec<String> = seen.calls.iter().map(notation).collect();
    words.join(" ")
}

fn notation(call: &SinkCall) -> String {
    let event = match call {
        SinkCall::Frame(whole) => return if *whole { "|" } else { "~" }.to_owned(),
        SinkCall::Event(event) => event,
    };
    match event {
        Event::Role { choice } => format!("role{choice}"),
        Event::Text(p) => delta("text", p),
        Event::Reasoning(p) => delta("reasoning", p),
        Event::Tool(p) => delta("tool", p),
        Event::Refusal(p) => delta("refusal", p),
        Event::Audio(p) => delta("audio", p),
        Event::Empty(p) => delta("empty", p),
        Event::Usage(usage) => format!("{}({})", scope(usage.scope), counts(&usage.counts)),
        Event::Finish { choice, reason } => format!("finish{choice}:{reason:?}").to_lowercase(),
        Event::Error => "error".to_owned(),
        Event::Progress => "progress".to_owned(),
        Event::Ping => "ping".to_owned(),
        Event::Meta => "meta".to_owned(),
        Event::Done => "done".to_owned(),
        Event::Server(times) => server(times),
        Event::Unknown(name) => format!("unknown {}", name.as_str()),
        Event::Other => "other".to_owned(),
    }
}

/// The event's word in the notation.
pub(crate) fn kind(event: &Event) -> String {
    let notation = notation(&SinkCall::Event(*event));
    notation.chars().take_while(char::is_ascii_alphabetic).collect()
}

fn server(times: &ServerReport) -> String {
    let named = [
        ("queue", times.queue_ns),
        ("prefill", times.prefill_ns),
        ("decode", times.decode_ns),
        ("drafted", times.draft_tokens),
        ("accepted", times.accepted_draft_tokens),
    ];
    let words: Vec<String> = named.iter().filter_map(|(name, n)| n.map(|n| format!("{name} {n}"))).collect();
    format!("server({})", words.join(" "))
}

fn delta(kind: &str, delta: &Delta) -> String {
    let tokens = delta.tokens.map(|n| format!("={n}")).unwrap_or_default();
    match delta.chars {
        0 => format!("{kind}{}{tokens}", delta.choice),
        chars => format!("{kind}{}/{chars}{tokens}", delta.choice),
    }
}

fn scope(scope: Scope) -> String {
    match scope {
        Scope::Whole => "whole".to_owned(),
        Scope::Choice(Some(choice)) => format!("choice{choice}"),
        Scope::Choice(None) => "choice?".to_owned(),
        Scope::Running(choice) => format!("running{choice}"),
    }
}

fn counts(counts: &Counts) -> String {
    let rejected = (counts.rejected > 0).then_some(u64::from(counts.rejected));
    let named = COUNTS.iter().zip(Count::ALL).map(|(name, count)| (*name, counts.get(count)));
    let named = named.chain([("rejected", rejected)]);
    let words: Vec<String> = named.filter_map(|(name, n)| n.map(|n| format!("{name} {n}"))).collect();
    words.join(" ")
}

/// The words for the counts, in the order of [`Count::ALL`].
const COUNTS: [&str; Count::ALL.len()] = [
    "in",
    "cached",
    "written",
    "written_1h",
    "heard",
    "image",
    "video",
    "cached_audio",
    "cached_image",
    "out",
    "thought",
    "audio",
    "drawn",
    "filmed",
    "total",
    "used_in",
    "used_out",
    "beside",
];
