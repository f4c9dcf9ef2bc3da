//! Parses the names of LiteLLM's price fields: token type, tier and prompt length.

use crate::prices::{KEYS, PER_REQUEST};

/// The field that lists prices by the prompt's length.
pub(super) const TIERED: &str = "tiered_pricing";

/// The field of facts of one provider; those of [`FACTOR_TIERS`] are factors of all prices.
pub(super) const FACTORS: &str = "provider_specific_entry";

/// Anthropic's speed and geography.
pub(super) const FACTOR_TIERS: [&str; 2] = ["fast", "us"];

/// The field of tokens read from a cache.
pub(super) const CACHE_READ: &str = "cache_read_input_token_cost";

/// An older name of [`CACHE_READ`], used if that field is missing.
const CACHE_HIT: &str = "input_cost_per_token_cache_hit";

/// Prefixes of field names, each with the key of the price file. A prefix that begins with another one comes before it.
const BASES: [(&str, &str); 16] = [
    (CACHE_HIT, "cached_input"),
    (CACHE_READ, "cached_input"),
    ("cache_read_input_audio_token_cost", "cached_input_audio"),
    ("cache_read_input_image_token_cost", "cached_input_image"),
    ("cache_creation_input_token_cost_above_1hr", "cache_write_1h"),
    ("cache_creation_input_token_cost", "cache_write"),
    ("output_cost_per_reasoning_token", "reasoning"),
    ("input_cost_per_audio_token", "input_audio"),
    ("output_cost_per_audio_token", "output_audio"),
    ("input_cost_per_image_token", "input_image"),
    ("output_cost_per_image_token", "output_image"),
    ("input_cost_per_video_token", "input_video"),
    ("output_cost_per_video_token", "output_video"),
    ("input_cost_per_request", PER_REQUEST),
    ("input_cost_per_token", "input"),
    ("output_cost_per_token", "output"),
];

/// Suffixes of field names, each with the tier's name.
const TIERS: [(&str, &str); 6] = [
    ("_batches", "batch"),
    ("_priority", "priority"),
    ("_flex", "flex"),
    ("_balanced", "balanced"),
    ("_ultrafast", "ultrafast"),
    ("_decisions", "decisions"),
];

/// A field that is imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    /// Position in [`KEYS`], or its length for the price of a request.
    pub(super) key: usize,
    /// The tier; "" for the standard one.
    pub(super) tier: &'static str,
    /// The price holds for prompts of more tokens than this.
    pub(super) above: u64,
    /// True if the field is used only where [`CACHE_READ`] is missing.
    pub(super) is_fallback: bool,
}

impl Field {
    /// Parses a field's name; `None` if its unit is not counted here.
    pub(super) fn read(name: &str) -> Option<Self> {
        let (base, key) = BASES.iter().find(|(base, _)| name.starts_with(base))?;
        let key = KEYS.iter().position(|(known, _)| known == key).unwrap_or(KEYS.len());
        let mut field = Self { key, tier: "", above: 0, is_fallback: *base == CACHE_HIT };
        let mut rest = &name[base.len()..];
        while !rest.is_empty() {
            if let Some((suffix, tier)) = TIERS.iter().find(|(suffix, _)| rest.starts_with(suffix)) {
                if !field.tier.is_empty() {
                    return None;
                }
                field.tier = tier;
                rest = &rest[suffix.len()..];
            } else {
                let (length, after) = rest.strip_prefix("_above_")?.split_once("_tokens")?;
                if field.above != 0 {
                    return None;
                }
                field.above = match length.strip_suffix('k') {
                    Some(thousands) => thousands.parse::<u64>().ok()?.checked_mul(1000)?,
                    None => length.parse().ok()?,
                };
                if !(1..=super::MAX_PROMPT_TOKENS).contains(&field.above) {
                    return None;
                }
                rest = after;
            }
        }
        Some(field)
    }
}

/// Returns whether the name of a field that is not imported is about money.
pub(super) fn is_price(name: &str) -> bool {
    ["cost", "pric", "uplift", "billing", "free_requests", "provider_specific_entry"]
        .iter()
        .any(|word| name.contains(word))
}

/// Returns whether a field gives a cost, rather than a factor or a free allowance.
pub(super) fn is_cost(name: &str) -> bool {
    ["cost", "pric"].iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::Field;
    use crate::prices::KEYS;

    #[test]
    fn field_names_are_parsed() {
        for (name, meaning) in [
            ("input_cost_per_token", Some(("input", "", 0))),
            ("output_cost_per_token_batches", Some(("output", "batch", 0))),
            (
                "cache_read_input_token_cost_above_272k_tokens_priority",
                Some(("cached_input", "priority", 272_000)),
            ),
            ("input_cost_per_token_flex_above_200k_tokens", Some(("input", "flex", 200_000))),
            ("output_cost_per_token_above_128000_tokens", Some(("output", "", 128_000))),
            ("output_cost_per_reasoning_token", Some(("reasoning", "", 0))),
            ("input_cost_per_audio_token", Some(("input_audio", "", 0))),
            ("input_cost_per_image_token", Some(("input_image", "", 0))),
            ("output_cost_per_image_token_batches", Some(("output_image", "batch", 0))),
            ("input_cost_per_token_cache_hit", Some(("cached_input", "", 0))),
            ("cache_creation_input_token_cost", Some(("cache_write", "", 0))),
            ("cache_creation_input_token_cost_above_1hr", Some(("cache_write_1h", "", 0))),
            (
                "cache_creation_input_token_cost_above_1hr_above_200k_tokens",
                Some(("cache_write_1h", "", 200_000)),
            ),
            ("cache_creation_input_token_cost_above_12hr", None),
            ("input_cost_per_token_above_0k_tokens", None),
            ("input_cost_per_token_above_99999999999999999999k_tokens", None),
            ("input_cost_per_token_batches_flex", None),
            ("input_cost_per_second", None),
            ("cache_read_input_audio_token_cost", Some(("cached_input_audio", "", 0))),
            ("cache_read_input_audio_token_cost_flex", Some(("cached_input_audio", "flex", 0))),
            ("cache_read_input_image_token_cost", Some(("cached_input_image", "", 0))),
            ("output_cost_per_video_token", Some(("output_video", "", 0))),
            ("cache_creation_input_audio_token_cost", None),
            ("citation_cost_per_token", None),
            ("output_cost_per_image", None),
            ("mode", None),
        ] {
            let read = Field::read(name).map(|field| (KEYS[field.key].0, field.tier, field.above));
            assert_eq!(read, meaning, "{name}");
        }
        assert_eq!(Field::read("input_cost_per_request").map(|field| field.key), Some(KEYS.len()));
    }
}
