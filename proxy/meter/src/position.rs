//! Speed by output position, where the tokens of the frames are known only at the ending.

use crate::edges::{POSITION, POSITION_NAMES};
use crate::record::Span;

/// Spreads the positions of an answer whose frames held more tokens than their weight: `seen` tokens by weight stand
/// for `output`, evenly. Several answers share the buckets and cannot be separated again, so their positions are
/// omitted.
pub(crate) fn spread(
    spans: &[Span; POSITION_NAMES.len()],
    seen: u64,
    output: u64,
    choices: u32,
) -> [Span; POSITION_NAMES.len()] {
    if seen == output {
        return *spans;
    }
    let mut spread = [Span::default(); POSITION_NAMES.len()];
    let timed: u64 = spans.iter().map(|span| span.tokens).sum();
    if choices > 1 || seen == 0 || timed == 0 {
        return spread;
    }
    let scale = output as f64 / seen as f64;
    // The first frame started the answer and has no gap before it.
    let mut from = seen.saturating_sub(timed) as f64 * scale;
    for span in spans {
        let (begin, end) = (from, from + span.tokens as f64 * scale);
        from = end;
        for (bucket, into) in spread.iter_mut().enumerate() {
            let low = if bucket == 0 { 0.0 } else { POSITION[bucket - 1] as f64 };
            let high = POSITION.get(bucket).map_or(f64::INFINITY, |&edge| edge as f64);
            let part = end.min(high) - begin.max(low);
            if part > 0.0 {
                into.tokens += part.round() as u64;
                into.ns += (span.ns as f64 * part / (end - begin)) as u64;
            }
        }
    }
    spread
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_spread_for_one_answer_only() {
        let spans = [Span { tokens: 4, ns: 40 }; POSITION_NAMES.len()];
        let seen = 4 * POSITION_NAMES.len() as u64;
        let left_out = [Span::default(); POSITION_NAMES.len()];
        assert_eq!(spread(&spans, seen, 2 * seen, 2), left_out);
        assert_eq!(spread(&spans, 0, 5, 1), left_out);
        assert_eq!(spread(&spans, seen, seen, 2), spans);
        assert_ne!(spread(&spans, seen, 2 * seen, 1), left_out);
    }
}
