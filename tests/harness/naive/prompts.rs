//! Embeddings and rankings, of any server: only the prompt is counted, in one of many places.

use scan::{Count, Counts, Scope, Usage};
use serde_json::Value;

use super::counts;
use super::facts::{FrameFacts, Lead};
use super::frame::is_error;

const PROMPT: &[counts::Place] =
    &[("/usage/prompt_tokens", Count::Input), ("/usage/input_tokens", Count::Input)];

/// An answer in the shape of another path.
const ANSWER: &[counts::Place] =
    &[("/usage/completion_tokens", Count::Output), ("/usage/output_tokens", Count::Output)];

/// The facts of a frame.
pub(crate) fn facts(frame: &Value) -> Option<FrameFacts> {
    let one = |path: &'static str| counts::at(frame, &[(path, Count::Input)]);
    let prompt = counts::at(frame, PROMPT)?;
    let total = one("/usage/total_tokens")?;
    let answer = counts::at(frame, ANSWER)?;
    let output = answer.get(Count::Output).filter(|tokens| *tokens > 0);
    let openai = if prompt.get(Count::Input).is_some() { prompt } else { total };
    let all = [
        openai,
        one("/prompt_eval_count")?,
        one("/usageMetadata/promptTokenCount")?,
        one("/meta/billed_units/input_tokens")?,
        one("/meta/tokens/input_tokens")?,
    ];
    let known: Vec<Counts> = all.into_iter().filter(|counts| !counts.is_empty()).collect();
    let refused = prompt.rejected + total.rejected > 0 && openai.rejected != prompt.rejected + total.rejected;
    // A usage object replaces a count rejected before it.
    let hidden =
        frame.get("usage").is_some() && openai.is_empty() && known.iter().any(|counts| counts.rejected > 0);
    let differ = known.iter().any(|counts| counts != &known[0]) || known.len() > 1 && known[0].rejected > 0;
    if refused || hidden || differ || answer.rejected > 0 {
        return None;
    }
    // Their unit tests have the modalities beside a usage.
    let elsewhere = ["/usageMetadata/promptTokensDetails", "/meta/billed_units/image_tokens"];
    if elsewhere.iter().any(|path| frame.pointer(path).is_some()) {
        return None;
    }
    let mut parts = match frame.get("usage").filter(|usage| usage.is_object()) {
        Some(usage) => counts::of_usage(usage)?,
        None => Counts::default(),
    };
    if parts.rejected != prompt.rejected + answer.rejected + total.rejected {
        return None;
    }
    parts.set(Count::Total, None);
    let known = known.first().copied().unwrap_or_default();
    let counts = parts
        .with(Count::Input, known.get(Count::Input))
        .with(Count::Output, output)
        .with_rejected(known.rejected);
    let usage = (!counts.is_empty()).then_some(Usage { scope: Scope::Whole, counts });
    let lead = if is_error(frame) { Some(Lead::Error) } else { usage.is_none().then_some(Lead::Other) };
    Some(FrameFacts { lead, usage, ..FrameFacts::default() })
}
