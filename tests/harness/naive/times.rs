//! The server's own times and counts from a frame's tree.

use scan::ServerReport;
use serde_json::Value;

/// The place of a number, the nanoseconds of its unit (or that it is a count), and its kind.
type Place = (&'static str, f64, fn(&mut ServerReport) -> &mut Option<u64>);

const MILLI: f64 = 1e6;
const SECOND: f64 = 1e9;
const NANO: f64 = 1.0;
const COUNT: f64 = 1.0;

/// Of the OpenAI dialects: llama.cpp, vLLM, mistral.rs.
pub(crate) const OPENAI: &[Place] = &[
    ("/timings/prompt_ms", MILLI, |t| &mut t.prefill_ns),
    ("/timings/predicted_ms", MILLI, |t| &mut t.decode_ns),
    ("/timings/draft_n", COUNT, |t| &mut t.draft_tokens),
    ("/timings/draft_n_accepted", COUNT, |t| &mut t.accepted_draft_tokens),
    ("/metrics/queue_time_ms", MILLI, |t| &mut t.queue_ns),
    ("/metrics/time_to_first_token_ms", MILLI, |t| &mut t.prefill_ns),
    ("/metrics/generation_time_ms", MILLI, |t| &mut t.decode_ns),
    ("/metrics/speculative_decoding/num_draft_tokens", COUNT, |t| &mut t.draft_tokens),
    ("/metrics/speculative_decoding/num_accepted_draft_tokens", COUNT, |t| &mut t.accepted_draft_tokens),
    ("/nvext/timing/prefill_wait_time_ms", MILLI, |t| &mut t.queue_ns),
    ("/nvext/timing/prefill_time_ms", MILLI, |t| &mut t.prefill_ns),
    ("/usage/total_prompt_time_sec", SECOND, |t| &mut t.prefill_ns),
    ("/usage/total_completion_time_sec", SECOND, |t| &mut t.decode_ns),
];

/// For the Responses dialect: llama.cpp beside the response, vLLM in it, which is the whole body if unstreamed.
pub(crate) const RESPONSES: &[Place] = &[
    ("/timings/prompt_ms", MILLI, |t| &mut t.prefill_ns),
    ("/timings/predicted_ms", MILLI, |t| &mut t.decode_ns),
    ("/timings/draft_n", COUNT, |t| &mut t.draft_tokens),
    ("/timings/draft_n_accepted", COUNT, |t| &mut t.accepted_draft_tokens),
    ("/response/metrics/queue_time_ms", MILLI, |t| &mut t.queue_ns),
    ("/response/metrics/time_to_first_token_ms", MILLI, |t| &mut t.prefill_ns),
    ("/response/metrics/generation_time_ms", MILLI, |t| &mut t.decode_ns),
    ("/metrics/queue_time_ms", MILLI, |t| &mut t.queue_ns),
    ("/metrics/time_to_first_token_ms", MILLI, |t| &mut t.prefill_ns),
    ("/metrics/generation_time_ms", MILLI, |t| &mut t.decode_ns),
    ("/response/metrics/speculative_decoding/num_draft_tokens", COUNT, |t| &mut t.draft_tokens),
    ("/response/metrics/speculative_decoding/num_accepted_draft_tokens", COUNT, |t| {
        &mut t.accepted_draft_tokens
    }),
    ("/metrics/speculative_decoding/num_draft_tokens", COUNT, |t| &mut t.draft_tokens),
    ("/metrics/speculative_decoding/num_accepted_draft_tokens", COUNT, |t| &mut t.accepted_draft_tokens),
];

/// Of llama.cpp's own dialect.
pub(crate) const NATIVE: &[Place] = &[
    ("/timings/prompt_ms", MILLI, |t| &mut t.prefill_ns),
    ("/timings/predicted_ms", MILLI, |t| &mut t.decode_ns),
    ("/timings/draft_n", COUNT, |t| &mut t.draft_tokens),
    ("/timings/draft_n_accepted", COUNT, |t| &mut t.accepted_draft_tokens),
];

/// Of Ollama's own dialects.
pub(crate) const OLLAMA: &[Place] = &[
    ("/load_duration", NANO, |t| &mut t.queue_ns),
    ("/prompt_eval_duration", NANO, |t| &mut t.prefill_ns),
    ("/eval_duration", NANO, |t| &mut t.decode_ns),
];

/// The times at the named places, rounded to nanoseconds, without numbers below zero and other values. `None` if two
/// places of one time disagree, or if one exceeds 2^53 nanoseconds.
pub(crate) fn at(frame: &Value, places: &[Place]) -> Option<Option<ServerReport>> {
    let mut times = ServerReport::default();
    for (path, unit, slot) in places {
        let number = frame.pointer(path).and_then(Value::as_f64);
        let Some(number) = number.filter(|&n| n >= 0.0) else { continue };
        let ns = (number * unit).round();
        if ns > (1_u64 << 53) as f64 {
            return None;
        }
        let earlier = slot(&mut times).replace(ns as u64);
        if earlier.is_some_and(|earlier| earlier != ns as u64) {
            return None;
        }
    }
    Some((times != ServerReport::default()).then_some(times))
}
