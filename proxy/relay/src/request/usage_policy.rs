//! The question for usage that the proxy adds to a request: it follows from the upstream's policy, its kind
//! and its earlier answers. Where the question is of no use or has done harm, the request
//! goes as it came.

use http::HeaderMap;
use meter::Tick;
use scan::Dialect;
use usage::{Policy, UsageOptions};

use super::headers::{self, is_sealed};
use super::route::Speaks;
use crate::upstream_profile::{ClientKey, UpstreamProfile};
use crate::{ServerKind, Upstream, UsageStep};

/// Returns true if the dialect has `stream_options`.
pub(crate) fn has_stream_options(dialect: Dialect) -> bool {
    matches!(dialect, Dialect::OpenaiChat | Dialect::OpenaiCompletions)
}

/// Returns true if a server of this kind may go on with a named conversation when its client left; unknown ones may.
pub(crate) fn keeps_conversations(upstream: &Upstream, profile: &UpstreamProfile) -> bool {
    kind_of(upstream, profile).is_none_or(|kind| matches!(kind, ServerKind::LlamaCpp | ServerKind::Openai))
}

fn kind_of(upstream: &Upstream, profile: &UpstreamProfile) -> Option<ServerKind> {
    upstream.kind.or_else(|| profile.found_kind())
}

/// The usage to ask for, or the reason why none is asked for.
pub(crate) type Question = Result<UsageOptions, UsageStep>;

/// The rules by which usage is asked for in one request.
#[derive(Clone, Copy)]
pub(crate) struct UsagePolicy<'a> {
    pub(crate) upstream: &'a Upstream,
    pub(crate) profile: &'a UpstreamProfile,
    /// The client of the request.
    pub(crate) client: ClientKey,
    /// The time at which the request began.
    pub(crate) now: Tick,
}

impl UsagePolicy<'_> {
    /// The question to ask in a request with these fields, as far as its path decides it; `None` if there is nothing
    /// to ask for, or the body decides.
    pub(crate) fn question_by_path(&self, speaks: Speaks, headers: &HeaderMap) -> Option<Question> {
        match speaks {
            Speaks::Known(dialect) => self.askable(dialect, headers),
            // The body decides whether there is a question at all; a completion may need less.
            Speaks::Invocations => Some(self.question(Dialect::OpenaiChat, headers)),
            _ => None,
        }
    }

    /// The question to ask in a request of this dialect, if it has anything that can be asked for.
    pub(crate) fn askable(&self, dialect: Dialect, headers: &HeaderMap) -> Option<Question> {
        self.is_askable(dialect).then(|| self.question(dialect, headers))
    }

    /// Returns true if the dialect has anything that can be asked for, as far as the upstream's kind is known.
    fn is_askable(&self, dialect: Dialect) -> bool {
        has_stream_options(dialect)
            || dialect == Dialect::OpenaiResponses
                && self.upstream.usage == Policy::Continuous
                && kind_of(self.upstream, self.profile) == Some(ServerKind::LlamaCpp)
    }

    /// The question to ask in a request with these fields.
    fn question(&self, dialect: Dialect, headers: &HeaderMap) -> Question {
        let Self { upstream, profile, client: asker, now } = *self;
        if upstream.usage == Policy::Observe {
            return Err(UsageStep::Observed);
        }
        let kind = kind_of(upstream, profile);
        let running = upstream.usage == Policy::Continuous && !profile.refuses_running(asker, now);
        // A replay begins at an offset in the bytes that the server sent, so those must be the client's.
        let timings =
            running && kind == Some(ServerKind::LlamaCpp) && !headers.contains_key(headers::CONVERSATION_ID);
        let ends_counted =
            dialect == Dialect::OpenaiCompletions && kind.is_some_and(completions_always_count);
        let include = if !has_stream_options(dialect) || ends_counted || profile.sends_usage_unasked(now) {
            Err(UsageStep::SentUnasked)
        } else if profile.refuses_include(asker, now) {
            Err(UsageStep::Refused)
        } else {
            Ok(())
        };
        if let (Err(step), false) = (include, timings) {
            return Err(step);
        }
        // A body under a digest cannot be edited unnoticed. One in a coding is no JSON, and is left alone for
        // that; a `Content-Encoding` alone proves nothing, since most servers never look at it.
        if is_sealed(headers) {
            return Err(UsageStep::Unreadable);
        }
        let include = include.is_ok();
        // A server of an unknown kind might answer with other frames.
        let continuous = include && running && kind.is_some_and(|kind| counts_continuously(kind, profile));
        let alone_is_void =
            continuous && kind == Some(ServerKind::Vllm) || kind == Some(ServerKind::LlamaCpp);
        Ok(UsageOptions {
            include,
            continuous,
            timings,
            alone_is_void,
            is_strict: kind.is_some_and(takes_plain_flags_only),
        })
    }
}

/// Returns true if the server refuses a flag that is neither `true` nor `false`.
fn takes_plain_flags_only(kind: ServerKind) -> bool {
    matches!(kind, ServerKind::LlamaCpp | ServerKind::Tgi | ServerKind::MistralRs | ServerKind::Ollama)
}

/// Returns true if the server's completions end in a frame with usage, asked or not. (mistral.rs' end
/// without any, asked or not.)
fn completions_always_count(kind: ServerKind) -> bool {
    matches!(kind, ServerKind::LlamaCpp | ServerKind::Tgi | ServerKind::MistralRs)
}

/// Returns true if the server sends usage for each answer when that is finished, while others still run.
pub(crate) fn counts_each_answer(kind: Option<ServerKind>) -> bool {
    kind.is_none_or(|kind| matches!(kind, ServerKind::LlamaCpp | ServerKind::Openai))
}

/// Returns true if the server knows `continuous_usage_stats` and frames its answers the same with it.
fn counts_continuously(kind: ServerKind, profile: &UpstreamProfile) -> bool {
    match kind {
        ServerKind::Vllm => !profile.has_rust_front_end(),
        ServerKind::Sglang | ServerKind::TensorrtLlm | ServerKind::Lmdeploy | ServerKind::Openai => true,
        _ => false,
    }
}
