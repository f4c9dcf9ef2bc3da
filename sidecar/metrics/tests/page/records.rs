//! Records of exchanges: a plain success, and a refusal.

use meter::edges::{GAP_S, POSITION_NAMES};
use meter::record::FINISHES;
use meter::{
    Ending, Gaps, Identity, LoadSpan, Provenance, Record, Span, StreamPace, Timing, TokenType, Tokens, Weight,
};
use scan::{Dialect, Sampling};

/// Returns a streamed success of `model`: 20 tokens in, 11 out, the first after 50 ms, then one every 10 ms.
pub(crate) fn plain(model: &str) -> Record {
    let mut gaps = Gaps { buckets: [0; GAP_S.len() + 1], sum_ns: 100_000_000 };
    gaps.buckets[6] = 10;
    let mut chunks = Gaps { sum_ns: 125_000_000, ..Gaps::default() };
    (chunks.buckets[0], chunks.buckets[1]) = (11, 1);
    let mut position = [Span::default(); POSITION_NAMES.len()];
    position[0] = Span { tokens: 11, ns: 100_000_000 };
    let pace = StreamPace { inter_token: gaps, chunk_gap: gaps, output_chunk: chunks, position };
    Record {
        identity: Identity {
            started_unix_ns: 1_700_000_000_000_000_000,
            ..Identity::new("gpu-1", "vllm", Dialect::OpenaiChat, model)
        },
        asked_stream: true,
        streamed: true,
        status: 200,
        answers: 1,
        choices: 1,
        finishes: [None; FINISHES],
        sampling: Sampling::default(),
        load: LoadSpan::single(),
        ending: Ending::Complete,
        tokens: Tokens {
            input_provenance: Provenance::Reported,
            output_provenance: Provenance::Reported,
            by_type: types(&[
                (TokenType::Input, 15),
                (TokenType::InputCached, 5),
                (TokenType::Output, 8),
                (TokenType::OutputReasoning, 3),
            ]),
        },
        timing: Timing {
            upload_ns: 20_000_000,
            duration_ns: 151_000_000,
            first_byte_ns: Some(49_000_000),
            first_chunk_ns: Some(49_500_000),
            first_token_ns: Some(50_000_000),
            first_visible_ns: Some(80_000_000),
            first_tool_ns: None,
            generation_ns: 100_000_000,
            generation_tokens: 10,
            per_output_token_ns: Some(10_100_000),
            output_rate: Some(100.0),
            input_rate: Some(300.0),
            visible_chars_rate: Some(420.5),
            pace: Some(Box::new(pace)),
            longest_gap_ns: 10_000_000,
            longest_token_gap_ns: 10_000_000,
            weight: Weight::Exact,
            stalls: 0,
            stalled_ns: 0,
            client_wait_ns: 2_000_000,
            concurrency: 1.0,
            server: None,
        },
        visible_chars: 42,
        usage_rejected: 0,
        cached_excess: 0,
        disagreement: None,
        unknown_counts: Vec::new(),
        is_compacted: false,
        upstream_attempts: 1,
    }
}

/// Returns counts by type, 0 for the others.
pub(crate) fn types(counts: &[(TokenType, u64)]) -> [u64; TokenType::ALL.len()] {
    let mut types = [0; TokenType::ALL.len()];
    counts.iter().for_each(|(kind, n)| types[*kind as usize] = *n);
    types
}

/// Returns a request that the upstream refused.
pub(crate) fn refused(model: &str) -> Record {
    Record {
        streamed: false,
        status: 429,
        ending: Ending::ErrorStatus,
        tokens: Tokens {
            input_provenance: Provenance::None,
            output_provenance: Provenance::None,
            by_type: [0; TokenType::ALL.len()],
        },
        timing: Timing { duration_ns: 3_000_000, concurrency: 2.2, ..Timing::default() },
        visible_chars: 0,
        ..plain(model)
    }
}
