//! One page, compared byte by byte. `UPDATE_GOLDEN=1` rewrites the file; review the diff.

use std::path::Path;
use std::{env, fs};

use meter::{Class, Dropped, Observer, Passthrough, Quota, QuotaReading, RateLimits, Refusal, ServerKind};
use meter::{Ending, Provenance, Role, Timing, TokenType, Tokens, Weight};
use metrics::{EngineReading, Metrics, Objective, Options, Upstream};
use scan::Dialect;
use text::Glob;

use crate::openmetrics;
use crate::records::{plain, refused, types};
use crate::traces::trace;

#[test]
fn page_of_two_workers_is_golden() {
    let metrics = Metrics::new(Options {
        models: 2,
        upstreams: vec![Upstream { name: "gpu-1".into(), host: "10.0.0.7".into(), port: Some(8000) }],
        version: "0.0.0".to_owned(),
        objectives: vec![Objective {
            name: "chat".into(),
            models: vec![Glob::new("qwen*"), Glob::new("one *")],
            tenants: Vec::new(),
            first_token_ns: 1_000_000_000,
            output_rate: 30.0,
            target_ratio: 0.99,
        }],
        ..Options::default()
    });
    let (mut one, mut two) = (metrics.worker(), metrics.worker());
    metrics.set_upstream_up("gpu-1", true);
    metrics.set_upstream_up("gpu-0", false);
    metrics.set_upstream_verified("gpu-0", false);
    metrics.set_upstream_verified("gpu-1", true);
    metrics.engine(
        "gpu-1",
        EngineReading {
            up: Some(true),
            read_at: None,
            kind: Some(ServerKind::Vllm),
            running_requests: Some(2.0),
            waiting_requests: Some(0.0),
            kv_cache_usage_ratio: Some(0.125),
            prefix_cache_hit_ratio: Some(0.5),
            prompt_tokens: Some(1000.0),
            generation_tokens: Some(210.0),
            prompt_source_tokens: [Some(400.0), Some(600.0), None],
            hidden_cached_tokens: Some(580.0),
            preemptions: Some(1.0),
            admission_rejections: Some(4.0),
            drift_input_tokens: Some(-3.0),
            drift_output_tokens: Some(12.0),
        },
    );
    metrics.engine("gpu-0", EngineReading { up: Some(false), ..EngineReading::default() });

    let unknown = one.unknown_model();
    one.begin(unknown);
    let qwen = one.model("qwen3-8b");
    one.admit(unknown, qwen);
    one.live(qwen, 11, 0);
    one.end(qwen, &plain("qwen3-8b"));
    one.overhead(Class::Stream, 18_000);

    // The other worker: the same model at higher concurrency, aborted; another model, not streamed; a third beyond the
    // cap, refused; a fourth in flight.
    let qwen = two.model("qwen3-8b");
    two.begin(qwen);
    two.live(qwen, 9, 2);
    let mut cut = plain("qwen3-8b");
    cut.ending = Ending::ClientAbort;
    cut.tokens.output_provenance = Provenance::Running;
    cut.timing.weight = Weight::Spread;
    cut.identity.trace = Some(Box::new(trace(7)));
    cut.timing.concurrency = 3.4;
    cut.timing.stalls = 1;
    cut.timing.stalled_ns = 2_500_000_000;
    two.end(qwen, &cut);
    let tiny = two.model("tiny \"quoted\"");
    two.begin(tiny);
    let mut body = plain("tiny \"quoted\"");
    body.identity.dialect = Dialect::OpenaiCompletions;
    body.ending = Ending::Length;
    body.streamed = false;
    body.tokens = Tokens {
        input_provenance: Provenance::Reported,
        output_provenance: Provenance::Frames,
        by_type: types(&[(TokenType::Input, 4), (TokenType::Output, 16)]),
    };
    body.timing = Timing {
        duration_ns: 640_000_000,
        first_byte_ns: Some(639_000_000),
        concurrency: 1.0,
        ..Timing::default()
    };
    two.end(tiny, &body);
    two.overhead(Class::Body, 31_000);
    let beyond = two.model("one too many");
    two.begin(beyond);
    two.end(beyond, &refused("one too many"));
    // A prefill leg, only in the counts of legs.
    two.begin(qwen);
    let mut leg = plain("qwen3-8b");
    leg.identity.role = Role::Prefill;
    two.end(qwen, &leg);
    let running = two.unknown_model();
    two.begin(running);

    let mut limits = RateLimits { at_unix_ms: 1_000, retry_after_ms: Some(1_500), ..RateLimits::default() };
    limits.quotas[Quota::Tokens as usize] =
        QuotaReading { limit: Some(150_000), remaining: Some(149_984), reset_unix_ms: Some(361_000) };
    two.rate_limits(qwen, &"gpu-1".into(), &limits);

    two.passthrough(Passthrough::Path);
    two.refuse(Refusal::Framing);
    two.dropped(Dropped::UsageRejected, 3);

    let text = metrics.text();
    openmetrics::read(&text);
    compare("tests/golden/page.txt", &without_volatile(&text));
}

/// Returns the page without the values that differ between runs.
fn without_volatile(text: &str) -> String {
    let line = |line: &str| match line.split_once(' ') {
        Some((name, _)) if name.starts_with("process_") => format!("{name} …\n"),
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// Compares with a committed file, or rewrites it.
pub(crate) fn compare(path: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, text).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    for (at, (line, expected)) in text.lines().zip(golden.lines()).enumerate() {
        assert_eq!(line, expected, "{}:{} (UPDATE_GOLDEN=1 rewrites it)", path.display(), at + 1);
    }
    assert_eq!(text.len(), golden.len(), "{} (UPDATE_GOLDEN=1 rewrites it)", path.display());
}
