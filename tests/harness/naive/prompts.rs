//! Embeddings and rankings, of any server: only the prompt is counted, in one of many places.

use scan::{Counts, Scope, Usage};
use serde_json::Value;

use super::counts;
use super::facts::{FrameFacts, Lead};
use super::frame::is_error;

const PROMPT: &[counts::Place] =
    &[("/usage/prompt_tokens", |c| &mut c.input), ("/usage/input_tokens", |c| &mut c.input)];

/// An answer in the shape of another path.
const ANSWER: &[counts::Place] =
    &[("/usage/completion_tokens", |c| &mut c.output), ("/usage/output_tokens", |c| &mut c.output)];

/// The facts of a frame.
pub(crate) fn facts(frame: &Value) -> Option<FrameFacts> {
    let one = |path: &'static str| counts::at(frame, &[(path, |c| &mut c.input)]);
    let prompt = counts::at(frame, PROMPT)?;
    let total = one("/usage/total_tokens")?;
    let answer = counts::at(frame, ANSWER)?;
    let output = answer.output.filter(|tokens| *tokens > 0);
    let openai = if prompt.input.is_some() { prompt } else { total };
    let all = [
        openai,
        one("/prompt_eval_count")?,
        one("/usageMetadata/promptTokenCount")?,
        one("/meta/billed_units/input_tokens")?,
        one("/meta/tokens/input_tokens")?,
    ];
    let known: Vec<Counts> = all.into_iter().filter(|counts| *counts != Counts::default()).collect();
    let refused = prompt.rejected + total.rejected > 0 && openai.rejected != prompt.rejected + total.rejected;
    // A usage object replaces a count rejected before it.
    let hidden = frame.get("usage").is_some()
        && openai == Counts::default()
        && known.iter().any(|counts| counts.rejected > 0);
    let differ = known.iter().any(|counts| counts != &known[0]) || known.len() > 1 && known[0].rejected > 0;
    if refused || hidden || differ || answer.rejected > 0 {
        return None;
    }
    let counts = Counts { output, ..known.first().copied().unwrap_or_default() };
    let usage = (counts != Counts::default()).then_some(Usage { scope: Scope::Whole, counts });
    let lead = if is_error(frame) { Some(Lead::Error) } else { usage.is_none().then_some(Lead::Other) };
    Some(FrameFacts { lead, usage, ..FrameFacts::default() })
}
