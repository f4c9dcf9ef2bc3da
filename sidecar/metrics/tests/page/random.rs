//! Random exchanges.

use meter::edges::{GAP_S, POSITION_NAMES};
use meter::{
    Disagreement, Ending, Gaps, Identity, Provenance, Record, Role, Span, StreamPace, Timing, TokenType,
    Tokens, Weight,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use scan::{Dialect, ServerReport};

use crate::records::plain;

/// Generates any exchange: fields are independent, except that no time exists before a first byte. Fields that no metric
/// reads have the values of [`plain`]. A new metric that reads one of them needs it varied here; otherwise its counter and
/// that of the twin are always 0.
pub(crate) fn any_record() -> BoxedStrategy<Record> {
    let what = (
        prop::sample::select(Dialect::ALL.to_vec()),
        prop::sample::select(Ending::ALL.to_vec()),
        prop::sample::select(Provenance::ALL.to_vec()),
        prop::sample::select(Provenance::ALL.to_vec()),
        vec(0u64..5000, TokenType::ALL.len()),
        prop::sample::select(vec!["vllm", "llama_cpp"]),
        any::<bool>(),
        0u64..10_000,
    );
    let who = (
        prop::sample::select(vec!["qwen3-8b", "llama-3"]),
        prop::sample::select(vec!["default", "gold"]),
        prop::sample::select(vec!["gpu-1", "gpu-0"]),
        prop::sample::select(vec![200u16, 400, 404, 408, 424, 429, 500, 503]),
        1u32..3,
        prop::sample::select(vec![Role::Whole, Role::Whole, Role::Prefill, Role::Decode]),
    );
    let disagreement = option::of(prop::sample::select(Disagreement::ALL.to_vec()));
    (what, who, option::weighted(0.9, any_timing()), disagreement)
        .prop_map(|(what, (model, tenant, upstream, status, choices, role), timing, disagreement)| {
            let (dialect, ending, input_provenance, output_provenance, by_type, provider, streamed, chars) =
                what;
            let by_type = by_type.try_into().expect("as many as there are types");
            let any = plain("");
            Record {
                identity: Identity {
                    dialect,
                    provider: provider.into(),
                    model: model.into(),
                    role,
                    tenant: tenant.into(),
                    upstream: upstream.into(),
                    ..any.identity.clone()
                },
                status,
                choices,
                ending,
                tokens: Tokens { input_provenance, output_provenance, by_type },
                asked_stream: streamed,
                streamed,
                visible_chars: chars,
                timing: timing.unwrap_or_default(),
                disagreement,
                ..any
            }
        })
        // Boxed, because the tree of so many strategies exceeds a test thread's stack.
        .boxed()
}

fn any_timing() -> BoxedStrategy<Timing> {
    let moments = (any_ns(), any_ns(), option::of(any_ns()), option::of(any_ns()), option::of(any_ns()));
    let rates = (any_rate(), any_rate(), any_rate(), option::of(any_ns()), any_server());
    let spans = vec((0u64..100, 0u64..1_000_000_000), POSITION_NAMES.len());
    let rest = (any::<bool>(), 0u32..3, any_ns(), any_ns(), 0.0..200.0f64);
    (moments, rates, any_gaps(), any_gaps(), spans, rest)
        .prop_map(|(moments, rates, inter_token, chunk_gap, spans, rest)| {
            let (duration_ns, first_byte, first_token_ns, first_visible_ns, first_tool_ns) = moments;
            let (output_rate, input_rate, visible_chars_rate, per_output_token_ns, server) = rates;
            let (exact, stalls, stalled_ns, client_wait_ns, concurrency) = rest;
            let mut position = [Span::default(); POSITION_NAMES.len()];
            for (position, (tokens, ns)) in position.iter_mut().zip(spans) {
                *position = Span { tokens, ns };
            }
            let pace = StreamPace { inter_token, chunk_gap, position, ..StreamPace::default() };
            Timing {
                upload_ns: 0,
                duration_ns,
                first_byte_ns: Some(first_byte),
                first_chunk_ns: first_token_ns,
                first_token_ns,
                first_visible_ns,
                first_tool_ns,
                generation_ns: 0,
                generation_tokens: 0,
                per_output_token_ns,
                output_rate,
                input_rate,
                visible_chars_rate,
                pace: Some(Box::new(pace)),
                longest_gap_ns: 0,
                longest_token_gap_ns: 0,
                weight: if exact { Weight::Exact } else { Weight::Spread },
                stalls,
                stalled_ns,
                client_wait_ns,
                concurrency,
                server: Some(Box::new(server)).filter(|report| **report != ServerReport::default()),
            }
        })
        .boxed()
}

/// Generates a server's report of its work, often empty. Accepted drafts never exceed proposed ones.
fn any_server() -> impl Strategy<Value = ServerReport> {
    let drafts = option::of((1..1000_u64, 0..1000_u64));
    (option::of(any_ns()), option::of(any_ns()), option::of(any_ns()), drafts).prop_map(
        |(queue_ns, prefill_ns, decode_ns, drafts)| ServerReport {
            queue_ns,
            prefill_ns,
            decode_ns,
            draft_tokens: drafts.map(|(drafted, _)| drafted),
            accepted_draft_tokens: drafts.map(|(drafted, accepted)| accepted.min(drafted)),
        },
    )
}

/// Generates times from a microsecond to minutes, exact edges included.
fn any_ns() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(1_000_000),
        Just(100_000_000),
        Just(100_000_001),
        1_000u64..1_000_000,
        1_000_000u64..400_000_000_000
    ]
}

/// Generates rates, exact edges and invalid ones included.
fn any_rate() -> impl Strategy<Value = Option<f64>> {
    option::of(prop_oneof![Just(30.0), Just(100.0), Just(f64::NAN), Just(f64::INFINITY), 0.0..5000.0f64])
}

fn any_gaps() -> BoxedStrategy<Gaps> {
    let some = vec(0u64..50, GAP_S.len() + 1).prop_map(|counts| {
        let mut gaps = Gaps::default();
        gaps.buckets.copy_from_slice(&counts);
        // Any sum that the buckets allow: the twin checks only that it is passed on.
        gaps.sum_ns = counts.iter().sum::<u64>() * 1_234_567;
        gaps
    });
    prop_oneof![Just(Gaps::default()), some].boxed()
}
