//! A short notation of events for tables: `text0/5` is a delta of choice 0 with 5 characters,
//! `text0/5=2` the same with 2 tokens; `|` ends a frame, `~` a frame that the body's end cut short.

use super::{Output, Seen};
use crate::{Count, Delta, Event, Finish, Scope, ServerReport, Usage};

/// The events and frames in the short notation.
pub(crate) fn short(seen: &Seen) -> String {
    let words = seen.outputs.iter().map(|output| match output {
        Output::Event(event) => word(*event),
        Output::Frame { whole: true } => "|".to_owned(),
        Output::Frame { whole: false } => "~".to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

fn word(event: Event) -> String {
    match event {
        Event::Role { choice } => format!("role{choice}"),
        Event::Text(delta) => content("text", delta),
        Event::Reasoning(delta) => content("reasoning", delta),
        Event::Tool(delta) => content("tool", delta),
        Event::Refusal(delta) => content("refusal", delta),
        Event::Audio(delta) => content("audio", delta),
        Event::Empty(delta) => content("empty", delta),
        Event::Usage(usage) => usage_words(usage),
        Event::Server(times) => times_words(times),
        Event::Unknown(name) => format!("unknown({})", name.as_str()),
        Event::Finish { choice, reason } => format!("{}{choice}", reason_word(reason)),
        Event::Error => "error".to_owned(),
        Event::Progress => "progress".to_owned(),
        Event::Ping => "ping".to_owned(),
        Event::Meta => "meta".to_owned(),
        Event::Done => "done".to_owned(),
        Event::Other => "other".to_owned(),
    }
}

fn reason_word(reason: Finish) -> &'static str {
    match reason {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::ToolCalls => "tools",
        Finish::ContentFilter => "filter",
        Finish::Abort => "abort",
        Finish::Other => "ended",
    }
}

fn content(name: &str, delta: Delta) -> String {
    let Delta { choice, chars, tokens } = delta;
    let tokens = tokens.map(|n| format!("={n}")).unwrap_or_default();
    if name == "empty" { format!("empty{choice}{tokens}") } else { format!("{name}{choice}/{chars}{tokens}") }
}

fn usage_words(usage: Usage) -> String {
    let scope = match usage.scope {
        Scope::Whole => "whole".to_owned(),
        Scope::Choice(Some(choice)) => format!("choice{choice}"),
        Scope::Choice(None) => "choice".to_owned(),
        Scope::Running(choice) => format!("running{choice}"),
    };
    let rejected = Some(u64::from(usage.counts.rejected)).filter(|rejected| *rejected > 0);
    let counts = Count::ALL.iter().zip(COUNTS).map(|(count, name)| (name, usage.counts.get(*count)));
    let counts: Vec<_> = counts.chain([("rejected", rejected)]).collect();
    format!("{scope}({})", numbers(&counts))
}

/// The words for the counts, in the order of [`Count::ALL`].
const COUNTS: [&str; Count::ALL.len()] = [
    "in",
    "cached",
    "cache_write",
    "cache_write_1h",
    "audio_in",
    "image_in",
    "video_in",
    "cached_audio",
    "cached_image",
    "out",
    "reasoning",
    "audio_out",
    "image_out",
    "video_out",
    "total",
    "used_in",
    "used_out",
    "beside",
];

fn times_words(times: ServerReport) -> String {
    let ServerReport { queue_ns, prefill_ns, decode_ns, draft_tokens, accepted_draft_tokens } = times;
    let drafts = [("drafted", draft_tokens), ("accepted", accepted_draft_tokens)];
    let times = [("queue", queue_ns), ("prefill", prefill_ns), ("decode", decode_ns)];
    format!("times({})", numbers(&[&times[..], &drafts].concat()))
}

fn numbers(counts: &[(&str, Option<u64>)]) -> String {
    let counts = counts.iter().filter_map(|(name, n)| n.map(|n| format!("{name} {n}")));
    counts.collect::<Vec<_>>().join(" ")
}
