//! Each dialect's words for the end of an answer. A word of another dialect only is undefined, because one table may
//! serve several.

use scan::Finish::{self, Abort, ContentFilter, Length, Other, Stop, ToolCalls};
use serde_json::Value;

/// A dialect's words.
pub(crate) type Words = &'static [(&'static str, Finish)];

/// Of the OpenAI dialects of every server, and of llama.cpp's, TGI's, SGLang's and LMDeploy's own.
pub(crate) const OPENAI: Words = &[
    ("stop", Stop),
    ("eos_token", Stop),
    ("stop_sequence", Stop),
    ("eos", Stop),
    ("word", Stop),
    ("length", Length),
    ("limit", Length),
    ("max_tokens", Length),
    ("tool_calls", ToolCalls),
    ("function_call", ToolCalls),
    ("content_filter", ContentFilter),
    ("abort", Abort),
    ("error", Abort),
    ("canceled", Abort),
    ("cancelled", Abort),
];

/// Of `incomplete_details.reason`.
pub(crate) const RESPONSES: Words = &[("max_output_tokens", Length), ("content_filter", ContentFilter)];

/// Of `stop_reason`.
pub(crate) const ANTHROPIC: Words = &[
    ("end_turn", Stop),
    ("stop_sequence", Stop),
    ("pause_turn", Stop),
    ("max_tokens", Length),
    ("model_context_window_exceeded", Length),
    ("tool_use", ToolCalls),
    ("refusal", ContentFilter),
];

/// Of `done_reason`.
pub(crate) const OLLAMA: Words = &[("stop", Stop), ("length", Length), ("load", Other), ("unload", Other)];

/// Of `finishReason`.
pub(crate) const GEMINI: Words = &[
    ("STOP", Stop),
    ("MAX_TOKENS", Length),
    ("SAFETY", ContentFilter),
    ("RECITATION", ContentFilter),
    ("BLOCKLIST", ContentFilter),
    ("PROHIBITED_CONTENT", ContentFilter),
    ("SPII", ContentFilter),
    ("LANGUAGE", ContentFilter),
    ("IMAGE_SAFETY", ContentFilter),
];

/// Of Cohere's `finish_reason`.
pub(crate) const COHERE: Words = &[
    ("COMPLETE", Stop),
    ("STOP_SEQUENCE", Stop),
    ("MAX_TOKENS", Length),
    ("TOOL_CALL", ToolCalls),
    ("ERROR", Abort),
];

/// Of Converse's `stopReason`.
pub(crate) const CONVERSE: Words = &[
    ("end_turn", Stop),
    ("stop_sequence", Stop),
    ("max_tokens", Length),
    ("model_context_window_exceeded", Length),
    ("tool_use", ToolCalls),
    ("content_filtered", ContentFilter),
    ("guardrail_intervened", ContentFilter),
];

const ALL: [Words; 7] = [OPENAI, RESPONSES, ANTHROPIC, OLLAMA, GEMINI, COHERE, CONVERSE];

/// The reason of an end, if `value` is a word; `None` outside if it is undefined.
pub(crate) fn finish(value: Option<&Value>, own: Words) -> Option<Option<Finish>> {
    let word = value.and_then(Value::as_str).unwrap_or_default();
    if word.is_empty() {
        return Some(None);
    }
    let reason = |words: Words| words.iter().find(|(known, _)| *known == word).map(|&(_, reason)| reason);
    match reason(own) {
        Some(reason) => Some(Some(reason)),
        None if ALL.into_iter().any(|words| reason(words).is_some()) => None,
        None => Some(Some(Other)),
    }
}
