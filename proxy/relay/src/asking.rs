//! What usage is asked for in a request's name: the upstream's policy, what is known of its kind,
//! and what was learned from its answers. Where asking is of no use or has done harm, the request
//! goes as it came.

use hyper::HeaderMap;
use meter::Tick;
use scan::Dialect;
use usage::{Ask, Policy};

use crate::headers::is_sealed;
use crate::learned::Learned;
use crate::{Kind, Upstream, UsageStep};

/// Whether the dialect has `stream_options`.
pub(crate) fn is_askable(dialect: Dialect) -> bool {
    matches!(dialect, Dialect::OpenaiChat | Dialect::OpenaiCompletions)
}

/// What to ask for, or why nothing is.
pub(crate) fn want(
    upstream: &Upstream,
    learned: &Learned,
    dialect: Dialect,
    headers: &HeaderMap,
    now: Tick,
) -> Result<Ask, UsageStep> {
    let kind = upstream.kind.or_else(|| learned.found_kind());
    let always = dialect == Dialect::OpenaiCompletions && kind.is_some_and(completions_always_count);
    if upstream.usage == Policy::Observe {
        return Err(UsageStep::Observed);
    }
    if always || learned.sends_usage_unasked(now) {
        return Err(UsageStep::SentUnasked);
    }
    if learned.refuses_include(now) {
        return Err(UsageStep::Refused);
    }
    // A body under a digest cannot be edited unnoticed. One in a coding is no JSON, and is left alone for
    // that; a `Content-Encoding` alone proves nothing, since most servers never look at it.
    if is_sealed(headers) {
        return Err(UsageStep::Unreadable);
    }
    let Ask { include, continuous } = upstream.usage.wants();
    // A server that nobody has recognised might answer with other frames.
    let knows = kind.is_some_and(|kind| counts_continuously(kind, learned));
    Ok(Ask { include, continuous: continuous && knows && !learned.refuses_continuous(now) })
}

/// Whether the server's completions end in a frame with usage, asked or not. (mistral.rs' end
/// without any, asked or not.)
fn completions_always_count(kind: Kind) -> bool {
    matches!(kind, Kind::LlamaCpp | Kind::Tgi | Kind::MistralRs)
}

/// Whether the server sends usage for each answer when that is finished, while others still run.
pub(crate) fn counts_each_answer(kind: Option<Kind>) -> bool {
    kind.is_none_or(|kind| matches!(kind, Kind::LlamaCpp | Kind::Openai))
}

/// Whether the server knows `continuous_usage_stats` and frames its answers the same with it.
fn counts_continuously(kind: Kind, learned: &Learned) -> bool {
    match kind {
        Kind::Vllm => !learned.has_rust_front_end(),
        Kind::Sglang | Kind::TensorrtLlm | Kind::Lmdeploy | Kind::Openai => true,
        _ => false,
    }
}
