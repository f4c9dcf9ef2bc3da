//! Names of tokens in another style than the documents write: which of them the scanner reads is undefined here.

use scan::Dialect;
use serde_json::Value;

/// Names in small letters.
const SMALL: &[&str] = &[
    "audio_tokens",
    "cache_creation_input_tokens",
    "cache_creation_token_details",
    "cache_creation_tokens",
    "cache_read_input_tokens",
    "cache_write_tokens",
    "cached_input_tokens",
    "cached_prompt_tokens",
    "cached_tokens",
    "cached_tokens_details",
    "completion_tokens",
    "completion_tokens_details",
    "created_cache_tokens",
    "ephemeral_1h_input_tokens",
    "ephemeral_5m_input_tokens",
    "generated_tokens",
    "image_tokens",
    "input_token_details",
    "input_tokens",
    "input_tokens_details",
    "multimodal_tokens",
    "num_cached_tokens",
    "output_token_details",
    "output_tokens",
    "output_tokens_details",
    "prompt_cache_hit_tokens",
    "prompt_token_details",
    "prompt_tokens",
    "prompt_tokens_details",
    "reasoning_tokens",
    "thinking_tokens",
    "total_cached_tokens",
    "total_input_tokens",
    "total_output_tokens",
    "total_thought_tokens",
    "total_tokens",
    "total_tool_use_tokens",
    "video_tokens",
];

/// Names with capitals inside.
const MIXED: &[&str] = &[
    "cacheReadInputTokens",
    "cacheTokensDetails",
    "cacheWriteInputTokens",
    "cachedContentTokenCount",
    "candidatesTokenCount",
    "candidatesTokensDetails",
    "inputTokens",
    "outputTokens",
    "promptTokenCount",
    "promptTokensDetails",
    "thoughtsTokenCount",
    "tokenCount",
    "toolUsePromptTokenCount",
    "totalTokenCount",
    "totalTokens",
];

/// True if a frame has a name with the words of a known one, but not as this dialect writes it.
pub(crate) fn is_restyled(dialect: Dialect, frame: &Value) -> bool {
    let own: &[&[&str]] = match dialect {
        Dialect::Gemini | Dialect::BedrockConverse => &[MIXED],
        Dialect::Unknown => &[SMALL, MIXED],
        _ => &[SMALL],
    };
    let is_own = |name: &str| own.iter().any(|names| names.contains(&name));
    let has_words = |name: &str| [SMALL, MIXED].concat().iter().any(|known| letters(known).eq(letters(name)));
    match frame {
        Value::Object(members) => members
            .iter()
            .any(|(name, value)| !is_own(name) && has_words(name) || is_restyled(dialect, value)),
        Value::Array(values) => values.iter().any(|value| is_restyled(dialect, value)),
        _ => false,
    }
}

fn letters(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|letter| *letter != '_').map(|letter| letter.to_ascii_lowercase())
}
