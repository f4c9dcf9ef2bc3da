//! Verdicts on single exchanges.

use meter::{Ending, Identity, LoadSpan, Provenance, Record, Timing, TokenType, Tokens};
use scan::{Dialect, Sampling};
use text::Glob;

use super::{Objective, Verdict, judge};

/// Returns an objective of half a second to the first token and 30 tokens per second.
fn chat(models: &[&str], tenants: &[&str]) -> Objective {
    let globs = |names: &[&str]| names.iter().map(|name| Glob::new(name)).collect();
    Objective {
        name: "chat".into(),
        models: globs(models),
        tenants: globs(tenants),
        first_token_ns: 500_000_000,
        output_rate: 30.0,
        target_ratio: 0.99,
    }
}

/// Returns a streamed success that exactly meets both bounds.
fn stream() -> Record {
    let mut tokens = Tokens { output_provenance: Provenance::Reported, ..Tokens::NONE };
    tokens.by_type[TokenType::Output as usize] = 31;
    Record {
        identity: Identity::new("gpu", "vllm", Dialect::OpenaiChat, "qwen3-8b"),
        asked_stream: true,
        streamed: true,
        status: 200,
        answers: 1,
        choices: 1,
        finishes: [None; meter::record::FINISHES],
        sampling: Sampling::default(),
        ending: Ending::Complete,
        tokens,
        timing: Timing {
            duration_ns: 1_500_000_000,
            first_token_ns: Some(500_000_000),
            output_rate: Some(30.0),
            ..Timing::default()
        },
        load: LoadSpan::single(),
        visible_chars: 0,
        usage_rejected: 0,
        cached_excess: 0,
        disagreement: None,
        unknown_counts: Vec::new(),
        is_compacted: false,
        upstream_attempts: 1,
    }
}

#[test]
fn verdict_follows_table() {
    type Change = fn(&mut Record);
    let cases: &[(&str, Change, Option<Verdict>)] = &[
        ("both bounds just kept", |_| {}, Some(Verdict::Met)),
        ("a nanosecond late", |r| r.timing.first_token_ns = Some(500_000_001), Some(Verdict::SlowFirstToken)),
        ("a shade slow", |r| r.timing.output_rate = Some(29.999_999), Some(Verdict::SlowOutput)),
        (
            "both",
            |r| (r.timing.first_token_ns, r.timing.output_rate) = (Some(600_000_000), Some(1.0)),
            Some(Verdict::SlowBoth),
        ),
        ("one token has no speed", |r| r.timing.output_rate = None, Some(Verdict::Met)),
        ("a length limit is a success", |r| r.ending = Ending::Length, Some(Verdict::Met)),
        ("nothing of it could be timed", |r| r.timing = Timing::default(), Some(Verdict::Met)),
        ("cut", |r| r.ending = Ending::UpstreamCut, Some(Verdict::Failed)),
        ("an error in the stream", |r| r.ending = Ending::ErrorInBand, Some(Verdict::Failed)),
        ("empty", |r| r.ending = Ending::NoOutput, Some(Verdict::Failed)),
        ("detached", |r| r.ending = Ending::Detached, None),
        ("our own doing", |r| r.ending = Ending::ProxyError, Some(Verdict::Failed)),
        ("the client left", |r| r.ending = Ending::ClientAbort, None),
        (
            "the client left before a token, after the bound",
            |r| {
                r.ending = Ending::ClientAbort;
                (r.timing.first_token_ns, r.timing.duration_ns) = (None, 500_000_001);
            },
            Some(Verdict::SlowFirstToken),
        ),
        (
            "the client left before a token, in time",
            |r| {
                r.ending = Ending::ClientAbort;
                (r.timing.first_token_ns, r.timing.duration_ns) = (None, 500_000_000);
            },
            None,
        ),
        (
            "the client left an answer in one piece",
            |r| {
                (r.ending, r.streamed, r.asked_stream) = (Ending::ClientAbort, false, false);
                (r.timing.first_token_ns, r.timing.duration_ns) = (None, 9_000_000_000);
            },
            None,
        ),
        ("an embedding", |r| r.identity.dialect = Dialect::Embeddings, None),
        ("a ranking", |r| r.identity.dialect = Dialect::Rerank, None),
        // In one piece: 0.5 s and 30 tokens at 30 per second.
        ("in one piece, just in time", |r| r.streamed = false, Some(Verdict::Met)),
        (
            "in one piece, late",
            |r| (r.streamed, r.timing.duration_ns) = (false, 1_500_000_001),
            Some(Verdict::SlowOutput),
        ),
        (
            "two answers side by side have half the time",
            |r| (r.streamed, r.choices, r.timing.duration_ns) = (false, 2, 1_000_000_000),
            Some(Verdict::SlowOutput),
        ),
        (
            "in one piece, nobody knows how long",
            |r| (r.streamed, r.tokens, r.timing.duration_ns) = (false, Tokens::NONE, u64::MAX),
            Some(Verdict::Met),
        ),
    ];
    for (what, change, expected) in cases {
        let mut record = stream();
        change(&mut record);
        assert_eq!(chat(&[], &[]).judge(&record), *expected, "{what}");
    }
}

#[test]
fn only_server_error_status_is_failed() {
    for (status, failed) in [
        (400, false),
        (401, false),
        (404, false),
        (408, true),
        (413, false),
        (422, false),
        (424, true),
        (429, true),
        (499, false),
        (500, true),
        (503, true),
        (529, true),
    ] {
        let record = Record { ending: Ending::ErrorStatus, status, ..stream() };
        let expected = failed.then_some(Verdict::Failed);
        assert_eq!(chat(&[], &[]).judge(&record), expected, "{status}");
    }
}

#[test]
fn first_covering_objective_applies() {
    let list = [chat(&["llama*"], &[]), chat(&["*"], &["gold", "silver"]), chat(&["qwen*", "phi*"], &[])];
    for (model, tenant, expected) in [
        ("llama-3", "gold", Some(0)),
        ("qwen3-8b", "gold", Some(1)),
        ("mistral", "silver", Some(1)),
        ("phi-4", "default", Some(2)),
        ("mistral", "default", None),
    ] {
        let mut record = stream();
        record.identity.model = model.into();
        record.identity.tenant = tenant.into();
        assert_eq!(judge(&list, &record).map(|(at, _)| at), expected, "{model} {tenant}");
    }
    assert_eq!(judge(&[], &stream()), None);
}

#[test]
fn first_covering_objective_applies_without_verdict() {
    let record = Record { ending: Ending::ClientAbort, ..stream() };
    assert_eq!(judge(&[chat(&[], &[]), chat(&[], &[])], &record), None);
}
